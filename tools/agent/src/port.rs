// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection to the harness: a virtio-serial port; or, where the kernel's
//! arguments say so, the second serial line in and the first parallel port out
//! (port/parallel.rs).

mod parallel;

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, Context, Result};
use dune_protocol::{
    read_frame, write_frame, ToGuest, ToHost, PORTS_ARGUMENT, PORT_NAME, SLOW_LINE_ARGUMENT,
};
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};

/// Long enough for the slowest of hosts; the harness has a limit of its own.
const PATIENCE: Duration = Duration::from_secs(60);

const SERIAL_LINE: &str = "/dev/ttyS1";

/// The sending half; its clones may be used from any thread.
#[derive(Clone)]
pub struct Port(Arc<Mutex<Box<dyn Write + Send>>>);

/// The receiving half.
pub struct Requests(BufReader<File>);

pub fn open() -> Result<(Requests, Port)> {
    let arguments = fs::read_to_string("/proc/cmdline")?;
    let says = |argument| arguments.split_whitespace().any(|word| word == argument);
    let (file, out): (File, Box<dyn Write + Send>) = match says(PORTS_ARGUMENT) {
        true => {
            let speed = if says(SLOW_LINE_ARGUMENT) { libc::B19200 } else { libc::B115200 };
            (open_serial_line(speed).context(SERIAL_LINE)?, Box::new(parallel::open()?))
        }
        false => {
            let file = OpenOptions::new().read(true).write(true).open(find_port()?)?;
            (file.try_clone()?, Box::new(file))
        }
    };
    Ok((Requests(BufReader::new(file)), Port(Arc::new(Mutex::new(out)))))
}

fn open_serial_line(speed: libc::speed_t) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(SERIAL_LINE)?;
    let mut settings = tcgetattr(&file)?;
    cfmakeraw(&mut settings);
    let mut settings = libc::termios::from(settings);
    settings.c_cflag = settings.c_cflag & !libc::CBAUD | speed;
    tcsetattr(&file, SetArg::TCSANOW, &settings.into())?;
    Ok(file)
}

/// There is no udev here to name the port: sysfs tells which one it is. The
/// port's name arrives a little after the device.
fn find_port() -> Result<PathBuf> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim_end() == PORT_NAME {
                return Ok(PathBuf::from("/dev").join(entry.file_name()));
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(anyhow!("no virtio-serial port is named {PORT_NAME}"))
}

impl Port {
    pub fn send(&self, message: &ToHost) -> Result<()> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(write_frame(&mut *out, message)?)
    }
}

impl Requests {
    /// The next message; `None` when the harness has gone.
    pub fn next(&mut self) -> Result<Option<ToGuest>> {
        Ok(read_frame(&mut self.0)?)
    }
}
