// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loopback interface, the machine's only network interface.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use anyhow::Result;
use nix::errno::Errno;

nix::ioctl_write_ptr_bad!(set_interface_flags, libc::SIOCSIFFLAGS, libc::ifreq);

/// Activates the interface.
pub fn loopback_up() -> Result<()> {
    let socket = match UdpSocket::bind("0.0.0.0:0") {
        Ok(socket) => socket,
        // A kernel without IPv4 has no loopback interface either.
        Err(e) if e.raw_os_error() == Some(Errno::EAFNOSUPPORT as i32) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short,
        },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    // SAFETY: the request is a complete ifreq and lives across the call.
    unsafe { set_interface_flags(socket.as_raw_fd(), &request) }?;
    Ok(())
}
