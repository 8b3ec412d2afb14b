// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl guard crossings: how often the border of a module was crossed, by function, as in
//! figures 9 and 10 of the paper on guarded modules (docs/guard.md).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use dune_machine::{Error, Result, Status};
use serde_json::json;

use crate::cli::Crossings;
use crate::exit::{End, REFUSED};
use crate::guard;

/// The six crossings, as --json has them, by the index of `dune_guard_crossings.crossings`.
pub const CROSSINGS: [&str; 6] =
    ["in_call", "in_return", "in_resume", "out_call", "out_return", "out_interrupt"];

const IN_CALL: usize = 0;
const IN_RETURN: usize = 1;
const IN_RESUME: usize = 2;
const OUT_CALL: usize = 3;
const OUT_RETURN: usize = 4;
const OUT_INTERRUPT: usize = 5;

/// The parts of the table: what leads to a function and what leads back.
const PARTS: [(&str, usize, usize); 3] = [
    ("border-in by a call of, and border-out by the return from", IN_CALL, OUT_RETURN),
    ("border-out by a call of, and border-in by the return from", OUT_CALL, IN_RETURN),
    ("border-out by an interrupt in, and border-in by its return to", OUT_INTERRUPT, IN_RESUME),
];

/// The counts of each function, by its address.
type Counts = BTreeMap<u64, [u64; CROSSINGS.len()]>;

/// Runs the subcommand.
pub fn run(device: &File, options: &Crossings) -> Result<End> {
    let read = || -> Result<std::result::Result<Counts, &str>> {
        let rows = guard::count_crossings(device, &options.name)?;
        Ok(rows.map(|rows| rows.into_iter().map(|row| (row.address, row.crossings)).collect()))
    };
    let mut counts = match read()? {
        Ok(counts) => counts,
        Err(why) => {
            eprintln!("dunectl: {}: no crossings: {why}", options.name);
            return Ok(End::Code(REFUSED));
        }
    };
    let mut packets = None;
    if let [program, arguments @ ..] = &options.command[..] {
        let before = packets_of(options)?;
        let status = Command::new(program).args(arguments).status().map_err(|source| {
            let action = format!("running {}", program.to_string_lossy());
            Error::Io { action, source }
        })?;
        if let Some(signal) = status.signal() {
            return Ok(End::SameAs(Status::Signaled { signal, core: false }));
        }
        if !status.success() {
            return Ok(End::Code(status.code().unwrap_or(1) as u8));
        }
        packets = packets_of(options)?.zip(before).map(|(after, before)| after - before);
        let after = read()?.unwrap_or_default();
        counts = difference(after, &counts);
    }
    let names = Names::read()?;
    if options.json.json {
        print_json(options, &counts, &names, packets);
    } else {
        print(options, &counts, &names, packets);
    }
    Ok(End::Code(0))
}

/// The packets that the interface has sent or received, if one was named.
fn packets_of(options: &Crossings) -> Result<Option<u64>> {
    let (interface, file) = match (&options.sent, &options.received) {
        (Some(interface), _) => (interface, "tx_packets"),
        (None, Some(interface)) => (interface, "rx_packets"),
        (None, None) => return Ok(None),
    };
    let path = format!("/sys/class/net/{interface}/statistics/{file}");
    let text = fs::read_to_string(&path)
        .map_err(|_| Error::Usage(format!("there is no network interface {interface}")))?;
    Ok(text.trim().parse().ok())
}

fn difference(mut after: Counts, before: &Counts) -> Counts {
    for (address, counts) in &mut after {
        for (count, before) in counts.iter_mut().zip(before.get(address).into_iter().flatten()) {
            *count = count.saturating_sub(*before);
        }
    }
    after.retain(|_, counts| counts.iter().any(|count| *count > 0));
    after
}

fn sum(counts: &Counts, which: &[usize]) -> u64 {
    counts.values().map(|counts| which.iter().map(|&one| counts[one]).sum::<u64>()).sum()
}

const BORDER_IN: [usize; 3] = [IN_CALL, IN_RETURN, IN_RESUME];
const BORDER_OUT: [usize; 3] = [OUT_CALL, OUT_RETURN, OUT_INTERRUPT];
const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];

