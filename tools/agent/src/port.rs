// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtio-serial port to the harness.

use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, Result};
use dune_protocol::{read_frame, write_frame, ToGuest, ToHost, PORT_NAME};

/// Long enough for the slowest of hosts; the harness has a limit of its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// The sending half; its clones may be used from any thread.
#[derive(Clone)]
pub struct Port(Arc<Mutex<File>>);

/// The receiving half.
pub struct Requests(BufReader<File>);

pub fn open() -> Result<(Requests, Port)> {
    let file = OpenOptions::new().read(true).write(true).open(find_port()?)?;
    let port = Port(Arc::new(Mutex::new(file.try_clone()?)));
    Ok((Requests(BufReader::new(file)), port))
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
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(write_frame(&mut *file, message)?)
    }
}

impl Requests {
    /// The next message; `None` when the harness has gone.
    pub fn next(&mut self) -> Result<Option<ToGuest>> {
        Ok(read_frame(&mut self.0)?)
    }
}
