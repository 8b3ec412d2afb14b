// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up and downloads packages with apt, which has data of its own below the
//! cache directory: the computer's sources, lists and packages stay as they are, and
//! no right to change them is needed.
//!
//! No mirror is named here: the mirror of the computer's own sources serves the
//! other releases of the same distribution as well.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::{Context, Error, Result};
use crate::host_command;

/// The keys with which Debian signs its suites (package debian-archive-keyring).
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Debian's unstable suite. It has no backports, and its lists expire within a
/// week.
pub(crate) const UNSTABLE: &str = "sid";

pub(crate) struct Apt {
    config: PathBuf,
}

/// One version of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    pub depends: Vec<String>,
    /// The size of the download, in bytes.
    pub size: u64,
}

impl Apt {
    /// Sets up the data in `directory` and fetches the package lists of a release
    /// ("bookworm") and of its backports.
    pub(crate) fn update(directory: &Path, release: &str) -> Result<Self> {
        if !Path::new(KEYRING).exists() {
            let lacking = format!("{KEYRING} is missing: install debian-archive-keyring");
            return Err(Error::Environment(lacking));
        }
        let apt = Self::set_up(directory, release)?;
        let output = apt.run(Command::new("apt-get").arg("update").arg("-qq"))?;
        // apt-get update exits with 0 even if it reached no mirror.
        let reached = !apt.show("linux-image-amd64")?.is_empty();
        if !output.status.success() || !reached {
            return Err(Error::Environment(format!(
                "cannot fetch Debian's package lists (no network?): {}",
                last_line(&output.stderr)
            )));
        }
        Ok(apt)
    }

    fn set_up(directory: &Path, release: &str) -> Result<Self> {
        for sub in ["etc/preferences.d", "state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(sub))
                .context(format!("making {}/{sub}", directory.display()))?;
        }
        let sources: String = repositories(release)?
            .iter()
            .map(|(uri, suite)| format!("deb [signed-by={KEYRING}] {uri} {suite} main\n"))
            .collect();
        let config = directory.join("apt.conf");
        // A mirror may be weeks old; its lists are signed nevertheless.
        let expires = release != UNSTABLE;
        let at = |name: &str| format!("\"{}\"", directory.join(name).display());
        let write = |path: &Path, text: &str| {
            fs::write(path, text).context(format!("writing {}", path.display()))
        };
        write(&directory.join("etc/sources.list"), &sources)?;
        write(&directory.join("status"), "")?;
        write(
            &config,
            &format!(
                "Dir::Etc {};\nDir::Etc::parts \"/dev/null\";\n\
                 Dir::State {};\nDir::State::status {};\nDir::Cache {};\n\
                 APT::Architecture \"amd64\";\nAPT::Architectures {{ \"amd64\"; }};\n\
                 APT::Sandbox::User \"\";\nAcquire::Languages \"none\";\nAcquire::Retries \"3\";\n\
                 Acquire::http::Timeout \"30\";\nDir::Log \"/dev/null\";\n\
                 Acquire::Check-Valid-Until \"{expires}\";\n",
                at("etc"),
                at("state"),
                at("status"),
                at("cache"),
            ),
        )?;
        Ok(Apt { config })
    }

    /// All versions of a package, in any order.
    pub(crate) fn show(&self, name: &str) -> Result<Vec<Package>> {
        self.show_all(&[name])
    }

    fn show_all(&self, names: &[&str]) -> Result<Vec<Package>> {
        let mut command = Command::new("apt-cache");
        let output = self.run(command.args(["show", "--all-versions"]).args(names))?;
        Ok(parse_packages(&String::from_utf8_lossy(&output.stdout)))
    }

