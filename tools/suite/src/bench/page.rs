// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/benchmarks.md.

use super::{switch, Figure};

const HEAD: &str = "# Benchmarks

Written by `make bench`; `build/bin/dune-suite bench 6.1 --machine vmx` measures one part anew. Figures are counts of instructions
where no other unit is given, medians, Linux and Dune in one run, on one CPU whose time stamp counter counts instructions:
AMD's in the `svm` machine's counting mode (QEMU), Intel's in the `vmx` machine's (Bochs, Ivy Bridge, with PTI, so that Linux's own
system calls switch CR3 there). An instruction that changes worlds counts as one, so exits have a column of their own.
`build/bench.json` has a model of cycles besides: instructions + 750 for each exit.

\"Linux\" is what the same process pays outside of Dune mode; for `enter_10000` it is `enter`; for what ends in `_kvm_idle` (KVM loaded)
and `_kvm_vm` (a KVM machine runs) it is Dune without KVM; for `intercept` it is ptrace. A bar in parentheses is AMD's, shown for comparison:
Intel has a mechanism of its own there (a second page table, a VMCS that is loaded for each run).

";

const MACHINES: [(&str, &str); 2] = [("svm", "AMD"), ("vmx", "Intel")];

pub fn write(figures: &[Figure]) -> String {
    let mut page = HEAD.to_owned();
    page += "| id | kernel |";
    for (_, vendor) in MACHINES {
        page += &format!(" {vendor}: Linux | Dune | Dune / Linux | exits | bar | met |");
    }
    page += "\n|---|---|";
    page += &"--:|--:|--:|--:|---|---|".repeat(MACHINES.len());
    page += "\n";
    let (switches, others): (Vec<_>, Vec<_>) =
        figures.iter().partition(|figure| switch::is_id(&figure.id));
    for (id, kernel) in rows(&others) {
        let unit = others.iter().find(|figure| figure.id == id).map_or("", |figure| &figure.unit);
        let unit = match unit {
            "instructions" | "processes" => String::new(),
            unit => format!(" ({unit})"),
        };
        page += &format!("| {id}{unit} | {kernel} |");
        for (machine, _) in MACHINES {
            let figure = others.iter().find(|figure| is(figure, id, kernel, machine));
            page += &figure.map_or(" | | | | | |".to_owned(), |figure| cells(figure));
        }
        page += "\n";
    }
    if !switches.is_empty() {
        page += &world_switch(&switches);
    }
    page
}

const SWITCH_HEAD: &str = "
## The world switch

A getpid from ring 0, traced instruction by instruction. *To the assembly's end*: from the hypercall to the first instruction of C;
*to the handler*: to the function that handles the exit; *back*: from its return to the guest's next instruction. Memory accesses
are operands in memory and what PUSH, POP, CALL and RET do to the stack; what the processor itself reads and writes at an exit and an entry is
not among them.

";

fn world_switch(figures: &[&Figure]) -> String {
    let mut page = SWITCH_HEAD.to_owned();
    page += "| path | kernel |";
    for (_, vendor) in MACHINES {
        page += &format!(" {vendor} |");
    }
    page += "\n|---|---|";
    page += &"---|".repeat(MACHINES.len());
    page += "\n";
    for (id, kernel) in rows(figures) {
        page += &format!("| {id} | {kernel} |");
        for (machine, _) in MACHINES {
            let figure = figures.iter().find(|figure| is(figure, id, kernel, machine));
            let text = figure.map(|figure| match &figure.detail {
                Some(detail) => format!("{}: {detail}", number(figure.dune)),
                None => number(figure.dune),
            });
            page += &format!(" {} |", text.unwrap_or_default());
        }
        page += "\n";
    }
    page
}

/// Each id with each kernel, in the figures' order.
fn rows<'a>(figures: &[&'a Figure]) -> Vec<(&'a str, &'a str)> {
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for figure in figures {
        let row = (figure.id.as_str(), figure.kernel.as_str());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

fn is(figure: &Figure, id: &str, kernel: &str, machine: &str) -> bool {
    figure.id == id && figure.kernel == kernel && figure.machine == machine
}

fn cells(figure: &Figure) -> String {
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    let bar = match figure.binding || figure.bar.is_empty() {
        true => figure.bar.clone(),
        false => format!("({})", figure.bar),
    };
    let met = match (figure.met, figure.binding) {
        (true, _) => "yes",
        (false, true) => "**no**",
        (false, false) => "no",
    };
    format!(
        " {} | {} | {} | {} | {bar} | {met} |",
        optional(figure.linux),
        number(figure.dune),
        figure.ratio.map(ratio).unwrap_or_default(),
        optional(figure.exits),
    )
}

/// 12,345 or 1.50
fn number(value: f64) -> String {
    if value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits, or so.
fn ratio(value: f64) -> String {
    match value {
        v if v < 0.1 => format!("1 / {:.0}", 1.0 / v),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(7.0), "7");
        assert_eq!(number(1234567.0), "1,234,567");
        assert_eq!(number(1.25), "1.25");
        assert_eq!(ratio(1.046), "1.05");
        assert_eq!(ratio(0.025), "1 / 40");
    }
}
