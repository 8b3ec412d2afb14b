// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starting a program with everything that it is to inherit.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{bail, Context, Result};
use dune_protocol::{Credentials, Program};
use nix::errno::Errno;
use nix::sys::stat::{umask, Mode};
use nix::unistd::{setgid, setsid, setuid, Gid, Pid, Uid};

use super::streams::ChildStreams;

/// The outer error: the machine could not try. The inner one: execve failed.
pub fn spawn(program: &Program, streams: ChildStreams) -> Result<Result<Pid, Errno>> {
    let Some((name, arguments)) = program.argv.split_first() else { bail!("no program is given") };
    if !program.directory.is_dir() {
        bail!("the directory {} is not in the machine", program.directory.display());
    }
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env_clear()
        .envs(program.env.iter().map(|(k, v)| (k, v)))
        .current_dir(&program.directory)
        .stdin(Stdio::from(streams.stdin))
        .stdout(Stdio::from(streams.stdout))
        .stderr(Stdio::from(streams.stderr));
    let (mask, limits) = (program.umask, program.limits.clone());
    let (terminal, credentials) = (streams.terminal, program.credentials.clone());
    // SAFETY: the closure only makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            // A new session is also a new process group, to which signals are
            // sent.
            setsid()?;
            if let Some(fd) = terminal {
                if libc::ioctl(fd as i32, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            if let Some(mask) = mask {
                umask(Mode::from_bits_truncate(mask));
            }
            for &(which, soft, hard) in &limits {
                let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
                // A limit that this kernel does not have is ignored.
                libc::setrlimit(which as _, &limit);
            }
            match &credentials {
                Some(credentials) => become_user(credentials),
                None => Ok(()),
            }
        });
    }
    match command.spawn() {
        Ok(child) => Ok(Ok(Pid::from_raw(child.id() as i32))),
        Err(e) => match e.raw_os_error() {
            Some(errno) => Ok(Err(Errno::from_raw(errno))),
            None => Err(e).context("starting the program"),
        },
    }
}

fn become_user(user: &Credentials) -> io::Result<()> {
    // SAFETY: the kernel reads as many group numbers as the vector has.
    if unsafe { libc::setgroups(user.groups.len(), user.groups.as_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    setgid(Gid::from_raw(user.gid))?;
    setuid(Uid::from_raw(user.uid))?;
    Ok(())
}
