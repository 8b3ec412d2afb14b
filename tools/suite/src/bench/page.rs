// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/benchmarks.md.

use super::Figure;

const HEAD: &str = "# Benchmarks

Written by `make bench`. Figures are exact counts in the `svm` machine's counting mode (one CPU, one tick of the time stamp
counter is one instruction), medians, Linux and Dune in one run. VMRUN and #VMEXIT count as one instruction each, so
exits have a column of their own; the last column is a model, not a measurement: instructions + 750 cycles for each exit.

| id | kernel | unit | Linux | Dune | Dune / Linux | exits | bar | met | modelled cycles |
|---|---|---|--:|--:|--:|--:|---|---|--:|
";

pub fn write(figures: &[Figure]) -> String {
    let mut page = HEAD.to_owned();
    for figure in figures {
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
        page += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            figure.id,
            figure.kernel,
            figure.unit,
            optional(figure.linux),
            number(figure.dune),
            figure.ratio.map(ratio).unwrap_or_default(),
            optional(figure.exits),
            figure.bar,
            if figure.met { "yes" } else { "**no**" },
            optional(figure.modelled_cycles),
        );
    }
    page
}

/// 12,345 or 1.5
fn number(value: f64) -> String {
    if value.fract() != 0.0 {
        return format!("{value:.1}");
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
        assert_eq!(number(1.25), "1.2");
        assert_eq!(ratio(1.046), "1.05");
        assert_eq!(ratio(0.025), "1 / 40");
    }
}
