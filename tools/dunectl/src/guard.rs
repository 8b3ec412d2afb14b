// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl guard: the hypervisor beneath this computer's kernel, through /dev/dune-guard.
//!
//! The interface is include/uapi/linux/dune-guard.h; docs/guard.md describes the guard.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use dune_machine::{Error, Result};
use nix::errno::Errno;
use serde_json::{json, Map, Value};

use crate::cli::{GuardCommand, Json, PrivilegesOptions};
use crate::content::{self, Choice};
use crate::crossings;
use crate::exit::{restore_sigpipe, End, REFUSED};
use crate::ioctl::{ask, Request};
use crate::privileges::{self, Privileges};
use crate::text::from_c;

const DEVICE: &str = "/dev/dune-guard";
const VERSION: u32 = 3;

/// By `dune_guard_status.state`.
const STATES: [&str; 3] = ["off", "launched", "sealed"];
const LAUNCHED: u32 = 1;

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
const REGISTRATIONS: [(&str, &str); 6] = [
    ("waiting", "not loaded"),
    ("armed", "loaded, and guarded"),
    ("differs", "loaded, and not the registered module"),
    ("failed", "loaded, and not guarded: dmesg has the reason"),
    ("ended", "loaded, and guarded no more: its exit has returned"),
    ("stopped", "loaded, and stopped for good: its code runs without privileges"),
];

/// Of these, `DUNE_GUARD_DIFFERS` and `DUNE_GUARD_FAILED`.
const DIFFERS: u32 = 2;
const FAILED: u32 = 3;

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
    memory_left: u32,
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
    choice: u32,
    reserved: u32,
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
    on_suspicion: u32,
    leaf_count: u32,
    leaves: u64,
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
            on_suspicion: 0,
            leaf_count: 0,
            leaves: 0,
        }
    }
}

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

nix::ioctl_read!(check_launch, b'g', 0, Answer);
nix::ioctl_read!(launch, b'g', 1, Answer);
nix::ioctl_read!(seal, b'g', 2, Answer);
nix::ioctl_read!(stop, b'g', 3, Answer);
nix::ioctl_read!(get_status, b'g', 4, Status);
nix::ioctl_readwrite!(get_log, b'g', 5, Entry);
nix::ioctl_readwrite!(register_module, b'g', 6, Registration);
nix::ioctl_readwrite!(unregister_module, b'g', 7, Registration);
nix::ioctl_readwrite!(get_registration, b'g', 8, Registration);
nix::ioctl_readwrite!(get_crossings, b'g', 9, Row);

