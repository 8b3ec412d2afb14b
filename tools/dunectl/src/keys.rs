// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl keys: keys that guard-keys.ko keeps, through /dev/guard-keys.
//!
//! The interface is include/uapi/linux/guard-keys.h; docs/guard-keys.md describes the module.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use dune_machine::{Error, Result};
use nix::errno::Errno;
use serde_json::{json, Value};

use crate::cli::{Input, Json, KeyKind, KeysCommand, NewKey};
use crate::exit::{restore_sigpipe, End, REFUSED};
use crate::ioctl::{ask, Request};
use crate::text::{from_c, from_hex, to_hex};

const DEVICE: &str = "/dev/guard-keys";
const VERSION: u32 = 1;

const NAME: usize = 32;
const SECRET: usize = 64;
const TEXT: usize = 65536;
const NONCE: usize = 12;
const TAG: usize = 16;
const SIGNATURE: usize = 32;

/// Of a message that `encrypt` writes: the nonce, the tag, and the text.
const HEAD: usize = NONCE + TAG;

/// By the bit of `guard_keys_key.usage`.
const USES: [&str; 4] = ["encrypt", "decrypt", "sign", "verify"];

#[repr(C)]
#[derive(Default)]
struct Status {
    version: u32,
    guarded: u32,
}

#[repr(C)]
#[derive(Default)]
struct Key {
    handle: u64,
    kind: u32,
    usage: u32,
    kept: u32,
    index: u32,
    uses: u64,
    name: [u8; NAME],
}

#[repr(C)]
struct Put {
    key: Key,
    length: u32,
    reserved: u32,
    secret: [u8; SECRET],
}

#[repr(C)]
#[derive(Default)]
struct Crypt {
    handle: u64,
    from: u64,
    to: u64,
    extra: u64,
    length: u32,
    extra_length: u32,
    nonce: [u8; NONCE],
    reserved: u32,
    tag: [u8; TAG],
}

#[repr(C)]
#[derive(Default)]
struct Sign {
    handle: u64,
    text: u64,
    length: u32,
    reserved: u32,
    signature: [u8; SIGNATURE],
}

nix::ioctl_read!(get_status, b'k', 0, Status);
nix::ioctl_readwrite!(put_key, b'k', 1, Put);
nix::ioctl_readwrite!(generate_key, b'k', 2, Key);
nix::ioctl_readwrite!(encrypt_text, b'k', 3, Crypt);
nix::ioctl_readwrite!(decrypt_text, b'k', 4, Crypt);
nix::ioctl_readwrite!(sign_text, b'k', 5, Sign);
nix::ioctl_readwrite!(verify_text, b'k', 6, Sign);
nix::ioctl_readwrite!(list_key, b'k', 7, Key);
nix::ioctl_write_ptr!(forget_key, b'k', 8, u64);
nix::ioctl_none!(guard_keys, b'k', 9);

/// Runs a subcommand of dunectl keys.
pub fn run(command: &KeysCommand) -> Result<End> {
    restore_sigpipe();
    let changes = matches!(
        command,
        KeysCommand::Put { .. }
            | KeysCommand::Generate(_)
            | KeysCommand::Guard
            | KeysCommand::Forget { .. }
    );
    let device = Device::open(changes)?;
    match command {
        KeysCommand::Put { key, input } => device.put(key, input),
        KeysCommand::Generate(key) => device.generate(key),
        KeysCommand::Guard => Ok(device.guard()),
        KeysCommand::Encrypt { name, extra, input } => device.encrypt(name, extra, input),
        KeysCommand::Decrypt { name, extra, input } => device.decrypt(name, extra, input),
        KeysCommand::Sign { name, input } => device.sign(name, input),
        KeysCommand::Verify { name, signature, input } => device.verify(name, signature, input),
        KeysCommand::List(options) => device.list(options),
        KeysCommand::Forget { name } => device.forget(name),
    }
}

struct Device(File);

