// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl guard: the hypervisor beneath this computer's kernel, through /dev/dune-guard.
//!
//! The interface is include/uapi/linux/dune-guard.h; docs/guard.md describes the guard.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use dune_machine::{Error, Result};
use serde_json::{json, Map, Value};

use crate::cli::{GuardCommand, Json, PrivilegesOptions};
use crate::content;
use crate::crossings;
use crate::exit::{restore_sigpipe, End};
use crate::privileges::{self, Privileges};

const DEVICE: &str = "/dev/dune-guard";
const VERSION: u32 = 1;

/// The guard refused; its reason was printed.
pub const REFUSED: u8 = 1;

/// By `dune_guard_status.state`.
const STATES: [&str; 3] = ["off", "launched", "sealed"];

/// By the index of `dune_guard_status.exits`.
const EXITS: [&str; 9] = [
    "vmmcall",
    "msr-read",
    "msr-write",
    "svm-instruction",
    "invd",
    "memory",
    "step",
    "init",
    "port",
];

/// By `dune_guard_entry.kind`: a word for --json, what happened, and what the value is.
const KINDS: [(&str, &str); 13] = [
    ("msr-read", "a read of a register was refused: MSR"),
    ("msr-write", "a write of a register was refused: MSR"),
    ("svm-instruction", "an instruction of SVM's was refused: exit code"),
    (
        "write",
        "a write to the guard's or a module's memory or device was dropped: physical address",
    ),
    ("no-memory", "an access where neither memory nor a device is: physical address"),
    ("call", "a VMMCALL was refused: number"),
    ("init", "the CPU got INIT, and is parked: value"),
    ("port", "an access to a port of sleep or reset, or of a module, was refused: port"),
    ("enter", "a guarded module was entered at no entry point, and has no privilege: RIP"),
    ("exit", "a guarded module was left neither by a call nor by a return: RIP"),
    ("pci", "a write to PCI configuration space was refused: address in port CF8h"),
    ("content", "a loaded module is not the registered one: address"),
    ("patch", "a patch of a guarded module is not allowed, and has no effect: physical address"),
];

/// By `dune_guard_registration.state`: a word for --json, and a text.
const REGISTRATIONS: [(&str, &str); 5] = [
    ("waiting", "not loaded"),
    ("armed", "loaded, and guarded"),
    ("differs", "loaded, and not the registered module"),
    ("failed", "loaded, and not guarded: dmesg has the reason"),
    ("ended", "loaded, and guarded no more: its exit has returned"),
];

/// By `dune_guard_registration.finding`.
const FINDINGS: [&str; 7] =
    ["nothing", "its size", "bytes", "a relocation", "a patch", "a gap", "its place"];

/// By `dune_guard_registration.region`.
const REGIONS: [&str; 8] =
    ["text", "rodata", "ro-after-init", "data", "init-text", "init-rodata", "init-data", "per-cpu"];

#[repr(C)]
struct Answer {
    text: [u8; 200],
}

#[repr(C)]
#[derive(Default)]
struct Status {
    version: u32,
    state: u32,
    cpus: u32,
    reserved: u32,
    address: u64,
    memory: u64,
    exits: [u64; EXITS.len()],
}

#[repr(C)]
#[derive(Default)]
struct Entry {
    index: u64,
    time: u64,
    cpu: u32,
    kind: u32,
    value: u64,
}

#[repr(C)]
struct Registration {
    description: u64,
    size: u32,
    index: u32,
    state: u32,
    error: i32,
    finding: u32,
    region: u32,
    offset: u32,
    entries: u32,
    privileges: u64,
    privilege_count: u32,
    flags: u32,
    name: [u8; 64],
    text: [u8; 200],
}

impl Default for Registration {
    fn default() -> Registration {
        Registration {
            description: 0,
            size: 0,
            index: 0,
            state: 0,
            error: 0,
            finding: 0,
            region: 0,
            offset: 0,
            entries: 0,
            privileges: 0,
            privilege_count: 0,
            flags: 0,
            name: [0; 64],
            text: [0; 200],
        }
    }
}

const READ: u64 = 2;
const WRITE: u64 = 1;

/// `dune_guard_registration.flags`
const COUNT_CROSSINGS: u32 = 1;

/// `struct dune_guard_crossings`
#[repr(C)]
#[derive(Debug, Default, Clone)]
pub struct Row {
    index: u32,
    row: u32,
    /// Of a function; 0: of those that the guard's table had no room for.
    pub address: u64,
    /// By `crossings::CROSSINGS`.
    pub crossings: [u64; crossings::CROSSINGS.len()],
}

