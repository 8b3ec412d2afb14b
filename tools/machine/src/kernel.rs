// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from Debian's packages, unpacked and never installed.
//!
//! `MACHINES/SERIES/` has the contents of the packages linux-image, linux-headers
//! and linux-kbuild of the newest kernel of that series. (An installation has modules for the
//! kernels of its build only, and prefers these.) For a kernel of a newer release of Debian
//! the directory also has the compiler and tools of that release (foreign.rs). It appears
//! complete or not at all.

use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use crate::apt::{self, Apt, Package};
use crate::error::{Context, Error, Result};
use crate::foreign;
use crate::host_command;
use crate::layout::{modules_text, Layout};
use crate::prepare;

/// The size of a kernel and its headers when they are unpacked, and some more.
const NEEDED_SPACE: u64 = 1 << 30;

/// A series of stable kernels, which stands for its newest build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    /// Debian 12's kernel.
    V6_1,
    /// The kernel of Debian 12's backports.
    V6_12,
    /// Once the kernel of Debian 13's backports, as long as the mirror has it.
    V7_2,
    /// The kernel that Debian 13's backports have now.
    Newest,
}

impl Series {
    /// All of them, the oldest first.
    pub const ALL: [Series; 4] = [Series::V6_1, Series::V6_12, Series::V7_2, Series::Newest];

    /// The one that is used where the user names none.
    pub const DEFAULT: Series = Series::V6_1;

    /// Those that `dunectl machine prepare` fetches by itself.
    pub const USUAL: [Series; 3] = [Series::V6_1, Series::V6_12, Series::Newest];

    /// The series that were the newest when the tests were run.
    const ONCE_NEWEST: [&str; 2] = ["7.2", "7.3"];

    /// The series as it is named on the command line: "6.12".
    pub fn name(self) -> &'static str {
        match self {
            Series::V6_1 => "6.1",
            Series::V6_12 => "6.12",
            Series::V7_2 => "7.2",
            Series::Newest => "newest",
        }
    }

    /// The release of Debian that has it, itself or in its backports.
    fn debian(self) -> &'static str {
        match self {
            Series::V6_1 | Series::V6_12 => "bookworm",
            Series::V7_2 | Series::Newest => "trixie",
        }
    }

    /// Whether a version or release ("6.12.95-1", "6.12.95+deb12-amd64") belongs
    /// to it.
    fn has(self, version: &str) -> bool {
        self == Series::Newest || is_of_series(version, self.name())
    }

    /// The series with which the tests have been run.
    pub fn tested() -> Vec<&'static str> {
        let fixed = [Series::V6_1, Series::V6_12].map(Series::name);
        fixed.into_iter().chain(Series::ONCE_NEWEST).collect()
    }

    /// Whether this release belongs to a series with which the tests were run.
    pub fn is_tested(release: &str) -> bool {
        Series::tested().iter().any(|name| is_of_series(release, name))
    }

    /// Whether its headers need a newer libc and compiler than those of the oldest
    /// Debian that is supported.
    fn brings_tools(self) -> bool {
        self >= Series::V7_2
    }
}

fn is_of_series(version: &str, name: &str) -> bool {
    version.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '-']))
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Series {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = || Series::ALL.map(Series::name).join(", ");
        Series::ALL.into_iter().find(|series| series.name() == text).ok_or_else(|| {
            Error::Usage(format!("no kernel series {text:?}; there are: {}", known()))
        })
    }
}

/// A prepared kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its series, unless the user built it.
    pub series: Option<Series>,
    /// The release, as `uname -r` prints it.
    pub release: String,
    /// The directory in which its packages are unpacked.
    pub root: PathBuf,
}

impl Kernel {
    /// The prepared kernel of a series.
    ///
    /// # Errors
    ///
    /// It was not prepared.
    pub fn find(layout: &Layout, series: Series) -> Result<Self> {
        Self::at(&layout.machines.join(series.name()), Some(series))
    }

    /// A kernel that was unpacked elsewhere, or that the user built:
    /// `ROOT/boot/vmlinuz-*` and `ROOT/lib/modules/*`.
    ///
    /// # Errors
    ///
    /// There is no `ROOT/boot/vmlinuz-*`.
    pub fn at(root: &Path, series: Option<Series>) -> Result<Self> {
        let releases = fs::read_dir(root.join("boot")).into_iter().flatten().flatten();
        let release = releases
            .filter_map(|entry| {
                Some(entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned())
            })
            .max();
        match release {
            Some(release) => Ok(Kernel { series, release, root: root.to_owned() }),
            None => Err(match series {
                Some(series) => Error::Environment(format!(
                    "kernel {series} is not prepared in {}: run `dunectl machine prepare {series}`",
                    root.display()
                )),
                None => Error::Usage(format!("{} has no boot/vmlinuz-*", root.display())),
            }),
        }
    }