impl Device {
    /// Opens the device, for writing if keys are added or removed.
    fn open(changes: bool) -> Result<Self> {
        let file = File::options().read(true).write(changes).open(DEVICE).map_err(|e| {
            Error::Environment(match e.kind() {
                io::ErrorKind::NotFound => format!("no {DEVICE}: modprobe guard-keys"),
                io::ErrorKind::PermissionDenied => format!("{DEVICE} may not be opened: be root"),
                _ => format!("{DEVICE}: {e}"),
            })
        })?;
        let device = Device(file);
        let version = device.status()?.version;
        if version != VERSION {
            return Err(Error::Environment(format!(
                "guard-keys.ko has version {version} of the interface, and dunectl {VERSION}: \
                 install both from the same sources"
            )));
        }
        Ok(device)
    }

    fn ask<T>(&self, request: Request<T>, argument: &mut T) -> nix::Result<()> {
        ask(&self.0, request, argument)
    }

    fn status(&self) -> Result<Status> {
        let mut status = Status::default();
        self.ask(get_status, &mut status).map_err(|e| Error::Io {
            action: "asking guard-keys.ko for its status".to_owned(),
            source: e.into(),
        })?;
        Ok(status)
    }

    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut index = 0;
        loop {
            let mut key = Key { index, ..Key::default() };
            if self.ask(list_key, &mut key).is_err() {
                return keys;
            }
            index = key.index + 1;
            keys.push(key);
        }
    }

    fn handle(&self, name: &str) -> std::result::Result<u64, End> {
        let found = self.keys().into_iter().find(|key| key.kept == 1 && from_c(&key.name) == name);
        found.map(|key| key.handle).ok_or_else(|| refused(name, Errno::ENOENT))
    }

    fn put(&self, key: &NewKey, input: &Input) -> Result<End> {
        let Some(new) = new_key(key) else { return Ok(refused(&key.name, Errno::EINVAL)) };
        let mut secret = read(input, SECRET + 1)?;
        let mut put =
            Put { key: new, length: secret.len() as u32, reserved: 0, secret: [0; SECRET] };
        let good = match key.kind {
            KeyKind::Cipher => secret.len() == 32,
            KeyKind::Signer => (16..=SECRET).contains(&secret.len()),
        };
        if !good {
            eprintln!(
                "dunectl: the secret has {} bytes, and needs {}",
                secret.len(),
                if key.kind == KeyKind::Cipher { "32" } else { "16 to 64" }
            );
            return Ok(End::Code(REFUSED));
        }
        put.secret[..secret.len()].copy_from_slice(&secret);
        let result = self.ask(put_key, &mut put);
        secret.fill(0);
        put.secret.fill(0);
        Ok(done(&key.name, result))
    }

    fn generate(&self, key: &NewKey) -> Result<End> {
        let Some(mut new) = new_key(key) else { return Ok(refused(&key.name, Errno::EINVAL)) };
        let result = self.ask(generate_key, &mut new);
        Ok(done(&key.name, result))
    }

    fn guard(&self) -> End {
        // SAFETY: the request has no argument.
        let reason = match unsafe { guard_keys(self.0.as_raw_fd()) } {
            Ok(_) => {
                println!("{GUARDED}");
                return End::Code(0);
            }
            Err(Errno::ENODEV) => "the guard is not launched: dunectl guard launch",
            Err(Errno::EPERM) => "the guard is sealed, or you are not root",
            Err(Errno::EALREADY) => "they are guarded already",
            Err(Errno::ENOTEMPTY) => {
                "there are keys, which the kernel could read until now, and which would be lost: \
                 dunectl keys forget"
            }
            Err(other) => other.desc(),
        };
        eprintln!("dunectl: the keys are not guarded: {reason}");
        End::Code(REFUSED)
    }

    fn encrypt(&self, name: &str, extra: &str, input: &Input) -> Result<End> {
        let mut text = read(input, TEXT + 1)?;
        match self.crypt(encrypt_text, name, extra, &mut text, Crypt::default()) {
            Ok(message) => write(&[&message.nonce, &message.tag, &text]),
            Err(end) => Ok(end),
        }
    }

    fn decrypt(&self, name: &str, extra: &str, input: &Input) -> Result<End> {
        let message = read(input, HEAD + TEXT + 1)?;
        if message.len() < HEAD {
            return Ok(refused(name, Errno::EBADMSG));
        }
        let (head, text) = message.split_at(HEAD);
        let mut text = text.to_owned();
        let mut crypt = Crypt::default();
        crypt.nonce.copy_from_slice(&head[..NONCE]);
        crypt.tag.copy_from_slice(&head[NONCE..]);
        match self.crypt(decrypt_text, name, extra, &mut text, crypt) {
            Ok(_) => write(&[&text]),
            Err(end) => Ok(end),
        }
    }

    /// Encrypts or decrypts the text in place. The error was printed.
    fn crypt(
        &self,
        request: Request<Crypt>,
        name: &str,
        extra: &str,
        text: &mut [u8],
        message: Crypt,
    ) -> std::result::Result<Crypt, End> {
        let address = text.as_mut_ptr() as u64;
        let mut message = Crypt {
            handle: self.handle(name)?,
            from: address,
            to: address,
            extra: extra.as_ptr() as u64,
            length: text.len() as u32,
            extra_length: extra.len() as u32,
            ..message
        };
        self.ask(request, &mut message).map_err(|e| refused(name, e))?;
        Ok(message)
    }

    fn sign(&self, name: &str, input: &Input) -> Result<End> {
        let text = read(input, TEXT + 1)?;
        match self.signed(sign_text, name, &text, [0; SIGNATURE]) {
            Ok(signature) => {
                println!("{}", to_hex(&signature));
                Ok(End::Code(0))
            }
            Err(end) => Ok(end),
        }
    }

    fn verify(&self, name: &str, signature: &str, input: &Input) -> Result<End> {
        let Some(signature) = from_hex(signature) else {
            return Ok(refused(name, Errno::EKEYREJECTED));
        };
        let text = read(input, TEXT + 1)?;
        match self.signed(verify_text, name, &text, signature) {
            Ok(_) => {
                println!("the signature is right");
                Ok(End::Code(0))
            }
            Err(end) => Ok(end),
        }
    }

    fn signed(
        &self,
        request: Request<Sign>,
        name: &str,
        text: &[u8],
        signature: [u8; SIGNATURE],
    ) -> std::result::Result<[u8; SIGNATURE], End> {
        let mut message = Sign {
            handle: self.handle(name)?,
            text: text.as_ptr() as u64,
            length: text.len() as u32,
            reserved: 0,
            signature,
        };
        self.ask(request, &mut message).map_err(|e| refused(name, e))?;
        Ok(message.signature)
    }

    fn list(&self, options: &Json) -> Result<End> {
        let guarded = self.status()?.guarded != 0;
        let keys = self.keys();
        if options.json {
            let keys: Vec<Value> = keys.iter().map(json_of).collect();
            println!("{}", json!({ "guarded": guarded, "keys": keys }));
            return Ok(End::Code(0));
        }
        println!("{}", if guarded { GUARDED } else { NOT_GUARDED });
        for key in &keys {
            let (name, kind) = (from_c(&key.name), kind_of(key));
            println!("{name:31} {kind}  {:6} uses  {}", key.uses, uses_of(key).join(", "));
        }
        Ok(End::Code(0))
    }

    fn forget(&self, name: &str) -> Result<End> {
        let handle = match self.handle(name) {
            Ok(handle) => handle,
            Err(end) => return Ok(end),
        };
        // SAFETY: the kernel reads the handle, a u64.
        let result = unsafe { forget_key(self.0.as_raw_fd(), &handle) };
        Ok(done(name, result.map(drop)))
    }
}