/// `_IOC('g', number)` of the kernel's ioctl.h.
const fn request<T>(direction: u64, number: u64) -> u64 {
    direction << 30 | (size_of::<T>() as u64) << 16 | (b'g' as u64) << 8 | number
}

const CHECK: u64 = request::<Answer>(READ, 0);
const LAUNCH: u64 = request::<Answer>(READ, 1);
const SEAL: u64 = request::<Answer>(READ, 2);
const STOP: u64 = request::<Answer>(READ, 3);
const GET_STATUS: u64 = request::<Status>(READ, 4);
const GET_LOG: u64 = request::<Entry>(READ | WRITE, 5);
const REGISTER: u64 = request::<Registration>(READ | WRITE, 6);
const UNREGISTER: u64 = request::<Registration>(READ | WRITE, 7);
const GET_REGISTRATION: u64 = request::<Registration>(READ | WRITE, 8);
const GET_CROSSINGS: u64 = request::<Row>(READ | WRITE, 9);

/// Runs a subcommand of dunectl guard.
pub fn run(command: &GuardCommand) -> Result<End> {
    // These need no device, and no root.
    match command {
        GuardCommand::Describe(options) => return content::describe(options),
        GuardCommand::Bind(options) => return content::bind(options),
        GuardCommand::Encode(options) => return content::encode(options),
        GuardCommand::Privileges(options) => return privileges(options),
        _ => {}
    }
    restore_sigpipe();
    let device = open()?;
    match command {
        GuardCommand::Describe(_)
        | GuardCommand::Bind(_)
        | GuardCommand::Encode(_)
        | GuardCommand::Privileges(_) => {
            unreachable!("handled above")
        }
        GuardCommand::Check(options) => check(&device, options),
        GuardCommand::Launch => ask(&device, LAUNCH, "launched"),
        GuardCommand::Seal => ask(&device, SEAL, "sealed"),
        GuardCommand::Stop => ask(&device, STOP, "stopped"),
        GuardCommand::Register { description, count_crossings } => {
            register(&device, description, *count_crossings)
        }
        GuardCommand::Crossings(options) => crossings::run(&device, options),
        GuardCommand::Unregister { name } => unregister(&device, name),
        GuardCommand::Status(options) => status(&device, options),
        GuardCommand::Log(options) => log(&device, options),
    }
}

/// Resolves a file's privileges, and prints or writes the list.
fn privileges(options: &PrivilegesOptions) -> Result<End> {
    restore_sigpipe();
    let wrong = |why: String| Error::Usage(format!("{}: {why}", options.file.display()));
    let text = fs::read_to_string(&options.file).map_err(|e| wrong(e.to_string()))?;
    let parsed: Privileges = toml::from_str(&text).map_err(|e| wrong(e.message().to_owned()))?;
    let list = privileges::resolve(&parsed.privileges, Path::new("/sys")).map_err(wrong)?;
    if let Some(path) = &options.output {
        let action = format!("writing {}", path.display());
        fs::write(path, privileges::to_bytes(&list))
            .map_err(|source| Error::Io { action, source })?;
        return Ok(End::Code(0));
    }
    for entry in &list {
        println!("{entry}");
    }
    Ok(End::Code(0))
}

fn open() -> Result<File> {
    File::options().read(true).write(true).open(DEVICE).map_err(|e| {
        Error::Environment(match e.kind() {
            io::ErrorKind::NotFound => format!("no {DEVICE}: modprobe dune-guard"),
            io::ErrorKind::PermissionDenied => format!("{DEVICE} is for root alone"),
            _ => format!("{DEVICE}: {e}"),
        })
    })
}

