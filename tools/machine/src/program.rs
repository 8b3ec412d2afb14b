// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program to run: its arguments, directory, user and environment.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use dune_protocol::Program;
use nix::sys::resource::{getrlimit, Resource};
use nix::unistd::{getegid, geteuid, getgroups};

use crate::{Credentials, Result};

/// PATH of a program that was given no environment.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program with what this process would pass on to a child: directory,
/// environment, user, umask, limits.
pub(crate) fn inherit(program: &mut Program) -> Result<()> {
    use crate::error::Context;
    program.directory = env::current_dir().context("finding the working directory")?;
    program.env = env::vars_os().collect();
    program.umask = Some(current_umask());
    program.limits = inherit_limits();
    let groups = getgroups().unwrap_or_default();
    program.credentials = Some(Credentials {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        groups: groups.iter().map(|group| group.as_raw()).collect(),
    });
    Ok(())
}

/// A program that runs as root, in /, with a minimal environment.
pub(crate) fn plain(argv: Vec<OsString>) -> Program {
    let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    Program {
        argv,
        env: vec![pair("PATH", PATH), pair("HOME", "/root"), pair("LANG", "C.UTF-8")],
        directory: PathBuf::from("/"),
        umask: Some(0o022),
        ..Program::default()
    }
}

/// The soft and hard limits of this process, by number.
pub(crate) fn inherit_limits() -> Vec<(u32, u64, u64)> {
    [
        Resource::RLIMIT_CPU,
        Resource::RLIMIT_FSIZE,
        Resource::RLIMIT_DATA,
        Resource::RLIMIT_STACK,
        Resource::RLIMIT_CORE,
        Resource::RLIMIT_NOFILE,
        Resource::RLIMIT_AS,
    ]
    .into_iter()
    .filter_map(|which| getrlimit(which).ok().map(|(soft, hard)| (which as u32, soft, hard)))
    .collect()
}

/// The mask can only be read by setting it.
fn current_umask() -> u32 {
    use nix::sys::stat::{umask, Mode};
    let mask = umask(Mode::empty());
    umask(mask);
    mask.bits()
}
