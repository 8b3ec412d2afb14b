// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator: its command line, its process, its end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dune_protocol::{PORT_NAME, ROOT_TAG};
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::signal::{killpg, SigSet, SigmaskHow, Signal};
use nix::unistd::Pid;

use crate::error::{Context, Error, Result};
use crate::machine::Config;

const PROGRAM: &str = "qemu-system-x86_64";

/// phys-bits: TCG refuses a nested CR3 above the physical width, and with the
/// shared root CR3 is a virtual address of 47 bits.
const CPU: &str = "EPYC,+svm,+npt,phys-bits=48";

/// Devices that no one looks at cost time in a boot.
const MACHINE: &str = "pc,usb=off,vmport=off,graphics=off";

/// panic=-1 resets at once, which ends the emulator (-no-reboot). A hung
/// machine is sent an NMI, so that it panics and says where it is.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet loglevel=4 panic=-1 unknown_nmi_panic \
     8250.nr_uarts=1 tsc=reliable rcupdate.rcu_expedited=1 cryptomgr.notests";

/// QEMU's first processor must not enter guests while others run: XRSTOR, on
/// any processor, clears a flag in the *first* one's state, without a lock
/// (cpu_clear_ignne() in target/i386/tcg). The same word holds whether that
/// processor is in a guest, so now and then its VMRUN or #VMEXIT is half
/// undone, and the guest or the machine dies. Programs get as many processors
/// as were asked for; the first is one more, for the kernel's own work.
const SEVERAL_ARGUMENTS: &str = "isolcpus=0";

/// In counting mode every run must take the same way: no randomness.
const COUNTING_ARGUMENTS: &str = "nokaslr norandmaps random.trust_cpu=off";

pub struct Emulator {
    child: Child,
    ended: Option<ExitStatus>,
    monitor: UnixStream,
    console: File,
    messages: File,
}

impl Emulator {
    /// Starts it; the stream is the other end of the agent's port.
    ///
    /// The kernel kills it when the calling thread ends, however it ends.
    pub fn start(config: &Config, initramfs: &Path) -> Result<(Self, UnixStream)> {
        let pair = || UnixStream::pair().context("making a socket pair");
        let file = |name| {
            let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC).context("making a memory file")?;
            Ok::<_, Error>(File::from(fd))
        };
        let (port, port_there) = pair()?;
        let (monitor, monitor_there) = pair()?;
        let (console, messages) = (file(c"console")?, file(c"messages")?);

