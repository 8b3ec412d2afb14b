// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of a kernel module, from its object file: the parts of it that must be in memory, byte
//! by byte, when it is loaded. docs/guard-modules.md describes it.
//!
//! module.rs reads the file; sites.rs finds the places that Linux patches; describe.rs puts the
//! metadata together; metadata.rs is their text, which is written and read; encode.rs makes of them
//! what kernel/guard/hv/content.c reads, with the addresses that targets.rs finds in the kernel;
//! binding.rs is the administrator's file about a module.

mod binding;
mod describe;
mod encode;
mod metadata;
mod module;
mod sites;
mod targets;

use std::io::Write;
use std::path::Path;

use dune_machine::{Error, Result};

use crate::cli::{Bind, Describe, Encode, Leaves};
use crate::exit::{restore_sigpipe, End, REFUSED};
use crate::kernel::Kernel;
use crate::leaves;
use crate::privileges::Privilege;
pub use binding::Choice;
use encode::Nowhere;
use targets::Found;

/// dunectl guard describe
pub fn describe(options: &Describe) -> Result<End> {
    restore_sigpipe();
    let module = module::read(&options.module)?;
    let metadata =
        describe::metadata(&module).map_err(|why| module::wrong(&options.module, why))?;
    // The text contains all of it; a name that cannot be written is an error here, and not later.
    let text = metadata.to_string();
    let encoded = encode::encode(&metadata, &Nowhere).and_then(|encoded| {
        let again = encode::encode(&metadata::Metadata::parse(&text)?, &Nowhere)?;
        (encoded == again).then_some(()).ok_or("its names cannot be written".to_owned())
    });
    encoded.map_err(|why| module::wrong(&options.module, why))?;
    write(options.output.as_deref(), text.as_bytes())
}

/// The text of a description, and what it contains.
fn read_description(path: &Path) -> Result<(String, metadata::Metadata)> {
    let text = std::fs::read_to_string(path).map_err(|e| module::wrong(path, e))?;
    let metadata = metadata::Metadata::parse(&text).map_err(|why| module::wrong(path, why))?;
    Ok((text, metadata))
}

/// dunectl guard bind
pub fn bind(options: &Bind) -> Result<End> {
    restore_sigpipe();
    let (text, metadata) = read_description(&options.description)?;
    let written = binding::path(&metadata.name).and_then(|default| {
        let path = options.output.as_deref().unwrap_or(&default);
        let (text, choice) = (text.as_bytes(), options.on_suspicion);
        binding::write(path, &metadata, text, choice, options.force)?;
        Ok(format!("{} is bound by {}, to no privileges so far", metadata.name, path.display()))
    });
    Ok(match written {
        Ok(done) => {
            println!("{done}");
            End::Code(0)
        }
        Err(why) => {
            eprintln!("dunectl: {} is not bound: {why}", metadata.name);
            End::Code(REFUSED)
        }
    })
}

/// dunectl guard leaves
pub fn leaves(options: &Leaves) -> Result<End> {
    restore_sigpipe();
    let (_, metadata) = read_description(&options.description)?;
    let calls: Vec<_> = metadata.exits.iter().map(|exit| exit.symbol.as_str()).collect();
    let text = leaves::propose(&calls).map_err(Error::Environment)?;
    write(None, text.as_bytes())
}

/// A description in the guard's form, and what its binding decides about the module; its leaves are
/// in the guard's form, too.
pub struct Bound {
    pub description: Vec<u8>,
    pub privileges: Vec<Privilege>,
    pub on_suspicion: Choice,
    pub leaves: Vec<u8>,
    pub leaf_count: u32,
}

/// What the guard reads of a description that its binding allows; the inner error is the reason why
/// it does not. Without `finds`, nothing is looked up in the kernel: the guard refuses the request
/// anyway, and says why.
pub fn bound(path: &Path, finds: bool) -> Result<(String, std::result::Result<Bound, String>)> {
    let (text, metadata) = read_description(path)?;
    let bound = binding::path(&metadata.name)
        .and_then(|binding| binding::check(&binding, &metadata, text.as_bytes()));
    let bound = bound.and_then(|terms| {
        let (description, (leaves, leaf_count)) = if finds && is_running(&metadata.kernel) {
            let kernel = Kernel::open()?;
            let found = Found { kernel: &kernel, release: &metadata.kernel };
            (encode::encode(&metadata, &found)?, leaves::to_bytes(&terms.leaves, &kernel)?)
        } else {
            (encode::encode(&metadata, &Nowhere)?, (Vec::new(), 0))
        };
        Ok(Bound {
            description,
            privileges: terms.privileges,
            on_suspicion: terms.on_suspicion,
            leaves,
            leaf_count,
        })
    });
    Ok((metadata.name, bound))
}

fn is_running(release: &str) -> bool {
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    running.is_ok_and(|running| running.trim_end() == release)
}

/// dunectl guard encode
pub fn encode(options: &Encode) -> Result<End> {
    restore_sigpipe();
    let path = &options.metadata;
    let (_, metadata) = read_description(path)?;
    let release = &metadata.kernel;
    let kernel = match &options.kernel {
        Some(path) => Some(Kernel::read_from(path)),
        None => is_running(release).then(Kernel::open),
    };
    let bytes = match kernel.transpose().map_err(Error::Environment)? {
        Some(kernel) => encode::encode(&metadata, &Found { kernel: &kernel, release }),
        None => encode::encode(&metadata, &Nowhere),
    };
    write(options.output.as_deref(), &bytes.map_err(|why| module::wrong(path, why))?)
}

fn write(path: Option<&Path>, bytes: &[u8]) -> Result<End> {
    let result = match path {
        Some(path) => std::fs::write(path, bytes),
        None => std::io::stdout().write_all(bytes),
    };
    let name = path.map_or("the output".to_owned(), |path| path.display().to_string());
    result.map_err(|e| Error::Io { action: format!("writing {name}"), source: e })?;
    Ok(End::Code(0))
}
