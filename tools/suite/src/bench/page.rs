// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/benchmarks.md: a table for each vendor, one of the world switch, and those of the guard.

use std::collections::BTreeMap;

use dune_machine::{MachineType, Series};

use super::numbers::{number, ratio};
use super::targets::{is_guards, Baseline, Outcome, Subject, SUBJECTS};
use super::{switch, Border, Figure, Judgement};

const HEAD: &str = "# Benchmarks

Figures are numbers of instructions if no other unit is given, and medians. Linux and Dune are
measured in one run, on one CPU whose time stamp counter counts instructions: in the `svm` machine's
counting mode (QEMU) for AMD, and in the `vmx` machine's (Bochs, Ivy Bridge) for Intel. The `vmx`
machine has PTI, so Linux's own system calls switch CR3 there.

![Instructions of Dune divided by Linux's, for operations with a counterpart in Linux, on AMD and
Intel, logarithmic scale](benchmarks.svg)

An instruction that switches worlds counts as one, so exits have a column of their own.
`build/bench.json` also holds a model of cycles: instructions + 750 for each exit.

This page, its plot and the table of figures in the README are written by `make bench`, which
succeeds when it has measured. `make bench-check` fails if a figure misses its target, unless the
miss is accepted: the column *met* then has \"no (accepted)\", and the figure has to keep to the
bound that is listed below the table. A bold **no** is a miss that is not accepted, or that does not
keep to its bound. A plain \"no\" is a miss of a target in parentheses, which does not count.
`build/bin/dune-suite bench 6.1 --machine vmx` measures one part anew, and
`build/bin/dune-suite bench-page` writes the page from the figures in `build/bench.json`.

The column \"Linux\" is the cost for the same process outside of Dune mode, unless a word in
parentheses names another: ptrace, an ioctl of /dev/dune that does nothing, `enter`, or Dune without
KVM. One program, `bench/with_kvm.c`, measures Dune with and without KVM, so a figure without KVM
can differ a little from the same figure in its own row. The slow path is forced by a flag
(`DUNE_RUN_SLOW_SYSCALL`), so neither side of its row includes the cost of ptrace, audit or a
tracepoint itself. `getpid_slow` is the slow path of a program that uses libdune, whose host half
makes the call. In `getpid_native` the stub makes the call, as in the sandbox ([decision
0054](decisions/0054-stub-page-and-closed-list.md)), but for a guest in ring 0: in the sandbox the
way from ring 3 and the check come on top, as in `getpid_ring3`.
";

/// The targets that are not Intel's own.
const INTEL_NOTE: &str =
    "A target in parentheses is AMD's, shown for comparison: Intel has a mechanism of its own there
(a second page table, a VMCS that is loaded for each run). [Decision
0052](decisions/0052-intel-has-targets-of-its-own.md) has the reasons.
";

const COLUMNS: &str = "| figure | kernel | Linux | Dune | Dune / Linux | exits | target | met |
|---|---|--:|--:|--:|--:|---|---|
";

const GUARD_HEAD: &str = "
## The guard

`make bench-guard` measures these figures alone (`bench/guard.c`, `bench/guard_network.c`), on AMD.
The first rows are Linux's own work, without the guard and with it. The next ones are the border of
a guarded module: a crossing is one way in or out, and each has one exit.

