// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C half of make check-style: checkpatch, from the kernel's source.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use dune_machine::Kernel;

use crate::context::Context;
use crate::Verdict;

/// The width of all files, as CONTRIBUTING.md has it.
const COLUMNS: &str = "--max-line-length=100";

/// Rules that do not fit a module outside of the kernel's tree, which is built for
/// several versions and answers system calls.
const IN_TREE_ONLY: &str = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,ENOSYS,FILE_PATH_CHANGES";

/// Rules that do not fit assembly, which checkpatch reads as C in a header.
const NO_C: &str = "SPACING,CAMELCASE,LINE_CONTINUATIONS,EMBEDDED_FUNCTION_NAME";

/// Rules that make sense only in the kernel: its types, macros and error numbers.
const KERNEL_ONLY: &str = "VOLATILE,PREFER_KERNEL_TYPES,ENOSYS,AVOID_EXTERNS,ARRAY_SIZE,CAMELCASE,\
    STATIC_CONST_CHAR_ARRAY,PREFER_DEFINED_ATTRIBUTE_MACRO,CONST_STRUCT,NEW_TYPEDEFS,USE_FUNC,\
    SSCANF_TO_KSTRTO,STRCPY,STRLCPY,STRNCPY,IN_ATOMIC,DATE_TIME,\
    BIT_MACRO,EMBEDDED_FUNCTION_NAME,MACRO_ARG_REUSE,COMPLEX_MACRO,\
    MACRO_WITH_FLOW_CONTROL,MACRO_ARG_PRECEDENCE,STRING_FRAGMENTS,TYPECAST_INT_CONSTANT,\
    SPLIT_STRING";

/// The kinds of files that checkpatch distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// A header of a module that has assembly.
    Assembly,
    /// A header of tracepoints: the form of TRACE_EVENT is not that of C.
    Tracepoints,
    User,
}

impl Kind {
    fn of(path: &Path, text: &str) -> Self {
        let is_header = path.extension().is_some_and(|extension| extension == "h");
        let has = |words: &[&str]| is_header && words.iter().any(|word| text.contains(word));
        if !path.starts_with("kernel") && !path.starts_with("include") {
            Kind::User
        } else if has(&["TRACE_EVENT("]) {
            Kind::Tracepoints
        } else if has(&[".macro ", "asm volatile(", "asm goto("]) {
            Kind::Assembly
        } else {
            Kind::Kernel
        }
    }

    /// The rules from which it is excepted. None: it is excepted from all.
    fn ignored(self) -> Option<&'static str> {
        match self {
            Kind::Kernel => Some(IN_TREE_ONLY),
            Kind::Assembly => Some(NO_C),
            Kind::Tracepoints => None,
            Kind::User => Some(KERNEL_ONLY),
        }
    }
}

/// Checks these files of C. Fails if one has a fault.
pub fn run(context: &Context, files: &[PathBuf]) -> Result<Verdict> {
    let name = "scripts/checkpatch.pl";
    let script = Kernel::source_file(&context.layout, name, &mut |message| println!("{message}"))?;
    let mut files_of: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(context.source.join(file))
            .with_context(|| format!("reading {}", file.display()))?;
        if let Some(ignored) = Kind::of(file, &text).ignored() {
            files_of.entry(ignored).or_default().push(file);
        }
    }
    let mut clean = true;
    for (ignored, files) in files_of {
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
    Ok(Verdict::passed_if(clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_recognized_by_what_they_contain() {
        let kind = |path: &str, text: &str| Kind::of(Path::new(path), text);
        assert_eq!(kind("kernel/a.h", "int f(void);"), Kind::Kernel);
        assert_eq!(kind("include/uapi/linux/a.h", "int f(void);"), Kind::Kernel);
        assert_eq!(kind("kernel/a.h", ".macro SAVE\n"), Kind::Assembly);
        assert_eq!(kind("kernel/a.h", "\tasm volatile(\"\");"), Kind::Assembly);
        assert_eq!(kind("kernel/a.c", "\tasm volatile(\"\");"), Kind::Kernel);
        assert_eq!(kind("kernel/a.h", "TRACE_EVENT(name,"), Kind::Tracepoints);
        assert_eq!(kind("run/a.h", "\tasm volatile(\"\");"), Kind::User);
    }
}