fn ioctl<T>(device: &File, request: u64, argument: &mut T) -> io::Result<()> {
    // SAFETY: the request's number has the size of T, which has only integers, and the kernel
    // accesses no more than that.
    match unsafe { libc::ioctl(device.as_raw_fd(), request as _, std::ptr::from_mut(argument)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a request. The inner result is the guard's: Err is its reason.
fn answer(device: &File, request: u64) -> std::result::Result<(), String> {
    let mut answer = Answer { text: [0; 200] };
    ioctl(device, request, &mut answer).map_err(|e| reason(&answer.text, &e))
}

/// A string of C's.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn reason(answer: &[u8], error: &io::Error) -> String {
    match text(answer) {
        empty if empty.is_empty() => error.to_string(),
        reason => reason,
    }
}

fn ask(device: &File, request: u64, done: &str) -> Result<End> {
    Ok(match answer(device, request) {
        Ok(()) => {
            println!("the guard is {done}");
            End::Code(0)
        }
        Err(reason) => {
            eprintln!("dunectl: the guard is not {done}: {reason}");
            End::Code(REFUSED)
        }
    })
}

fn check(device: &File, options: &Json) -> Result<End> {
    let result = answer(device, CHECK);
    if options.json {
        println!("{}", json!({ "launchable": result.is_ok(), "reason": result.as_ref().err() }));
    } else {
        match &result {
            Ok(()) => println!("the guard can be launched"),
            Err(reason) => println!("the guard cannot be launched: {reason}"),
        }
    }
    Ok(End::Code(if result.is_ok() { 0 } else { REFUSED }))
}

fn register(device: &File, path: &Path, count_crossings: bool) -> Result<End> {
    let (name, bound) = content::bound(path)?;
    let registered = bound.and_then(|bound| {
        let list = privileges::resolve(&bound.privileges, Path::new("/sys"))?;
        let bytes = privileges::to_bytes(&list);
        let size = bound.description.len();
        // The kernel wants 4 bytes' alignment, which every allocation of this size has.
        let mut request = Registration {
            description: bound.description.as_ptr() as u64,
            size: u32::try_from(size).map_err(|_| "it is too large".to_owned())?,
            privileges: bytes.as_ptr() as u64,
            privilege_count: u32::try_from(list.len()).map_err(|e| e.to_string())?,
            flags: if count_crossings { COUNT_CROSSINGS } else { 0 },
            ..Registration::default()
        };
        ioctl(device, REGISTER, &mut request).map_err(|e| reason(&request.text, &e))
    });
    Ok(match registered {
        Ok(()) => match registrations(device)?.into_iter().find(|one| text(&one.name) == name) {
            // It was loaded already, and is not guarded.
            Some(one) if one.state == 2 || one.state == 3 => {
                eprintln!("dunectl: {name} is registered, but is {}", describe(&one));
                End::Code(REFUSED)
            }
            _ => {
                println!("{name} is registered");
                End::Code(0)
            }
        },
        Err(reason) => {
            eprintln!("dunectl: {name} is not registered: {reason}");
            End::Code(REFUSED)
        }
    })
}

fn unregister(device: &File, name: &str) -> Result<End> {
    let mut request = Registration::default();
    // The last byte stays 0.
    let len = name.len().min(request.name.len() - 1);
    request.name[..len].copy_from_slice(&name.as_bytes()[..len]);
    Ok(match ioctl(device, UNREGISTER, &mut request) {
        Ok(()) => {
            println!("{name} is not registered any more");
            End::Code(0)
        }
        Err(e) => {
            eprintln!("dunectl: {name} is not unregistered: {}", reason(&request.text, &e));
            End::Code(REFUSED)
        }
    })
}

fn registrations(device: &File) -> Result<Vec<Registration>> {
    let mut all = Vec::new();
    loop {
        let mut one = Registration { index: all.len() as u32, ..Registration::default() };
        match ioctl(device, GET_REGISTRATION, &mut one) {
            Ok(()) => all.push(one),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(all),
            Err(e) => {
                let action = "asking the guard for its registrations".to_owned();
                return Err(Error::Io { action, source: e });
            }
        }
    }
}

/// The counts of a registered module's crossings. The inner result is the guard's: Err is its
/// reason.
pub fn count_crossings(
    device: &File,
    name: &str,
) -> Result<std::result::Result<Vec<Row>, &'static str>> {
    let index = registrations(device)?.iter().position(|one| text(&one.name) == name);
    let Some(index) = index else { return Ok(Err("it is not registered")) };
    let mut next = Row { index: index as u32, ..Row::default() };
    let mut rows = Vec::new();
    loop {
        match ioctl(device, GET_CROSSINGS, &mut next) {
            Ok(()) => rows.push(next.clone()),
            Err(e) => match e.raw_os_error() {
                Some(libc::ENOENT) => return Ok(Ok(rows)),
                Some(libc::ENODATA) => {
                    return Ok(Err("it was registered without --count-crossings"))
                }
                Some(libc::EINVAL) => return Ok(Err("the guard is not launched")),
                _ => {
                    let action = "asking the guard for crossings".to_owned();
                    return Err(Error::Io { action, source: e });
                }
            },
        }
        next.row += 1;
    }
}

fn word<T: Copy>(words: &[T], index: u32, unknown: T) -> T {
    words.get(index as usize).copied().unwrap_or(unknown)
}

fn describe(one: &Registration) -> String {
    let (_, state) = word(&REGISTRATIONS, one.state, ("unknown", "in an unknown state"));
    if one.state != 2 {
        return state.to_owned();
    }
    let (what, region) = (word(&FINDINGS, one.finding, "?"), word(&REGIONS, one.region, "?"));
    format!("{state}: {what} at {region}+{:#x}", one.offset)
}

fn read_status(device: &File) -> Result<Status> {
    let mut status = Status::default();
    ioctl(device, GET_STATUS, &mut status).map_err(|e| Error::Io {
        action: "asking the guard for its status".to_owned(),
        source: e,
    })?;
    if status.version != VERSION {
        return Err(Error::Environment(format!(
            "dune-guard.ko has version {} of the interface, and dunectl {VERSION}: install both \
             from the same sources",
            status.version
        )));
    }
    Ok(status)
}

fn state(status: &Status) -> &'static str {
    STATES.get(status.state as usize).copied().unwrap_or("unknown")
}