/// Runs a subcommand of dunectl guard.
pub fn run(command: &GuardCommand) -> Result<End> {
    // These need no device, and no root.
    match command {
        GuardCommand::Describe(options) => return content::describe(options),
        GuardCommand::Bind(options) => return content::bind(options),
        GuardCommand::Leaves(options) => return content::leaves(options),
        GuardCommand::Encode(options) => return content::encode(options),
        GuardCommand::Privileges(options) => return privileges(options),
        _ => {}
    }
    restore_sigpipe();
    let device = open()?;
    match command {
        GuardCommand::Describe(_)
        | GuardCommand::Bind(_)
        | GuardCommand::Leaves(_)
        | GuardCommand::Encode(_)
        | GuardCommand::Privileges(_) => {
            unreachable!("handled above")
        }
        GuardCommand::Check(options) => check(&device, options),
        GuardCommand::Launch => change(&device, launch, "launched"),
        GuardCommand::Seal => change(&device, seal, "sealed"),
        GuardCommand::Stop => change(&device, stop, "stopped"),
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

/// Makes a request. Err is the guard's reason.
fn answer(device: &File, request: Request<Answer>) -> std::result::Result<(), String> {
    let mut answer = Answer { text: [0; 200] };
    ask(device, request, &mut answer).map_err(|e| reason(&answer.text, e))
}

fn reason(answer: &[u8], error: Errno) -> String {
    match from_c(answer) {
        empty if empty.is_empty() => error.desc().to_owned(),
        reason => reason,
    }
}

fn change(device: &File, request: Request<Answer>, done: &str) -> Result<End> {
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
    let result = answer(device, check_launch);
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
    let is_launched = read_status(device)?.state == LAUNCHED;
    let (name, bound) = content::bound(path, is_launched)?;
    let registered = bound.and_then(|bound| {
        let list = privileges::resolve(&bound.privileges, Path::new("/sys"))?;
        let bytes = privileges::to_bytes(&list);
        let size = bound.description.len();
        let mut request = Registration {
            description: bound.description.as_ptr() as u64,
            size: u32::try_from(size).map_err(|_| "it is too large".to_owned())?,
            privileges: bytes.as_ptr() as u64,
            privilege_count: u32::try_from(list.len()).map_err(|e| e.to_string())?,
            leaves: bound.leaves.as_ptr() as u64,
            leaf_count: bound.leaf_count,
            flags: if count_crossings { COUNT_CROSSINGS } else { 0 },
            on_suspicion: bound.on_suspicion as u32,
            ..Registration::default()
        };
        ask(device, register_module, &mut request).map_err(|e| reason(&request.text, e))
    });
    Ok(match registered {
        Ok(()) => match registrations(device)?.into_iter().find(|one| from_c(&one.name) == name) {
            // It was loaded already, and is not guarded.
            Some(one) if one.state == DIFFERS || one.state == FAILED => {
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
    Ok(match ask(device, unregister_module, &mut request) {
        Ok(()) => {
            println!("{name} is not registered any more");
            End::Code(0)
        }
        Err(e) => {
            eprintln!("dunectl: {name} is not unregistered: {}", reason(&request.text, e));
            End::Code(REFUSED)
        }
    })
}

fn registrations(device: &File) -> Result<Vec<Registration>> {
    let mut all = Vec::new();
    loop {
        let mut one = Registration { index: all.len() as u32, ..Registration::default() };
        match ask(device, get_registration, &mut one) {
            Ok(()) => all.push(one),
            Err(Errno::ENOENT) => return Ok(all),
            Err(e) => {
                let action = "asking the guard for its registrations".to_owned();
                return Err(Error::Io { action, source: e.into() });
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
    let index = registrations(device)?.iter().position(|one| from_c(&one.name) == name);
    let Some(index) = index else { return Ok(Err("it is not registered")) };
    let mut next = Row { index: index as u32, ..Row::default() };
    let mut rows = Vec::new();
    loop {
        match ask(device, get_crossings, &mut next) {
            Ok(()) => rows.push(next.clone()),
            Err(Errno::ENOENT) => return Ok(Ok(rows)),
            Err(Errno::ENODATA) => return Ok(Err("it was registered without --count-crossings")),
            Err(Errno::EINVAL) => return Ok(Err("the guard is not launched")),
            Err(e) => {
                let action = "asking the guard for crossings".to_owned();
                return Err(Error::Io { action, source: e.into() });
            }
        }
        next.row += 1;
    }
}

fn word<T: Copy>(words: &[T], index: u32, unknown: T) -> T {
    words.get(index as usize).copied().unwrap_or(unknown)
}

fn describe(one: &Registration) -> String {
    let (_, state) = word(&REGISTRATIONS, one.state, ("unknown", "in an unknown state"));
    if one.state != DIFFERS {
        return state.to_owned();
    }
    let (what, region) = (word(&FINDINGS, one.finding, "?"), word(&REGIONS, one.region, "?"));
    format!("{state}: {what} at {region}+{:#x}", one.offset)
}

fn read_status(device: &File) -> Result<Status> {
    let mut status = Status::default();
    ask(device, get_status, &mut status).map_err(|e| Error::Io {
        action: "asking the guard for its status".to_owned(),
        source: e.into(),
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
                let differs = one.state == DIFFERS;
                json!({
                    "name": from_c(&one.name),
                    "state": state,
                    "entries": one.entries,
                    "on-suspicion": Choice::word(one.on_suspicion),
                    "error": (one.state == FAILED).then_some(one.error),
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
                "memory_left": status.memory_left,
                "exits": exits,
                "registrations": modules,
            })
        );
        return Ok(End::Code(0));
    }
    println!("state   {}", state(&status));
    if status.state != 0 {
        println!("cpus    {}", status.cpus);
        println!(
            "memory  {} KB at {:#x}, {} KB left for modules",
            status.memory >> 10,
            status.address,
            status.memory_left >> 10
        );
        for (name, number) in EXITS.iter().zip(status.exits) {
            println!("exits   {name:15} {number}");
        }
        for one in &registrations {
            let name = from_c(&one.name);
            println!("module  {name:15} {}", describe(one));
            let choice = Choice::word(one.on_suspicion).unwrap_or("unknown");
            println!("choice  {name:15} on suspicious activity: {choice}");
        }
    }
    Ok(End::Code(0))
}

fn log(device: &File, options: &Json) -> Result<End> {
    let mut entries = Vec::new();
    let mut entry = Entry::default();
    loop {
        match ask(device, get_log, &mut entry) {
            Ok(()) => {}
            Err(Errno::ENOENT) => break,
            Err(Errno::EINVAL) => {
                eprintln!("dunectl: the guard is off, and has no log: dunectl guard launch");
                return Ok(End::Code(REFUSED));
            }
            Err(e) => {
                let action = "reading the guard's log".to_owned();
                return Err(Error::Io { action, source: e.into() });
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
                "on-suspicion": Choice::word(entry.choice),
            }));
        } else {
            let choice = Choice::word(entry.choice)
                .map_or_else(String::new, |choice| format!("; on suspicious activity: {choice}"));
            println!("{} CPU {}: {text} {:#x}{choice}", entry.time, entry.cpu, entry.value);
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

    /// The sizes that <linux/dune-guard.h> has, which are in the requests' numbers.
    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<Answer>(), 200);
        assert_eq!(size_of::<Status>(), 104);
        assert_eq!(size_of::<Entry>(), 40);
        assert_eq!(size_of::<Registration>(), 336);
        assert_eq!(size_of::<Row>(), 64);
    }

    #[test]
    fn an_unknown_state_has_a_name() {
        assert_eq!(state(&Status { state: 2, ..Status::default() }), "sealed");
        assert_eq!(state(&Status { state: 9, ..Status::default() }), "unknown");
    }
}
