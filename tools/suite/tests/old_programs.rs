// SPDX-License-Identifier: MIT OR Apache-2.0
//! The makefiles of tests/ remove the programs whose sources were renamed or removed: the suite
//! runs every program below build/tests/.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the target remove-old in a directory of tests/.
fn remove_old(directory: &str, build: &Path) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(tests.join(directory)).arg(format!("O={}", build.display()));
    // The flags of a make that runs this test are not for this one.
    make.arg("remove-old").env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    assert!(make.status().expect("make runs").success(), "{directory}");
}

#[test]
fn programs_without_a_source_are_removed() {
    let build = tempfile::tempdir().expect("a directory can be made");
    let build = build.path();
    remove_old(".", build);
    let program = |name: &str| -> PathBuf {
        let path = build.join("tests").join(name);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
        fs::write(&path, "").expect("a program can be written");
        path
    };
    for (directory, names) in [
        ("kernel", &["syscall.t"][..]),
        ("kvm", &["states.t"]),
        ("libdune", &["signals.t"]),
        ("package", &["dkms.t"]),
        ("run", &["start.t", "hostile/stats.t", "hostile/table.t"]),
    ] {
        let own = |name: &str| program(&format!("{directory}/{name}"));
        let current: Vec<_> = names.iter().map(|name| own(name)).collect();
        // The second one has a source that is not a test by itself.
        let old = ["no_source.t", "hostile/alone.t"].map(own);
        remove_old(".", build);
        assert!(old.iter().all(|path| path.exists()), "{directory} removes them itself");
        remove_old(directory, build);
        assert!(!old.iter().any(|path| path.exists()), "{directory}");
        assert!(current.iter().all(|path| path.exists()), "{directory}");
    }
    let old = program("no_directory/test.t");
    remove_old(".", build);
    assert!(!old.exists());
}