fn status(device: &File, options: &Json) -> Result<End> {
    let status = read_status(device)?;
    let registrations = registrations(device)?;
    if options.json {
        let modules: Vec<_> = registrations
            .iter()
            .map(|one| {
                let (state, _) = word(&REGISTRATIONS, one.state, ("unknown", ""));
                let differs = one.state == 2;
                json!({
                    "name": text(&one.name),
                    "state": state,
                    "entries": one.entries,
                    "error": (one.state == 3).then_some(one.error),
                    "finding": differs.then(|| word(&FINDINGS, one.finding, "?")),
                    "region": differs.then(|| word(&REGIONS, one.region, "?")),
                    "offset": differs.then_some(one.offset),
                })
            })
            .collect();
        let exits: Map<String, Value> = EXITS
            .iter()
            .zip(status.exits)
            .map(|(name, n)| ((*name).to_owned(), n.into()))
            .collect();
        println!(
            "{}",
            json!({
                "state": state(&status),
                "cpus": status.cpus,
                "address": status.address,
                "memory": status.memory,
                "exits": exits,
                "registrations": modules,
            })
        );
        return Ok(End::Code(0));
    }
    println!("state   {}", state(&status));
    if status.state != 0 {
        println!("cpus    {}", status.cpus);
        println!("memory  {} KB at {:#x}", status.memory >> 10, status.address);
        for (name, number) in EXITS.iter().zip(status.exits) {
            println!("exits   {name:15} {number}");
        }
        for one in &registrations {
            println!("module  {:15} {}", text(&one.name), describe(one));
        }
    }
    Ok(End::Code(0))
}

fn log(device: &File, options: &Json) -> Result<End> {
    let mut entries = Vec::new();
    let mut entry = Entry::default();
    loop {
        match ioctl(device, GET_LOG, &mut entry) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => break,
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                eprintln!("dunectl: the guard is off, and has no log: dunectl guard launch");
                return Ok(End::Code(REFUSED));
            }
            Err(e) => {
                let action = "reading the guard's log".to_owned();
                return Err(Error::Io { action, source: e });
            }
        }
        let (word, text) =
            KINDS.get(entry.kind as usize).copied().unwrap_or(("unknown", "unknown: value"));
        if options.json {
            entries.push(json!({
                "index": entry.index,
                "time": entry.time,
                "cpu": entry.cpu,
                "kind": word,
                "value": entry.value,
            }));
        } else {
            println!("{} CPU {}: {text} {:#x}", entry.time, entry.cpu, entry.value);
        }
        entry.index += 1;
    }
    if options.json {
        println!("{}", Value::Array(entries));
    }
    Ok(End::Code(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that <linux/dune-guard.h> has, as a C compiler computes them.
    #[test]
    fn requests_are_those_of_the_header() {
        assert_eq!(CHECK, 0x80c8_6700);
        assert_eq!(STOP, 0x80c8_6703);
        assert_eq!(GET_STATUS, 0x8068_6704);
        assert_eq!(GET_LOG, 0xc020_6705);
        assert_eq!(REGISTER, 0xc140_6706);
        assert_eq!(GET_REGISTRATION, 0xc140_6708);
        assert_eq!(GET_CROSSINGS, 0xc040_6709);
    }

    #[test]
    fn an_unknown_state_has_a_name() {
        assert_eq!(state(&Status { state: 2, ..Status::default() }), "sealed");
        assert_eq!(state(&Status { state: 9, ..Status::default() }), "unknown");
    }
}
