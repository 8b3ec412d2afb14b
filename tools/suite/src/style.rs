// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C half of make check-style: checkpatch, from the kernel's source.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use dune_machine::Kernel;

use crate::context::Context;

/// The width of all files, as CONTRIBUTING.md has it.
const COLUMNS: &str = "--max-line-length=100";

/// Rules that do not fit a module outside of the kernel's tree, which is built for
/// several versions and answers system calls.
const IN_TREE_ONLY: &str = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,ENOSYS,FILE_PATH_CHANGES";

/// The form of TRACE_EVENT is not that of C.
const TRACEPOINTS: &str = "kernel/dune/trace.h";

/// Headers with assembly, which checkpatch reads as C.
const ASSEMBLY: [&str; 6] = [
    "kernel/virt/vmx.h",
    "kernel/x86/mitigations.h",
    "kernel/x86/registers.h",
    "kernel/x86/return_buffer.h",
    "kernel/x86/svm/instructions.h",
    "kernel/x86/vmx/instructions.h",
];
const NO_C: &str = "SPACING,CAMELCASE,LINE_CONTINUATIONS,EMBEDDED_FUNCTION_NAME";

/// Rules that make sense only in the kernel: its types, macros and error numbers.
const KERNEL_ONLY: &str = "VOLATILE,PREFER_KERNEL_TYPES,ENOSYS,AVOID_EXTERNS,ARRAY_SIZE,CAMELCASE,\
    STATIC_CONST_CHAR_ARRAY,PREFER_DEFINED_ATTRIBUTE_MACRO,CONST_STRUCT,NEW_TYPEDEFS,USE_FUNC,\
    SSCANF_TO_KSTRTO,STRCPY,STRLCPY,STRNCPY,IN_ATOMIC,DATE_TIME,\
    BIT_MACRO,EMBEDDED_FUNCTION_NAME,MACRO_ARG_REUSE,COMPLEX_MACRO,\
    MACRO_WITH_FLOW_CONTROL,MACRO_ARG_PRECEDENCE,STRING_FRAGMENTS,TYPECAST_INT_CONSTANT,\
    SPLIT_STRING";

/// Checks these files of C. The exit status is 1 if one has a fault.
pub fn run(context: &Context, files: &[PathBuf]) -> Result<u8> {
    let name = "scripts/checkpatch.pl";
    let script = Kernel::source_file(&context.layout, name, &mut |what| println!("{what}"))?;
    let (assembly, c): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|file| file.as_path() != Path::new(TRACEPOINTS))
        .partition(|file| ASSEMBLY.iter().any(|name| file.as_path() == Path::new(name)));
    let (kernel, user): (Vec<_>, Vec<_>) =
        c.into_iter().partition(|file| file.starts_with("kernel") || file.starts_with("include"));
    let mut clean = true;
    for (files, ignored) in [(kernel, IN_TREE_ONLY), (assembly, NO_C), (user, KERNEL_ONLY)] {
        let status = Command::new("perl")
            .arg(&script)
            .args([
                "--no-tree",
                "--strict",
                "--terse",
                "--quiet",
                "--no-summary",
                "--show-types",
                COLUMNS,
                "--file",
            ])
            .args(["--ignore", ignored])
            .args(files)
            .current_dir(&context.source)
            .status()
            .context("running perl")?;
        clean = clean && status.success();
    }
    Ok(if clean { 0 } else { 1 })
}
