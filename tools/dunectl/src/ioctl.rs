// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of the modules' devices.

use std::fs::File;
use std::os::fd::AsRawFd;

/// What nix::ioctl_read! and nix::ioctl_readwrite! define.
pub type Request<T> = unsafe fn(i32, *mut T) -> nix::Result<i32>;

/// Makes a request. If T has addresses, they are those of buffers of the caller's with the lengths
/// in it.
pub fn ask<T>(device: &File, request: Request<T>, argument: &mut T) -> nix::Result<()> {
    // SAFETY: the request is for a T, which has only integers, and for its buffers.
    unsafe { request(device.as_raw_fd(), argument) }.map(drop)
}