fn print(options: &Crossings, counts: &Counts, names: &Names, packets: Option<u64>) {
    let line = |name: &str, [to, back]: [String; 2], both: u64| {
        let per_packet = match packets {
            Some(packets) if packets > 0 => format!("{:.2}", both as f64 / packets as f64),
            _ => String::new(),
        };
        println!("{}", format!("{name:44}{to:>10}{back:>10}{per_packet:>12}").trim_end());
    };
    let done = if options.sent.is_some() { "sent" } else { "received" };
    let head = packets.map(|packets| format!("{packets} packets {done}")).unwrap_or_default();
    let per_packet = packets.map(|_| "per packet").unwrap_or_default();
    println!("{}", format!("{head:44}{:>10}{:>10}{per_packet:>12}", "there", "back").trim_end());
    for (title, there, back) in PARTS {
        let mut rows: Vec<_> =
            counts.iter().filter(|(_, counts)| counts[there] + counts[back] > 0).collect();
        rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[there]));
        if !rows.is_empty() {
            println!("{title}");
        }
        for (address, counts) in rows {
            let both = [counts[there], counts[back]];
            let name = format!("  {}", names.of(*address));
            line(&name, both.map(|count| count.to_string()), both[0] + both[1]);
        }
    }
    for (title, which) in
        [("border-ins", &BORDER_IN[..]), ("border-outs", &BORDER_OUT), ("all crossings", &ALL)]
    {
        let count = sum(counts, which);
        line(title, [String::new(), count.to_string()], count);
    }
}

fn print_json(options: &Crossings, counts: &Counts, names: &Names, packets: Option<u64>) {
    let functions: Vec<_> = counts
        .iter()
        .map(|(address, counts)| {
            let mut one = json!({ "function": names.of(*address), "address": address });
            for (name, count) in CROSSINGS.iter().zip(counts) {
                one[name] = (*count).into();
            }
            one
        })
        .collect();
    let all = json!({ "module": options.name, "packets": packets, "functions": functions });
    println!("{all}");
}

/// The kernel's functions, sorted by address.
struct Names(Vec<(u64, String)>);

impl Names {
    fn read() -> Result<Names> {
        let path = "/proc/kallsyms";
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Io { action: format!("reading {path}"), source })?;
        Ok(Names::parse(&text))
    }

    /// Of several names of a function, a global one.
    fn parse(text: &str) -> Names {
        let mut all: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let kind = words.next().filter(|kind| "TtWw".contains(kind))?;
                Some((address, kind, words.next()?))
            })
            .filter(|(address, ..)| *address != 0)
            .collect();
        all.sort_by_key(|&(address, kind, _)| (address, kind));
        all.dedup_by_key(|&mut (address, ..)| address);
        Names(all.into_iter().map(|(address, _, name)| (address, name.to_owned())).collect())
    }

    fn of(&self, address: u64) -> String {
        if address == 0 {
            return "other functions".to_owned();
        }
        let after = self.0.partition_point(|(start, _)| *start <= address);
        match after.checked_sub(1).and_then(|at| self.0.get(at)) {
            Some((start, name)) if *start == address => name.clone(),
            Some((start, name)) if address - start < 0x10000 => {
                format!("{name}+{:#x}", address - start)
            }
            _ => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_global_names() {
        let names = Names::parse(
            "ffffffff81000000 T _stext\nffffffff81000100 t local\nffffffff81000100 T global\n\
             ffffffff81000180 d data\nffffffffc0000000 t e1000_clean\t[e1000]\n0 t hidden\n",
        );
        assert_eq!(names.of(0xffff_ffff_8100_0100), "global");
        assert_eq!(names.of(0xffff_ffff_8100_0190), "global+0x90");
        assert_eq!(names.of(0xffff_ffff_c000_0000), "e1000_clean");
        assert_eq!(names.of(0xffff_ffff_d000_0000), "0xffffffffd0000000");
        assert_eq!(names.of(0), "other functions");
    }

    #[test]
    fn what_was_there_before_is_not_counted() {
        let before = Counts::from([(1, [5, 0, 0, 0, 5, 0]), (2, [1, 0, 0, 0, 1, 0])]);
        let after = Counts::from([
            (1, [7, 0, 0, 0, 6, 0]),
            (2, [1, 0, 0, 0, 1, 0]),
            (3, [0, 1, 0, 1, 0, 0]),
        ]);
        let counts = difference(after, &before);
        assert_eq!(counts, Counts::from([(1, [2, 0, 0, 0, 1, 0]), (3, [0, 1, 0, 1, 0, 0])]));
        assert_eq!((sum(&counts, &BORDER_IN), sum(&counts, &BORDER_OUT)), (3, 2));
    }
}
