// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of figures in README.md: some of the page's rows, on one kernel of
//! one machine, in words that a newcomer to Dune understands.

use anyhow::{Context as _, Result};
use dune_machine::SVM;

use super::targets::{Outcome, Subject};
use super::{numbers, Figure};

const BEGIN: &str = "<!-- written by make bench, from here -->\n";
const END: &str = "<!-- to here -->\n";

const KERNEL: &str = "6.1";

/// The figure of each row, and its text.
const ROWS: [(&str, &str); 5] = [
    (
        "trap",
        "A program handles its own page fault (Linux: signal handler; Dune: handler in ring 0)",
    ),
    (
        "protect_cycle",
        "A program protects a page, writes to it, and its fault handler unprotects it",
    ),
    (
        "intercept",
        "A monitor intercepts one system call of untrusted code (Linux: ptrace; Dune: ring 0)",
    ),
    ("getpid_ring0", "One getpid() from ring 0"),
    ("first_touch", "First touch of a page"),
];

/// The README with a new table; as it was, if a figure of the table was not measured.
pub fn update(readme: &str, figures: &[Figure]) -> Result<String> {
    let lacks = || format!("README.md lacks the line {}", BEGIN.trim_end());
    let (before, rest) = readme.split_once(BEGIN).with_context(lacks)?;
    let lacks = || format!("README.md lacks the line {}", END.trim_end());
    let (_, after) = rest.split_once(END).with_context(lacks)?;
    Ok(match table(figures) {
        Some(table) => format!("{before}{BEGIN}\n{table}\n{END}{after}"),
        None => readme.to_owned(),
    })
}

fn table(figures: &[Figure]) -> Option<String> {
    let vendor = SVM.vendor;
    let mut text = format!(
        "| instructions, {vendor}, Linux {KERNEL} | Linux | Dune | Dune / Linux | exits |\n\
         |---|--:|--:|--:|--:|\n"
    );
    for (id, title) in ROWS {
        let wanted = |figure: &&Figure| figure.id == id && figure.is_of(SVM.name, KERNEL);
        let figure = figures.iter().find(wanted)?;
        let (linux, dune) = (numbers::number(figure.linux?), numbers::number(figure.dune));
        let mut ratio = numbers::ratio(figure.ratio?);
        let missed = figure.outcome().is_some_and(|outcome| outcome != Outcome::Met);
        let target = Subject::of(id).and_then(|subject| subject.target(&SVM)?.ratio());
        if let Some(target) = target.filter(|_| missed) {
            ratio += &format!(" (target: {})", numbers::ratio(target));
        }
        let exits = numbers::number(figure.exits?);
        text += &format!("| {title} | {linux} | {dune} | {ratio} | {exits} |\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Figure> {
        ROWS.map(|(id, _)| Figure::example(id, 360.0, 372.0)).into()
    }

    #[test]
    fn only_the_table_changes() {
        let readme = format!("one\n\n{BEGIN}old\n{END}\nthree\n");
        let new = update(&readme, &all()).unwrap();
        assert!(new.starts_with("one\n") && new.ends_with("\nthree\n"), "{new}");
        assert!(new.contains("| One getpid() from ring 0 | 360 | 372 | 1.03 | 1 |\n"), "{new}");
        assert!(!new.contains("old"), "{new}");
        assert_eq!(new, update(&new, &all()).unwrap());
    }

    #[test]
    fn a_missed_target_is_named() {
        let missed = Figure::example("intercept", 5500.0, 100.0).with(Outcome::Missed);
        let figures: Vec<Figure> = all().into_iter().filter(|one| one.id != missed.id).collect();
        let table = table(&[figures, vec![missed]].concat()).unwrap();
        assert!(table.contains(" | 5,500 | 100 | 1 / 55 (target: 1 / 60) | 1 |\n"), "{table}");
    }

    #[test]
    fn the_table_is_kept_while_a_figure_is_missing() {
        let readme = format!("{BEGIN}old\n{END}");
        assert_eq!(readme, update(&readme, &all()[1..]).unwrap());
    }

    #[test]
    fn the_readme_has_the_table() {
        assert!(update(include_str!("../../../../README.md"), &all()).is_ok());
        assert!(update("no place", &all()).is_err());
    }
}