        let mut command = Command::new(PROGRAM);
        command.args(arguments(config, initramfs));
        command.args(["-chardev", &format!("socket,id=agent,fd={}", port_there.as_raw_fd())]);
        command.args(["-chardev", &format!("socket,id=monitor,fd={}", monitor_there.as_raw_fd())]);
        let console_there = console.try_clone().context("copying a file descriptor")?;
        let path = format!("file,id=console,path=/proc/self/fd/{}", console_there.as_raw_fd());
        command.args(["-chardev", &path]);
        let both = [messages.try_clone(), messages.try_clone()];
        let [out, err] = both.map(|file| file.context("copying a file descriptor"));
        command.stdin(Stdio::null()).stdout(out?).stderr(err?);
        let inherited: [OwnedFd; 3] =
            [port_there.into(), monitor_there.into(), console_there.into()];
        detach(&mut command, inherited);
        let child = command.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                let lacking = "is missing: install qemu-system-x86, or run ./setup";
                Error::Environment(format!("{PROGRAM} {lacking}"))
            }
            _ => Error::Io { what: format!("starting {PROGRAM}"), source: e },
        })?;
        Ok((Emulator { child, ended: None, monitor, console, messages }, port))
    }

    /// What the kernel wrote to the serial console.
    pub fn console(&mut self) -> String {
        read_all(&mut self.console).replace('\r', "")
    }

    /// What the emulator itself said, without the chatter.
    pub fn messages(&mut self) -> String {
        let text = read_all(&mut self.messages);
        let lines = text.lines().filter(|line| !line.contains("TCG doesn't support requested"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Makes a hung kernel panic, so that the console shows where it hangs.
    pub fn interrupt(&mut self) {
        if self.monitor.write_all(b"nmi\n").is_ok() {
            self.wait(Duration::from_secs(30));
        }
    }

    /// Waits for its end for so long.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        while self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            if self.ended.is_none() {
                if begin.elapsed() >= limit {
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        self.ended
    }

    pub fn kill(&mut self) {
        if self.ended.is_none() {
            // Its session is a process group too: helpers of the emulator.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_all(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A session of its own (Ctrl-C is for the program, not for the emulator),
/// which the kernel kills when we die, with the given descriptors open.
fn detach(command: &mut Command, inherited: [OwnedFd; 3]) {
    let parent = std::process::id() as i32;
    // SAFETY: the closure makes system calls only and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            for fd in &inherited {
                fcntl(fd.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            Ok(())
        });
    }
}

fn arguments(config: &Config, initramfs: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(OsString::from));
    let word = |text: &'static str| OsStr::new(text);

    add(&["-no-user-config", "-nodefaults", "-no-reboot"].map(OsStr::new));
    add(&["-display", "none", "-machine", MACHINE].map(OsStr::new));
    add(&[word("-cpu"), cpu(config).as_ref()]);
    match config.counting {
        true => add(&[
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=0,sleep=off",
            "-seed",
            "1",
            "-rtc",
            "base=2026-01-01,clock=vm",
        ]
        .map(OsStr::new)),
        false => add(&["-accel", "tcg,thread=multi"].map(OsStr::new)),
    }
    let first = if config.cpus > 1 { 1 } else { 0 };
    add(&[word("-smp"), (first + config.cpus).to_string().as_ref()]);
    add(&[word("-m"), format!("{}M", config.memory).as_ref()]);
    add(&[word("-kernel"), config.kernel.image().as_ref()]);
    add(&[word("-initrd"), initramfs.as_ref()]);
    add(&[word("-append"), kernel_arguments(config).as_ref()]);

    add(&["-serial", "chardev:console", "-device", "virtio-serial-pci"].map(OsStr::new));
    let port = format!("virtserialport,chardev=agent,name={PORT_NAME}");
    add(&[word("-device"), port.as_ref()]);
    add(&["-mon", "chardev=monitor,mode=readline", "-device", "virtio-rng-pci"].map(OsStr::new));

    add(&share(ROOT_TAG, Path::new("/"), "on").each_ref().map(OsString::as_os_str));
    for (tag, path) in config.shares_by_tag() {
        add(&share(&tag, path, "off").each_ref().map(OsString::as_os_str));
    }
    arguments
}

/// Users and modes are those of the host's files (security_model=none); a
/// share may span file systems, whose inode numbers QEMU keeps apart (remap).
fn share(tag: &str, path: &Path, readonly: &str) -> [OsString; 4] {
    let mut folder = OsString::from(format!("local,id={tag},path="));
    folder.push(double_commas(path));
    folder.push(format!(",security_model=none,readonly={readonly},multidevs=remap"));
    let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
    ["-fsdev".into(), folder, "-device".into(), device.into()]
}

/// A comma in a value of an option is written twice.
fn double_commas(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut bytes = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        bytes.push(byte);
        if byte == b',' {
            bytes.push(byte);
        }
    }
    OsString::from_vec(bytes)
}

fn cpu(config: &Config) -> String {
    let features = config.cpu_features.iter().map(|feature| format!(",+{feature}"));
    CPU.to_owned() + &features.collect::<String>()
}

fn kernel_arguments(config: &Config) -> String {
    let mut arguments = KERNEL_ARGUMENTS.to_owned();
    if config.counting {
        arguments += " ";
        arguments += COUNTING_ARGUMENTS;
    }
    if config.cpus > 1 {
        arguments += " ";
        arguments += SEVERAL_ARGUMENTS;
    }
    for argument in &config.kernel_arguments {
        arguments += " ";
        arguments += argument;
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_folder_names_are_doubled() {
        assert_eq!(double_commas(Path::new("/a,b")), "/a,,b");
    }
}