In the rows of TCP, Debian's e1000, which nobody changed, drives QEMU's network card: without the
guard, as a guarded module, and as one with *leaves*, functions of the kernel's that the module
executes itself (those that `dunectl guard leaves` proposes:
[guard-modules.md](guard-modules.md#leaves)). A MB is 10^6 bytes. The column *exits* has the
crossings for each MB. The time in which the processor would be idle is not counted. The other side
of the connection is a process of the computer that emulates, so these figures differ from one run
to the next, by up to 6 %.

The last rows are the crossings for each packet, of transfers of their own, since counting them by
function costs instructions, too. QEMU's network acknowledges each packet at once, so one that is
sent includes one that is received. In the paper (figures 9 and 10, with the driver bnx2 and without
interrupts) there are 2.12 for a packet sent and 9.28 for one received.

The paper (Guarded Modules, 2013, figures 6 to 11) measured its border, which is made of hypercalls
and wrappers, in cycles of one processor, so its figures and these cannot be divided by each other:
about 4,000 cycles for a crossing, of which the exit and the entry are most.

";

const GUARD_COLUMNS: &str =
    "| figure | kernel | without the guard | with it | with / without | exits | target | met |
|---|---|--:|--:|--:|--:|---|---|
";

const FUNCTIONS_HEAD: &str = "
### Crossings for each packet, by function

There and back. What has less than 0.01 in all columns is only in the last row.

";

/// The columns of the table of functions.
const FUNCTIONS_COLUMNS: [(&str, &str); 4] = [
    ("guard_sent", "sent"),
    ("guard_sent_leaves", "with leaves"),
    ("guard_received", "received"),
    ("guard_received_leaves", "with leaves"),
];

/// And its parts.
const BORDERS: [(Border, &str); 3] = [
    (Border::Entry, "calls by the kernel of"),
    (Border::Call, "calls by the module of"),
    (Border::Interrupt, "interrupts in"),
];

pub fn write(figures: &[Figure]) -> String {
    let mut page = HEAD.to_owned();
    let (switches, others): (Vec<_>, Vec<_>) =
        figures.iter().partition(|figure| switch::is_id(&figure.id));
    let mut guard = String::new();
    for machine_type in MachineType::ALL {
        let (guards, of_it): (Vec<&Figure>, Vec<&Figure>) = others
            .iter()
            .filter(|figure| figure.machine == machine_type.name)
            .partition(|figure| is_guards(&figure.id));
        if !guards.is_empty() {
            guard += &table(GUARD_COLUMNS, &guards);
            guard += &accepted_misses(&guards, machine_type);
            guard += &functions(&guards);
        }
        if of_it.is_empty() {
            continue;
        }
        page += &format!("\n## {}\n\n", machine_type.vendor);
        if of_it.iter().any(|figure| figure.judgement.is_some() && figure.outcome().is_none()) {
            page += &format!("{INTEL_NOTE}\n");
        }
        page += &table(COLUMNS, &of_it);
        page += &accepted_misses(&of_it, machine_type);
    }
    if !switches.is_empty() {
        page += &world_switch(&switches);
    }
    if !guard.is_empty() {
        page += GUARD_HEAD;
        page += &guard;
    }
    page
}

/// One row for each figure and kernel; the figure is named in its first row.
fn table(columns: &str, figures: &[&Figure]) -> String {
    let mut text = columns.to_owned();
    let mut named = None;
    for figure in figures {
        let name = if named == Some(&figure.id) { String::new() } else { name(figure) };
        named = Some(&figure.id);
        text += &format!("| {name} | {} |{}\n", figure.kernel, cells(figure));
    }
    text
}

/// For each kernel a table of the crossings of a module's border, by function.
fn functions(figures: &[&Figure]) -> String {
    let (first, _) = FUNCTIONS_COLUMNS[0];
    let kernels = figures.iter().filter(|figure| figure.id == first).map(|figure| &figure.kernel);
    let tables: Vec<String> = kernels
        .map(|kernel| {
            let of_kernel = figures.iter().filter(|figure| figure.kernel == *kernel);
            functions_of_kernel(kernel, &of_kernel.copied().collect::<Vec<_>>())
        })
        .collect();
    match tables.is_empty() {
        true => String::new(),
        false => format!("{FUNCTIONS_HEAD}{}", tables.join("\n")),
    }
}

fn functions_of_kernel(kernel: &str, figures: &[&Figure]) -> String {
    let columns = FUNCTIONS_COLUMNS.map(|(id, _)| figures.iter().find(|figure| figure.id == id));
    let titles = FUNCTIONS_COLUMNS.map(|(_, title)| title).join(" | ");
    let mut text = format!("| {kernel} | {titles} |\n|---|--:|--:|--:|--:|\n");
    let row = |name: &str, cells: [Option<f64>; 4]| {
        let cells = cells.map(|cell| cell.map(|cell| format!("{cell:.2}")).unwrap_or_default());
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    for (border, title) in BORDERS {
        let mut rows: BTreeMap<&str, [f64; 4]> = BTreeMap::new();
        for (n, figure) in columns.iter().enumerate() {
            for one in figure.iter().flat_map(|figure| &figure.functions) {
                if one.border == border {
                    rows.entry(&one.function).or_default()[n] += one.crossings;
                }
            }
        }
        rows.retain(|_, cells| cells.iter().any(|&crossings| crossings >= 0.01));
        let mut rows: Vec<_> = rows.into_iter().collect();
        let most = |cells: &[f64; 4]| cells.iter().copied().fold(0.0, f64::max);
        rows.sort_by(|(_, one), (_, other)| most(other).total_cmp(&most(one)));
        if !rows.is_empty() {
            text += &format!("| **{title}** | | | | |\n");
        }
        for (name, cells) in rows {
            text += &row(&format!("`{name}`"), cells.map(Some));
        }
    }
    text + &row("**all crossings**", columns.map(|figure| figure.map(|figure| figure.dune)))
}

/// The bound of each miss that is accepted on its kernel, kept to or not, and its reason.
fn accepted_misses(figures: &[&Figure], machine_type: &MachineType) -> String {
    let mut text = String::new();
    for subject in &SUBJECTS {
        let kernels: Vec<Series> = figures
            .iter()
            .filter(|figure| figure.id == subject.id)
            .filter(|figure| matches!(figure.outcome(), Some(Outcome::Accepted | Outcome::Missed)))
            .filter_map(|figure| figure.kernel.parse().ok())
            .filter(|&on| subject.accepted_miss(machine_type, on).is_some())
            .collect();
        // A target has one bound for all of the kernels on which its miss is accepted.
        let accepted = kernels.first().and_then(|&on| subject.accepted_miss(machine_type, on));
        if let Some((bound, reason)) = accepted {
            let names: Vec<&str> = kernels.iter().map(|series| series.name()).collect();
            let (id, names) = (subject.id, names.join(", "));
            text += &format!("- `{id}` ({names}): {bound}.\n  {reason}\n");
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\nAccepted misses, each with its bound and its reason:\n\n{text}")
    }
}

fn name(figure: &Figure) -> String {
    let unit = match figure.unit.as_str() {
        "instructions" | "processes" => String::new(),
        unit => format!(", {unit}"),
    };
    let title = Subject::of(&figure.id).map(|subject| format!("{}{unit} ", subject.title));
    format!("{}(`{}`)", title.unwrap_or_default(), figure.id)
}

fn cells(figure: &Figure) -> String {
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    let baseline = Subject::of(&figure.id).and_then(|subject| subject.baseline);
    let linux = match baseline {
        None | Some(Baseline::Linux | Baseline::NoGuard) => optional(figure.linux),
        Some(other) => format!("{} ({})", optional(figure.linux), other.name()),
    };
    let (target, met) = match &figure.judgement {
        None => (String::new(), ""),
        Some(Judgement { target, outcome, binding: true }) => {
            let met = match outcome {
                Outcome::Met => "yes",
                Outcome::Accepted => "no (accepted)",
                Outcome::Missed => "**no**",
            };
            (target.clone(), met)
        }
        Some(Judgement { target, outcome, binding: false }) => {
            (format!("({target})"), if *outcome == Outcome::Met { "yes" } else { "no" })
        }
    };
    format!(
        " {linux} | {} | {} | {} | {target} | {met} |",
        number(figure.dune),
        figure.ratio.map(ratio).unwrap_or_default(),
        optional(figure.exits),
    )
}

const SWITCH_HEAD: &str = "
## The world switch

A getpid from ring 0, traced instruction by instruction. *To the assembly's end*: from the hypercall
to the first instruction of C; *to the handler*: to the function that handles the exit; *back*: from
its return to the guest's next instruction. Memory accesses are operands in memory and the
accesses of PUSH, POP, CALL and RET to the stack. They do not include the processor's own reads and
writes at an exit and an entry.

| vendor | kernel | instructions | of these | memory accesses |
|---|---|---|---|---|
";

fn world_switch(figures: &[&Figure]) -> String {
    let mut page = SWITCH_HEAD.to_owned();
    for machine_type in MachineType::ALL {
        let mut kernels: Vec<&str> = Vec::new();
        for figure in figures.iter().filter(|figure| figure.machine == machine_type.name) {
            if !kernels.contains(&figure.kernel.as_str()) {
                kernels.push(&figure.kernel);
            }
        }
        for kernel in kernels {
            let text = |id: &str| {
                let is = |figure: &&&Figure| {
                    let Figure { machine, kernel: of, .. } = figure;
                    figure.id == id && machine == machine_type.name && of == kernel
                };
                figures.iter().find(is).map(|figure| match &figure.detail {
                    Some(detail) => format!("{}: {detail}", number(figure.dune)),
                    None => number(figure.dune),
                })
            };
            let instructions = text(switch::INSTRUCTIONS).unwrap_or_default();
            let (counts, special) = instructions
                .split_once(switch::OF_THESE)
                .map_or((instructions.as_str(), ""), |(counts, special)| (counts, special));
            let memory = text(switch::MEMORY).unwrap_or_default();
            let vendor = machine_type.vendor;
            page += &format!("| {vendor} | {kernel} | {counts} | {special} | {memory} |\n");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::super::OfFunction;
    use super::*;

    #[test]
    fn the_page_in_the_tree_has_this_text_and_all_figures() {
        let page = include_str!("../../../../docs/benchmarks.md");
        let has_texts = page.starts_with(HEAD)
            && [INTEL_NOTE, SWITCH_HEAD, GUARD_HEAD].iter().all(|text| page.contains(text));
        assert!(has_texts, "docs/benchmarks.md has another text: run make bench");
        for subject in &SUBJECTS {
            let id = format!("(`{}`)", subject.id);
            assert!(page.contains(&id), "docs/benchmarks.md lacks {id}: run make bench");
        }
    }

    #[test]
    fn the_figures_in_the_tree_keep_to_their_bounds() {
        let page = include_str!("../../../../docs/benchmarks.md");
        let missed: Vec<&str> = page.lines().filter(|line| line.ends_with("| **no** |")).collect();
        assert!(missed.is_empty(), "make bench-check would fail: {missed:?}");
    }

    #[test]
    fn each_vendor_has_a_table_that_names_a_figure_once() {
        let figure = |machine: &str, kernel: &str, outcome| Figure {
            machine: machine.to_owned(),
            kernel: kernel.to_owned(),
            ..Figure::example("getpid_ring0", 360.0, 372.0).with(outcome)
        };
        let page = write(&[
            figure("svm", "6.1", Outcome::Met),
            figure("svm", "6.12", Outcome::Missed),
            figure("vmx", "6.1", Outcome::Met),
        ]);
        let rows: Vec<&str> = page.lines().filter(|line| line.contains("| 372 |")).collect();
        let named =
            "| getpid() from ring 0 (`getpid_ring0`) | 6.1 | 360 | 372 | 1.03 | 1 | ≤ 1.1 |";
        assert_eq!(
            rows,
            [
                &format!("{named} yes |"),
                "|  | 6.12 | 360 | 372 | 1.03 | 1 | ≤ 1.1 | **no** |",
                &format!("{named} yes |"),
            ]
        );
        assert!(page.find("## AMD") < page.find("## Intel"));
        assert!(!page.contains("Accepted misses"));
    }

    #[test]
    fn crossings_have_a_table_by_function() {
        let figure = |id: &str, dune, functions: &[(Border, &str, f64)]| Figure {
            linux: None,
            functions: functions
                .iter()
                .map(|&(border, function, crossings)| OfFunction {
                    border,
                    function: function.to_owned(),
                    crossings,
                })
                .collect(),
            ..Figure::example(id, 1.0, dune)
        };
        let page = write(&[
            figure(
                "guard_sent",
                4.5,
                &[
                    (Border::Entry, "xmit", 1.0),
                    (Border::Call, "memcpy", 2.0),
                    (Border::Call, "kfree", 0.004),
                ],
            ),
            figure("guard_sent_leaves", 2.25, &[(Border::Entry, "xmit", 1.0)]),
        ]);
        let table = page.split_once("| 6.1 | sent |").expect("the page has it").1;
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| **calls by the kernel of** | | | | |",
                "| `xmit` | 1.00 | 1.00 | 0.00 | 0.00 |",
                "| **calls by the module of** | | | | |",
                "| `memcpy` | 2.00 | 0.00 | 0.00 | 0.00 |",
                "| **all crossings** | 4.50 | 2.25 |  |  |",
            ]
        );
    }

    #[test]
    fn an_accepted_miss_has_its_bound_below_the_table() {
        let figure = Figure::example("getpid_slow", 100.0, 470.0).with(Outcome::Accepted);
        let page = write(&[figure]);
        assert!(page.contains("| no (accepted) |\n\nAccepted misses"), "{page}");
        assert!(page.contains("\n- `getpid_slow` (6.1): ≤ 4.8 × Linux.\n  "), "{page}");
    }

    #[test]
    fn a_figure_that_missed_its_bound_has_it_below_the_table() {
        let figure = |kernel: &str, outcome| Figure {
            kernel: kernel.to_owned(),
            ..Figure::example("intercept", 5400.0, 100.0).with(outcome)
        };
        let page = write(&[figure("6.1", Outcome::Missed), figure("6.12", Outcome::Missed)]);
        assert!(page.contains("\n- `intercept` (6.1): ptrace / Dune ≥ 55.\n  "), "{page}");
    }
}
