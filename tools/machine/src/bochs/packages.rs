// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Debian packages that are installed here, and what they depend on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::process::Command;

use crate::error::{Error, Result};
use crate::host_command;

/// A package that is installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub name: String,
    pub version: String,
}

/// The packages that are installed, and their dependencies.
#[derive(Debug, Default)]
pub(super) struct Packages {
    /// By name: the version, and for each dependency the alternatives that satisfy it.
    all: HashMap<String, (String, Vec<Vec<String>>)>,
    providers: HashMap<String, Vec<String>>,
    essential: Vec<String>,
}

impl Packages {
    /// Asks dpkg.
    pub(super) fn installed() -> Result<Self> {
        let format = "${Package}\t${Version}\t${Essential}\t${Provides}\t${Pre-Depends}, \
                      ${Depends}\t${db:Status-Status}\n";
        let output = host_command::output(Command::new("dpkg-query").args(["-W", "-f", format]))?;
        let packages = Self::parse(&String::from_utf8_lossy(&output.stdout));
        if packages.all.is_empty() {
            Err(Error::Environment("dpkg knows no installed packages".to_owned()))
        } else {
            Ok(packages)
        }
    }

    fn parse(text: &str) -> Self {
        let mut packages = Packages::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[name, version, essential, provides, depends, "installed"] = &fields[..] else {
                continue;
            };
            for provided in names(provides, ',') {
                packages.providers.entry(provided).or_default().push(name.to_owned());
            }
            if essential == "yes" {
                packages.essential.push(name.to_owned());
            }
            let depends = depends.split(',').map(|one| names(one, '|'));
            let depends = depends.filter(|one| !one.is_empty()).collect();
            packages.all.insert(name.to_owned(), (version.to_owned(), depends));
        }
        packages
    }

    /// The essential packages, those of `wanted` that are installed, and all packages
    /// that they depend on.
    pub(super) fn closure(&self, wanted: &[&str]) -> BTreeSet<Package> {
        let mut left: Vec<&str> = self.essential.iter().map(String::as_str).collect();
        left.extend(wanted);
        let mut seen = HashSet::new();
        let mut closure = BTreeSet::new();
        while let Some(name) = left.pop() {
            if !seen.insert(name) {
                continue;
            }
            let Some((version, depends)) = self.all.get(name) else {
                left.extend(self.providers.get(name).into_iter().flatten().map(String::as_str));
                continue;
            };
            closure.insert(Package { name: name.to_owned(), version: version.clone() });
            for alternatives in depends {
                let mut present = alternatives.iter().filter(|name| {
                    self.all.contains_key(*name) || self.providers.contains_key(*name)
                });
                left.extend(present.next().map(String::as_str));
            }
        }
        closure
    }
}

/// The names in "name (>= version) | other:any".
fn names(text: &str, separator: char) -> Vec<String> {
    text.split(separator)
        .filter_map(|part| part.split_whitespace().next())
        .map(|word| word.split(':').next().unwrap_or(word).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closure_has_all_dependencies() {
        let text = "bash\t5\tyes\t\tlibc6 (>= 2), , base-files\tinstalled\n\
                    libc6\t2.36\t\t\tabsent | libgcc-s1:any\tinstalled\n\
                    libgcc-s1\t12\t\t\t, \tinstalled\n\
                    base\t1\t\tbase-files (= 1)\t, \tinstalled\n\
                    sed\t4\t\t\t, \tconfig-files\n\
                    unrelated\t1\t\t\t, \tinstalled\n";
        let closure = Packages::parse(text).closure(&["bash", "sed"]);
        let names: Vec<&str> = closure.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["base", "bash", "libc6", "libgcc-s1"]);
    }
}
