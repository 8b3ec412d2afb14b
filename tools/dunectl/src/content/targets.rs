// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the running kernel has what a module refers to: its external symbols, and the targets to
//! which Linux's patches may lead (sites.rs).

use std::fs;

use super::encode::Addresses;
use super::sites::{Targets, TRAMPOLINE};
use crate::kernel::Kernel;
use crate::leaves::RETURN_THUNKS;

type Result<T> = std::result::Result<T, String>;

/// Before the names of registers.
const INDIRECT_THUNKS: [&str; 3] =
    ["__x86_indirect_thunk_", "__x86_indirect_call_thunk_", "__x86_indirect_jump_thunk_"];
const FTRACE: [&str; 3] = ["__fentry__", "ftrace_caller", "ftrace_regs_caller"];
/// Linux leads a static call of no function here, where it cannot write a return.
const NO_FUNCTION: &str = "__static_call_return";
/// How the names of static calls' variables begin.
const KEY: &str = "__SCK__";

/// The addresses in a kernel of this release.
pub struct Found<'a> {
    pub kernel: &'a Kernel,
    pub release: &'a str,
}

impl Found<'_> {
    /// Those that this kernel has.
    fn all<'b>(&self, names: impl IntoIterator<Item = &'b str>) -> Vec<u64> {
        names.into_iter().filter_map(|name| self.kernel.address(name).ok()).collect()
    }

    /// What a static call calls now.
    fn function(&self, name: &str) -> Result<u64> {
        let key = format!("{KEY}{name}");
        let address =
            self.kernel.exported(&key).ok_or_else(|| format!("this kernel has no {key}"))?;
        Ok(self.kernel.words(address, 8)?[0])
    }
}

impl Addresses for Found<'_> {
    fn symbol(&self, name: &str) -> Result<u64> {
        self.kernel.exported(name).ok_or_else(|| {
            let path = format!("/lib/modules/{}/modules.symbols", self.release);
            match owner(&fs::read_to_string(path).unwrap_or_default(), name) {
                Some(module) => format!(
                    "it needs {name} of the module {module}, which is not loaded: modprobe {module}"
                ),
                None => format!("it needs {name}, which no loaded module has: load that one first"),
            }
        })
    }

    fn targets(&self, targets: &Targets) -> Result<Vec<u64>> {
        let thunks = || RETURN_THUNKS.iter().map(|thunk| thunk[0]);
        Ok(match targets {
            Targets::Return => self.all(thunks().chain([NO_FUNCTION])),
            Targets::Indirect(register) => {
                let names = INDIRECT_THUNKS.map(|thunk| format!("{thunk}{register}"));
                self.all(names.iter().map(String::as_str))
            }
            Targets::Ftrace => self.all(FTRACE),
            Targets::Paravirt => match self.kernel.find("pv_ops") {
                Some((address, size)) => self.kernel.words(address, size)?,
                None => Vec::new(),
            },
            Targets::StaticCall(name) => {
                vec![self.symbol(&format!("{TRAMPOLINE}{name}"))?, self.function(name)?]
            }
        })
    }
}

/// Which module exports a symbol, by depmod's table.
fn owner<'a>(table: &'a str, symbol: &str) -> Option<&'a str> {
    table.lines().find_map(|line| {
        let (name, module) = line.strip_prefix("alias symbol:")?.split_once(' ')?;
        (name == symbol).then_some(module)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_an_owner() {
        let table = "# Aliases\nalias symbol:mii_check mii\nalias symbol:mii_check_link mii2\n";
        assert_eq!(owner(table, "mii_check_link"), Some("mii2"));
        assert_eq!(owner(table, "mii"), None);
    }
}
