// SPDX-License-Identifier: MIT OR Apache-2.0
//! How numbers and ratios are written for a reader.

/// 12,345 or 1.50
pub fn number(value: f64) -> String {
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

/// The ratio with some three significant digits.
pub fn ratio(value: f64) -> String {
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
