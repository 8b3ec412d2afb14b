// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection to the harness: a virtio-serial port, or, where the kernel's
//! arguments ask for it, the second serial line for input and the first parallel
//! port for output (port/parallel.rs).

mod parallel;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use dune_protocol::{read_frame, write_frame, ToAgent, ToHarness, PORTS_ARGUMENT, PORT_NAME};
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};

use crate::wait::wait_for;

/// Long enough for the slowest of hosts; the harness has a limit of its own.
const PORT_LIMIT: Duration = Duration::from_secs(60);

const SERIAL_LINE: &str = "/dev/ttyS1";

/// How many bytes the UART collects before it raises an interrupt. The agent writes 1: the
/// UART then raises one for each byte. Bochs's UART has a timer for the case that fewer bytes have
/// come, which may expire after they were read; the kernel then reads a byte that
/// was never sent.
const TRIGGER: &str = "/sys/class/tty/ttyS1/rx_trig_bytes";

/// The sending half; its clones may be used from any thread.
#[derive(Clone)]
pub struct Port(Arc<Mutex<Box<dyn Write + Send>>>);

/// The receiving half.
pub struct Requests(BufReader<Box<dyn Read>>);

/// The serial line, which reports to the harness how much was read.
struct SerialLine {
    file: File,
    port: Port,
}

/// Opens the connection that the kernel's arguments name.
pub fn open() -> Result<(Requests, Port)> {
    let arguments = fs::read_to_string("/proc/cmdline")?;
    let (from, port): (Box<dyn Read>, _) =
        if arguments.split_whitespace().any(|word| word == PORTS_ARGUMENT) {
            let port = Port::new(parallel::open()?);
            let file = open_serial_line().context(SERIAL_LINE)?;
            (Box::new(SerialLine { file, port: port.clone() }), port)
        } else {
            let file = OpenOptions::new().read(true).write(true).open(find_port()?)?;
            (Box::new(file.try_clone()?), Port::new(file))
        };
    Ok((Requests(BufReader::new(from)), port))
}

fn open_serial_line() -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(SERIAL_LINE)?;
    let mut settings = tcgetattr(&file)?;
    cfmakeraw(&mut settings);
    let mut settings = libc::termios::from(settings);
    settings.c_cflag = settings.c_cflag & !libc::CBAUD | libc::B115200;
    tcsetattr(&file, SetArg::TCSANOW, &settings.into())?;
    fs::write(TRIGGER, "1").context(TRIGGER)?;
    Ok(file)
}

/// Waits for the port. No udev runs here to name it, so sysfs is searched for its
/// name, which appears a little after the device.
fn find_port() -> Result<PathBuf> {
    let port = wait_for(PORT_LIMIT, || {
        let mut entries = fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten();
        let port = entries.find(|entry| {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            name.trim_end() == PORT_NAME
        })?;
        Some(PathBuf::from("/dev").join(port.file_name()))
    });
    port.with_context(|| format!("no virtio-serial port is named {PORT_NAME}"))
}

impl Port {
    /// A port that writes to `out`.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Port(Arc::new(Mutex::new(Box::new(out))))
    }

    /// Sends a message completely. It fails if the harness has gone.
    pub fn send(&self, message: &ToHarness) -> Result<()> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(write_frame(&mut *out, message)?)
    }
}

impl Read for SerialLine {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.port.send(&ToHarness::LineRead(read)).map_err(io::Error::other)?;
        Ok(read)
    }
}

impl Requests {
    /// The next message; `None` when the harness has gone.
    pub fn next(&mut self) -> Result<Option<ToAgent>> {
        Ok(read_frame(&mut self.0)?)
    }
}