    /// Finds a prepared kernel or fetches it. `say` gets progress messages.
    ///
    /// # Errors
    ///
    /// The computer lacks something: the network, a mirror with the kernel, room on the
    /// disk, a program.
    pub fn prepare(layout: &Layout, series: Series, say: &mut dyn FnMut(&str)) -> Result<Self> {
        if let Ok(kernel) = Self::find(layout, series) {
            return Ok(kernel);
        }
        fetch(layout, series, say, || Self::find(layout, series).is_ok())?;
        Self::find(layout, series)
    }

    /// Fetches the newest kernel of a series. It replaces a prepared one, which stays if this
    /// fails. `say` gets progress messages.
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::prepare`].
    pub fn update(layout: &Layout, series: Series, say: &mut dyn FnMut(&str)) -> Result<Self> {
        fetch(layout, series, say, || false)?;
        Self::find(layout, series)
    }

    /// The project's modules for this kernel, in the order of loading.
    ///
    /// # Errors
    ///
    /// One of them was not built or installed.
    pub fn project_modules(&self, layout: &Layout) -> Result<Vec<PathBuf>> {
        layout
            .modules_for(&self.release)
            .ok_or_else(|| Error::Environment(self.lacks_modules(layout)))
    }

    fn lacks_modules(&self, layout: &Layout) -> String {
        let Kernel { release, .. } = self;
        let files = modules_text("or");
        match self.series {
            None => format!("no {files} is built for {release}"),
            Some(series) if layout.is_build() => {
                format!("no {files} is built for {release}: run make KERNELS={series}")
            }
            Some(series) => format!(
                "no {files} is installed for {release}: run `dunectl machine prepare --update \
                 {series}`; if no kernel of {series} has them then, install newer packages \
                 (docs/install.md)"
            ),
        }
    }

    /// The bzImage.
    pub fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.release))
    }

    /// lib/modules/RELEASE of the unpacked packages.
    pub fn modules(&self) -> PathBuf {
        self.root.join("lib/modules").join(&self.release)
    }

    /// The headers to build modules with: `make -C HEADERS M=...`.
    pub fn headers(&self) -> PathBuf {
        self.root.join("usr/src").join(format!("linux-headers-{}", self.release))
    }
}

fn fetch(
    layout: &Layout,
    series: Series,
    say: &mut dyn FnMut(&str),
    is_there: impl Fn() -> bool,
) -> Result<()> {
    let machines = &layout.machines;
    let target = std::path::absolute(machines.join(series.name())).context("finding the cache")?;
    prepare::once(machines, &target, NEEDED_SPACE, is_there, |work| {
        let archives = download(layout, series, work, say)?;
        say(&format!("kernel {series}: unpacking"));
        let root = work.join("root");
        for archive in &archives {
            unpack(archive, &root)?;
        }
        move_to_old_places(&root)?;
        let kernel = Kernel::at(&root, Some(series))?;
        let output =
            host_command::output(Command::new("depmod").arg("-b").arg(&root).arg(&kernel.release))?;
        host_command::stdout_of(output, "depmod failed on the unpacked kernel")?;
        point_headers_at(&root, &target)?;
        if series.brings_tools() {
            foreign::adopt(&root, &target)?;
            foreign::name_in_headers(&root, &target)?;
        }
        Ok(root)
    })
}

/// Downloads the packages of a series' kernel below `work`.
fn download(
    layout: &Layout,
    series: Series,
    work: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>> {
    say(&format!("kernel {series}: reading the package lists"));
    let lists = layout.machines.join("apt").join(series.debian());
    let apt = Apt::update(&lists, series.debian())?;
    let Packages { headers, mut others } = packages_of(&apt, series, &layout.installed_for())?;
    let bytes = headers.size + others.iter().map(|package| package.size).sum::<u64>();
    let tools = if series.brings_tools() { " and the tools that its headers need" } else { "" };
    say(&format!("kernel {series}: downloading {} ({} MB){tools}", others[0].name, bytes >> 20));
    let mut archives = Vec::new();
    if series.brings_tools() {
        archives = apt.download_with_dependencies(&headers, &work.join("tools"))?;
        others.retain(|package| !archives.iter().any(|path| is_of(path, package)));
    } else {
        others.push(headers);
    }
    archives.extend(apt.download(&others, work)?);
    Ok(archives)
}

const IMAGE: &str = "linux-image-";

/// Whether a package is an image of Debian's generic kernel.
fn is_generic(name: &str) -> bool {
    let release = name.strip_prefix(IMAGE).and_then(|release| release.strip_suffix("-amd64"));
    release.is_some_and(|release| !release.ends_with("-cloud") && !release.ends_with("-rt"))
}

struct Packages {
    headers: Package,
    /// The image first, then what headers and image depend on.
    others: Vec<Package>,
}

/// The newest image of the series among the releases `preferred`; without one of them, the newest
/// of all. The package that names the newest kernel of a suite does not help, since a
/// suite has older series as well for some time.
fn choose_image(images: Vec<Package>, series: Series, preferred: &[String]) -> Option<Package> {
    // A meta-package ("linux-image-6.12-amd64") depends on an image.
    let is_image = |package: &Package| {
        series.has(&package.version) && !package.depends.iter().any(|name| name.starts_with(IMAGE))
    };
    let is_preferred = |package: &Package| {
        let release = package.name.trim_start_matches(IMAGE);
        is_image(package) && preferred.iter().any(|name| name == release)
    };
    apt::newest_of(images.clone(), is_preferred).or_else(|| apt::newest_of(images, is_image))
}

/// A generic kernel of the series (see `choose_image()`) and what is needed to build modules
/// for it.
fn packages_of(apt: &Apt, series: Series, preferred: &[String]) -> Result<Packages> {
    let depends = |package: &Package, prefix: &str, suffix: &str| {
        let found = package
            .depends
            .iter()
            .find(|name| name.starts_with(prefix) && name.ends_with(suffix))
            .cloned();
        found.ok_or_else(|| Error::Environment(format!("{} depends on no {prefix}*", package.name)))
    };
    let images = apt.named(IMAGE, is_generic)?;
    let image = choose_image(images, series, preferred).ok_or_else(|| {
        Error::Environment(format!("the mirror has no kernel {series} in {}", series.debian()))
    })?;
    let release = image.name.trim_start_matches(IMAGE);
    let same_version = |package: &Package| package.version == image.version;
    let headers = apt.newest(&format!("linux-headers-{release}"), same_version)?;
    let common = apt.newest(&depends(&headers, "linux-headers-", "-common")?, same_version)?;
    let kbuild = depends(&headers, "linux-kbuild-", "")?;
    let kbuild = apt
        .newest(&kbuild, same_version)
        .or_else(|_| apt.newest(&kbuild, |package| serves(package, series, &image.version)))?;
    let mut others = vec![image.clone()];
    // A newer image is a meta-package of its parts.
    for part in ["linux-binary-", "linux-modules-"] {
        if let Ok(name) = depends(&image, part, "") {
            others.push(apt.newest(&name, same_version)?);
        }
    }
    others.extend([common, kbuild]);
    Ok(Packages { headers, others })
}

/// Whether Debian's headers of a version accept a package of kbuild: it must not be older. A
/// mirror drops the old kbuild of 6.1 when it gets the next one, which is days before the signed
/// image of that version arrives.
fn serves(kbuild: &Package, series: Series, version: &str) -> bool {
    series.has(&kbuild.version) && !apt::is_later(version, &kbuild.version)
}

fn is_of(archive: &Path, package: &Package) -> bool {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    name.split('_').next() == Some(&package.name)
}

/// Newer packages have a kernel's modules and image below /usr.
fn move_to_old_places(root: &Path) -> Result<()> {
    let Ok(releases) = fs::read_dir(root.join("usr/lib/modules")) else { return Ok(()) };
    let link = |to: &str, from: &Path| {
        symlink(to, from).context(format!("making the link {}", from.display()))
    };
    for directory in ["lib", "boot"] {
        fs::create_dir_all(root.join(directory)).context("making a directory for a kernel")?;
    }
    link("../usr/lib/modules", &root.join("lib/modules"))?;
    for release in releases.flatten() {
        let release = release.file_name().to_string_lossy().into_owned();
        let image = root.join("boot").join(format!("vmlinuz-{release}"));
        link(&format!("../lib/modules/{release}/vmlinuz"), &image)?;
    }
    Ok(())
}

/// Unpacks a Debian package below `root`.
pub(crate) fn unpack(archive: &Path, root: &Path) -> Result<()> {
    let output = host_command::output(Command::new("dpkg-deb").arg("-x").arg(archive).arg(root))?;
    host_command::stdout_of(output, format!("cannot unpack {}", archive.display())).map(drop)
}

/// The header packages refer to each other as /usr/src/...: replaces that by
/// where they are.
fn point_headers_at(root: &Path, target: &Path) -> Result<()> {
    let new = format!("{}/usr/src/", target.display());
    let directories = fs::read_dir(root.join("usr/src")).context("listing the headers")?;
    for directory in directories.flatten() {
        let makefile = directory.path().join("Makefile");
        let Ok(text) = fs::read_to_string(&makefile) else { continue };
        fs::write(&makefile, text.replace("/usr/src/", &new)).context("rewriting a Makefile")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_parsed_by_name() {
        assert_eq!("6.12".parse::<Series>().unwrap(), Series::V6_12);
        assert_eq!("7.2".parse::<Series>().unwrap(), Series::V7_2);
        assert!("6.2".parse::<Series>().is_err());
    }

    #[test]
    fn versions_belong_to_a_series() {
        assert!(Series::V6_1.has("6.1.192-2") && !Series::V6_1.has("6.12.95-1~bpo12+1"));
        assert!(Series::V7_2.has("7.2.12+deb13-amd64") && Series::Newest.has("7.3.4-1~bpo13+1"));
    }

    #[test]
    fn a_newer_kbuild_of_the_series_serves() {
        let serves = |version: &str| {
            let kbuild = Package {
                name: "linux-kbuild-6.1".to_owned(),
                version: version.to_owned(),
                depends: Vec::new(),
                size: 1,
            };
            super::serves(&kbuild, Series::V6_1, "6.1.192-2")
        };
        assert!(serves("6.1.192-2") && serves("6.1.192-3") && serves("6.1.195-1"));
        assert!(!serves("6.1.192-1") && !serves("6.12.117-1~bpo12+1"));
    }

    #[test]
    fn generic_images_are_recognized() {
        assert!(is_generic("linux-image-6.1.0-56-amd64"));
        assert!(is_generic("linux-image-7.3.4+deb13-amd64"));
        for other in [
            "linux-image-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-56-rt-amd64",
            "linux-image-6.1.0-56-amd64-dbg",
        ] {
            assert!(!is_generic(other), "{other}");
        }
    }

    #[test]
    fn a_kernel_with_modules_is_preferred() {
        let image = |name: &str, version: &str, depends: &[&str]| Package {
            name: format!("{IMAGE}{name}"),
            version: version.to_owned(),
            depends: depends.iter().map(|name| format!("{IMAGE}{name}")).collect(),
            size: 0,
        };
        let images = [
            image("6.1.0-5-amd64", "6.1.100-1", &[]),
            image("6.1.0-6-amd64", "6.1.110-1", &[]),
            image("6.1.0-7-amd64", "6.1.120-1", &[]),
            image("6.1-amd64", "6.1.120-1", &["6.1.0-7-amd64"]),
            image("6.12.9-amd64", "6.12.9-1", &[]),
        ];
        let chosen = |preferred: &[&str]| {
            let preferred: Vec<String> = preferred.iter().map(|&name| name.to_owned()).collect();
            choose_image(images.to_vec(), Series::V6_1, &preferred).map(|image| image.name)
        };
        let newest = Some("linux-image-6.1.0-7-amd64".to_owned());
        assert_eq!(chosen(&[]), newest);
        assert_eq!(chosen(&["6.1.0-4-amd64", "6.12.9-amd64"]), newest);
        let with_modules = chosen(&["6.1.0-5-amd64", "6.1.0-6-amd64", "6.12.9-amd64"]);
        assert_eq!(with_modules, Some("linux-image-6.1.0-6-amd64".to_owned()));
    }

    #[test]
    fn missing_modules_have_a_remedy() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let build = Layout::of_build(directory.path());
        let installation = Layout { libexec: "/usr/libexec/dune".into(), ..build.clone() };
        let kernel = |series| Kernel {
            series,
            release: "6.12.9-amd64".to_owned(),
            root: directory.path().to_owned(),
        };
        let text = |series, layout| {
            let error = kernel(series).project_modules(layout).unwrap_err();
            assert!(error.is_environment(), "{error}");
            error.to_string()
        };
        assert!(text(Some(Series::V6_12), &build).ends_with(": run make KERNELS=6.12"));
        let installed = text(Some(Series::V6_12), &installation);
        assert!(installed.contains("`dunectl machine prepare --update 6.12`"), "{installed}");
        assert!(text(None, &build).ends_with("is built for 6.12.9-amd64"));
    }

    #[test]
    fn a_missing_kernel_has_a_remedy() {
        let missing = |series| Kernel::at(Path::new("/nonexistent"), series).unwrap_err();
        let error = missing(Some(Series::V7_2));
        assert!(error.is_environment(), "{error}");
        assert!(error.to_string().ends_with("run `dunectl machine prepare 7.2`"), "{error}");
        let error = missing(None);
        assert!(matches!(error, Error::Usage(_)), "{error}");
        assert_eq!(error.to_string(), "/nonexistent has no boot/vmlinuz-*");
    }
}