const GUARDED: &str = "guarded: the kernel cannot read these keys";
const NOT_GUARDED: &str = "NOT guarded: the kernel can read these keys";

/// A new key, which is kept; None, if the name is too long.
fn new_key(new: &NewKey) -> Option<Key> {
    let mut key = Key { kind: new.kind as u32, kept: 1, ..Key::default() };
    key.name.get_mut(..new.name.len())?.copy_from_slice(new.name.as_bytes());
    key.usage = new.uses.iter().fold(0, |usage, use_| usage | 1 << *use_ as u32);
    if key.usage == 0 {
        key.usage = if new.kind == KeyKind::Cipher { 0b0011 } else { 0b1100 };
    }
    Some(key)
}

fn done(name: &str, result: nix::Result<()>) -> End {
    match result {
        Ok(()) => End::Code(0),
        Err(e) => refused(name, e),
    }
}

fn refused(name: &str, error: Errno) -> End {
    let reason = match error {
        Errno::ENOENT => "you have no such key (dunectl keys list)",
        Errno::EEXIST => "you have a key of this name: dunectl keys forget",
        Errno::EPERM => "the key may not be used for this (dunectl keys list)",
        Errno::EINVAL => {
            "a name has 1 to 31 letters, digits, \"-\", \"_\" and \".\", and a cipher encrypts and \
             decrypts, a signer signs and verifies"
        }
        Errno::EMSGSIZE => "a message has 65,536 bytes at most, and additional data 256",
        Errno::EBADMSG => "the message was changed, or is not of this key and additional data",
        Errno::EKEYREJECTED => "the signature is wrong",
        Errno::EKEYEXPIRED => "the key has encrypted as many messages as it can: make another one",
        Errno::EDQUOT | Errno::ENOSPC => "there are too many keys: dunectl keys forget",
        other => other.desc(),
    };
    eprintln!("dunectl: {name}: {reason}");
    End::Code(REFUSED)
}

