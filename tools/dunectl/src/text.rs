// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes as text: strings in arrays of C, and hexadecimal digits.

/// The string in an array of C, which ends at the first 0 or with the array.
pub fn from_c(array: &[u8]) -> String {
    let bytes = array.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// Two digits for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of exactly 2 * N digits.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_a_string() {
        assert_eq!(from_c(b"disk\0\0"), "disk");
        assert_eq!(from_c(b"disk"), "disk");
        assert_eq!(from_c(b""), "");
    }

    #[test]
    fn each_byte_has_two_digits() {
        let text = "00ff".repeat(16);
        assert_eq!(from_hex::<32>(&text).map(|bytes| to_hex(&bytes)), Some(text));
        assert_eq!(from_hex::<32>("00ff"), None);
        assert_eq!(from_hex::<32>(&"+1".repeat(32)), None);
        assert_eq!(from_hex::<1>("é"), None);
    }
}
