// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for devices: no udev runs here that would announce them.

use std::thread;
use std::time::{Duration, Instant};

/// Looks again and again until something is found, or until the limit has passed.
pub fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        let found = look();
        if found.is_some() {
            return found;
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}