    /// All versions of all packages whose names `wanted` accepts.
    pub(crate) fn named(
        &self,
        prefix: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Package>> {
        let output = self.run(Command::new("apt-cache").args(["pkgnames", prefix]))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names: Vec<&str> = text.lines().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.show_all(&names)
    }

    /// The newest of the versions that `wanted` accepts.
    pub(crate) fn newest(&self, name: &str, wanted: impl Fn(&Package) -> bool) -> Result<Package> {
        newest_of(self.show(name)?, wanted)
            .ok_or_else(|| Error::Environment(format!("the mirror has no suitable package {name}")))
    }

    /// Downloads a package and all that it depends on, as if nothing were
    /// installed, into `directory`.
    pub(crate) fn download_with_dependencies(
        &self,
        package: &Package,
        directory: &Path,
    ) -> Result<Vec<PathBuf>> {
        let partial = directory.join("partial");
        fs::create_dir_all(&partial).context(format!("making {}", partial.display()))?;
        let output = self.run(
            Command::new("apt-get")
                .args(["install", "--download-only", "--no-install-recommends", "-qq", "-y"])
                .arg("-o")
                .arg(format!("Dir::Cache::archives={}", directory.display()))
                .arg(format!("{}={}", package.name, package.version)),
        )?;
        archives(&output, directory)
    }

    /// Downloads packages into a directory and checks them against the signed lists.
    pub(crate) fn download(&self, packages: &[Package], directory: &Path) -> Result<Vec<PathBuf>> {
        let names = packages.iter().map(|package| format!("{}={}", package.name, package.version));
        let output = self.run(
            Command::new("apt-get").args(["download", "-qq"]).args(names).current_dir(directory),
        )?;
        archives(&output, directory)
    }

    fn run(&self, command: &mut Command) -> Result<Output> {
        host_command::output(command.env("APT_CONFIG", &self.config))
    }
}

/// The newest of the packages that `wanted` accepts.
pub(crate) fn newest_of(
    packages: Vec<Package>,
    wanted: impl Fn(&Package) -> bool,
) -> Option<Package> {
    packages.into_iter().filter(|package| wanted(package)).reduce(|newest, package| {
        if is_later(&package.version, &newest.version) {
            package
        } else {
            newest
        }
    })
}

/// The packages that apt-get has put into a directory.
fn archives(output: &Output, directory: &Path) -> Result<Vec<PathBuf>> {
    if !output.status.success() {
        return Err(Error::Environment(format!(
            "cannot download packages: {}",
            last_line(&output.stderr)
        )));
    }
    let entries = fs::read_dir(directory).context("listing downloaded packages")?;
    Ok(entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect())
}

/// (URI, suite) of all sources that may have a suitable kernel: the computer's
/// own sources of that release, and the release's suites at the mirror of its
/// main suite.
fn repositories(release: &str) -> Result<BTreeSet<(String, String)>> {
    let format = "$(REPO_URI)\t$(CODENAME)\t$(COMPONENT)";
    let output = host_command::output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        format,
        "Identifier: Packages",
    ]))?;
    let repositories = parse_targets(&String::from_utf8_lossy(&output.stdout), release);
    if repositories.is_empty() {
        let lacking = "apt knows no Debian mirror on this computer (see /etc/apt/sources.list)";
        return Err(Error::Environment(lacking.to_owned()));
    }
    Ok(repositories)
}

fn parse_targets(text: &str, release: &str) -> BTreeSet<(String, String)> {
    const DEBIAN: [&str; 4] = ["bookworm", "trixie", "forky", "sid"];
    let mut repositories = BTreeSet::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[uri, suite, "main"] = &fields[..] else { continue };
        if DEBIAN.contains(&suite) {
            repositories.insert((uri.to_owned(), release.to_owned()));
            if release != UNSTABLE {
                repositories.insert((uri.to_owned(), format!("{release}-backports")));
            }
        } else if suite.strip_prefix(release).is_some_and(|rest| rest.starts_with('-')) {
            repositories.insert((uri.to_owned(), suite.to_owned()));
        }
    }
    repositories
}

fn parse_packages(text: &str) -> Vec<Package> {
    text.split("\n\n")
        .filter_map(|stanza| {
            let field = |key: &str| {
                stanza.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
            };
            let depends = field("Depends").unwrap_or_default();
            Some(Package {
                name: field("Package")?.to_owned(),
                version: field("Version")?.to_owned(),
                depends: depends.split(", ").filter_map(first_word).collect(),
                size: field("Size").and_then(|size| size.parse().ok()).unwrap_or(0),
            })
        })
        .collect()
}

/// The name in "name (= version) [arch] | other".
fn first_word(dependency: &str) -> Option<String> {
    let word = dependency.split_whitespace().next()?;
    Some(word.split(':').next().unwrap_or(word).to_owned())
}

/// Whether version `a` is later than `b`, by dpkg's rules.
pub(crate) fn is_later(a: &str, b: &str) -> bool {
    let status = Command::new("dpkg").args(["--compare-versions", a, "gt", b]).status();
    status.is_ok_and(|status| status.success())
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gives no reason").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_come_from_the_computers_own_sources() {
        let text = "http://m/debian/\tbookworm\tmain\nhttp://m/debian/\tbookworm-updates\tmain\n\
                    http://s/security/\tbookworm-security\tmain\nhttp://other/\tnodistro\tmain\n\
                    http://m/debian/\tbookworm\tcontrib\n";
        let found = |release| -> Vec<String> {
            let all = parse_targets(text, release).into_iter();
            all.map(|(uri, suite)| format!("{uri} {suite}")).collect()
        };
        assert_eq!(
            found("trixie"),
            ["http://m/debian/ trixie", "http://m/debian/ trixie-backports"]
        );
        assert_eq!(
            found("bookworm"),
            [
                "http://m/debian/ bookworm",
                "http://m/debian/ bookworm-backports",
                "http://m/debian/ bookworm-updates",
                "http://s/security/ bookworm-security",
            ]
        );
        assert_eq!(found("sid"), ["http://m/debian/ sid"]);
    }

    #[test]
    fn stanzas_become_packages() {
        let text = "Package: linux-image-amd64\nVersion: 6.1.192-2\n\
                    Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2), x:any\nSize: 12\n\n";
        let packages = parse_packages(text);
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].depends, ["linux-image-6.1.0-56-amd64", "x"]);
        assert_eq!(packages[0].size, 12);
    }

    #[test]
    fn versions_compare_as_dpkg_does() {
        assert!(is_later("6.12.95-1~bpo12+1", "6.12.9-1~bpo12+1"));
        assert!(!is_later("6.1.0-9", "6.1.0-10"));
    }
}
