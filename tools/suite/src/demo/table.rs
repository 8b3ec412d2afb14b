// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demo's table.

use super::Row;

const HEADER: [&str; 9] =
    ["program", "same?", "ended with", "fast", "slow", "requests", "page faults", "VM exits", ""];

/// Prints the rows, what their column "requests" counts, and how many programs behave the same.
pub fn print(rows: &[Row]) {
    println!("{:54}- system calls --", "");
    line(HEADER.map(str::to_owned));
    for row in rows {
        let same =
            if row.differences.is_empty() { "same".to_owned() } else { "DIFFERENT".to_owned() };
        let count = |of: fn(&super::Stats) -> u64| match &row.stats {
            Some(stats) => of(stats).to_string(),
            None => "?".to_owned(),
        };
        line([
            row.name.to_owned(),
            same,
            row.status.clone(),
            count(|stats| stats.syscalls_fast),
            count(|stats| stats.syscalls_slow),
            count(|stats| stats.hostcalls),
            count(|stats| stats.faults),
            count(|stats| stats.exits),
            row.differences.join(", "),
        ]);
    }
    println!(
        "requests: hypercalls of the sandbox's own, such as those that make fork() and execve()"
    );
    let equal = rows.iter().filter(|row| row.differences.is_empty()).count();
    println!("{equal} of {} the same: standard output, standard error, exit status", rows.len());
}

fn line(cells: [String; 9]) {
    let [name, same, status, fast, slow, requests, faults, exits, notes] = cells;
    let line = format!(
        "{name:26} {same:10} {status:15} {fast:>9} {slow:>7} {requests:>9} {faults:>12} \
         {exits:>10}  {notes}"
    );
    println!("{}", line.trim_end());
}
