// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C half of make check-style: checkpatch, from the kernel's source.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use dune_machine::Kernel;

use crate::context::Context;

/// What does not fit a module outside of the kernel's own tree, which is built
/// for several versions and answers system calls.
const IN_TREE_ONLY: &str = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,ENOSYS,FILE_PATH_CHANGES";

/// The shape of TRACE_EVENT is not that of C.
const TRACEPOINTS: &str = "kernel/trace.h";

/// What makes sense in the kernel only: its types, macros and error numbers.
const KERNEL_ONLY: &str = "VOLATILE,PREFER_KERNEL_TYPES,ENOSYS,AVOID_EXTERNS,ARRAY_SIZE,CAMELCASE,\
    STATIC_CONST_CHAR_ARRAY,PREFER_DEFINED_ATTRIBUTE_MACRO,CONST_STRUCT,NEW_TYPEDEFS,USE_FUNC,\
    SSCANF_TO_KSTRTO,STRCPY,STRLCPY,STRNCPY,IN_ATOMIC,DATE_TIME,\
    BIT_MACRO,EMBEDDED_FUNCTION_NAME";

pub fn run(context: &Context, files: &[PathBuf]) -> Result<u8> {
    let name = "scripts/checkpatch.pl";
    let script = Kernel::source_file(&context.layout, name, &mut |what| println!("{what}"))?;
    let (kernel, user): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|file| file.as_path() != Path::new(TRACEPOINTS))
        .partition(|file| file.starts_with("kernel") || file.starts_with("include"));
    let mut clean = true;
    for (files, ignored) in [(kernel, IN_TREE_ONLY), (user, KERNEL_ONLY)] {
        let status = Command::new("perl")
            .arg(&script)
            .args(["--no-tree", "--strict", "--terse", "--quiet", "--show-types", "--file"])
            .args(["--ignore", ignored])
            .args(files)
            .current_dir(&context.source)
            .status()
            .context("running perl")?;
        clean = clean && status.success();
    }
    Ok(if clean { 0 } else { 1 })
}