/// Reads at most so many bytes of the input.
fn read(input: &Input, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let result = match &input.file {
        Some(path) => File::open(path).and_then(|f| f.take(most as u64).read_to_end(&mut bytes)),
        None => io::stdin().lock().take(most as u64).read_to_end(&mut bytes),
    };
    let name = input.file.as_ref().map_or("standard input".into(), |path| path.to_string_lossy());
    result.map_err(|e| Error::Io { action: format!("reading {name}"), source: e })?;
    Ok(bytes)
}

fn write(parts: &[&[u8]]) -> Result<End> {
    io::stdout()
        .write_all(&parts.concat())
        .map_err(|e| Error::Io { action: "writing the result".to_owned(), source: e })?;
    Ok(End::Code(0))
}

fn kind_of(key: &Key) -> &'static str {
    if key.kind == KeyKind::Cipher as u32 {
        "cipher"
    } else {
        "signer"
    }
}

fn uses_of(key: &Key) -> Vec<&'static str> {
    let bits = USES.iter().enumerate().filter(|(bit, _)| key.usage >> bit & 1 == 1);
    bits.map(|(_, name)| *name).collect()
}

fn json_of(key: &Key) -> Value {
    json!({
        "name": from_c(&key.name),
        "kind": kind_of(key),
        "may": uses_of(key),
        "uses": key.uses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::KeyUse;

    /// The sizes that <linux/guard-keys.h> has, which are in the requests' numbers.
    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<Status>(), 8);
        assert_eq!(size_of::<Key>(), 64);
        assert_eq!(size_of::<Put>(), 136);
        assert_eq!(size_of::<Crypt>(), 72);
        assert_eq!(size_of::<Sign>(), 56);
    }

    #[test]
    fn a_new_key_may_do_all_that_its_kind_does() {
        let new = |name: &str, uses| NewKey { name: name.into(), kind: KeyKind::Signer, uses };
        let key = new_key(&new("a", vec![])).expect("the name is short");
        assert_eq!(uses_of(&key), ["sign", "verify"]);
        let key = new_key(&new("a", vec![KeyUse::Verify])).expect("the name is short");
        assert_eq!(uses_of(&key), ["verify"]);
        assert!(new_key(&new(&"a".repeat(33), vec![])).is_none());
    }
}
