// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames: a length and a message.

use std::io::{self, Error, ErrorKind, Read, Write};

use serde::{de::DeserializeOwned, Serialize};

/// No valid message is larger, so a larger length means a broken stream.
pub const MAX_FRAME: usize = 16 << 20;

const HEADER: usize = 4;

/// Writes one message with a single `write_all`.
///
/// # Errors
///
/// The message is larger than [`MAX_FRAME`], or writing failed.
pub fn write_frame<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let mut bytes = postcard::to_extend(message, vec![0; HEADER]).map_err(invalid)?;
    let length = bytes.len() - HEADER;
    if length > MAX_FRAME {
        return Err(invalid(format!("message of {length} bytes")));
    }
    bytes[..HEADER].copy_from_slice(&(length as u32).to_le_bytes());
    to.write_all(&bytes)
}

/// Reads one message; `None` at the end of the stream between two messages.
///
/// # Errors
///
/// The stream ends within a message, its bytes are not one, or reading failed.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut header = [0; HEADER];
    let mut got = 0;
    while got < header.len() {
        match from.read(&mut header[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let mut bytes = vec![0; length(header)?];
    from.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map(Some).map_err(invalid)
}

/// The first of the received messages, and its length including the header.
/// `None` while it is not complete.
///
/// # Errors
///
/// The bytes are not a message.
pub fn decode_frame<T: DeserializeOwned>(received: &[u8]) -> io::Result<Option<(T, usize)>> {
    let Some((header, rest)) = received.split_first_chunk::<HEADER>() else { return Ok(None) };
    let length = length(*header)?;
    let Some(bytes) = rest.get(..length) else { return Ok(None) };
    let message = postcard::from_bytes(bytes).map_err(invalid)?;
    Ok(Some((message, HEADER + length)))
}

fn length(header: [u8; HEADER]) -> io::Result<usize> {
    let length = u32::from_le_bytes(header) as usize;
    match length {
        0..=MAX_FRAME => Ok(length),
        _ => Err(invalid(format!("frame of {length} bytes"))),
    }
}

fn invalid(e: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidData, e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Status, Stream, ToHarness};

    #[test]
    fn written_messages_are_read_back() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &ToHarness::Output(Stream::Stderr, vec![0, 255, 10])).unwrap();
        let status = Status::Signaled { signal: 9, core: false };
        write_frame(&mut wire, &ToHarness::Exited { status, nanoseconds: u64::MAX }).unwrap();
        let mut from = wire.as_slice();
        match read_frame(&mut from).unwrap() {
            Some(ToHarness::Output(Stream::Stderr, bytes)) => assert_eq!(bytes, [0, 255, 10]),
            other => panic!("{other:?}"),
        }
        match read_frame(&mut from).unwrap() {
            Some(ToHarness::Exited { status: s, nanoseconds: u64::MAX }) => assert_eq!(s, status),
            other => panic!("{other:?}"),
        }
        assert!(read_frame::<ToHarness>(&mut from).unwrap().is_none());
    }

    #[test]
    fn a_truncated_frame_is_an_error() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &ToHarness::Stopped(20)).unwrap();
        wire.pop();
        assert!(read_frame::<ToHarness>(&mut wire.as_slice()).is_err());
        assert!(decode_frame::<ToHarness>(&wire).unwrap().is_none());
    }

    #[test]
    fn frames_are_decoded_one_by_one() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &ToHarness::Stopped(20)).unwrap();
        let first = wire.len();
        write_frame(&mut wire, &ToHarness::Ready).unwrap();
        let (message, used) = decode_frame::<ToHarness>(&wire).unwrap().unwrap();
        assert!(matches!(message, ToHarness::Stopped(20)));
        assert_eq!(used, first);
        let (message, _) = decode_frame::<ToHarness>(&wire[used..]).unwrap().unwrap();
        assert!(matches!(message, ToHarness::Ready));
    }

    #[test]
    fn an_absurd_length_is_an_error() {
        assert!(read_frame::<ToHarness>(&mut [0xff; 8].as_slice()).is_err());
    }
}
