// SPDX-License-Identifier: MIT OR Apache-2.0
//! make install leaves only modules that were built with the installed programs: dunectl
//! loads any module of the prefix that fits the kernel's release.

use std::fs;
use std::path::Path;
use std::process::Command;

use dune_machine::MODULES;

fn write(path: &Path) {
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
    fs::write(path, "").expect("a file can be written");
}

#[test]
fn modules_of_an_earlier_installation_are_removed() {
    let root = tempfile::tempdir().expect("a directory can be made");
    let (build, staged) = (root.path().join("build"), root.path().join("staged"));
    for file in ["bin/dunectl", "libexec/dune-agent", "libexec/dune-run", "lib/libdune.a"] {
        write(&build.join(file));
    }
    write(&build.join("machine/6.1/usr/src/linux-headers-6.1.0-2-amd64/Makefile"));
    for name in MODULES {
        write(&build.join(format!("kernel/6.1.0-2-amd64/{name}.ko")));
    }
    let modules = staged.join("usr/lib/dune/kernel");
    write(&modules.join("6.1.0-1-amd64/dune.ko"));

    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    make.args(["install-files", "KERNELS=6.1", "PREFIX=/usr"]);
    make.arg(format!("O={}", build.display())).arg(format!("DESTDIR={}", staged.display()));
    // The flags of a make that runs this test are not for this one.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    assert!(make.output().expect("make runs").status.success());
    for name in MODULES {
        assert!(modules.join(format!("6.1.0-2-amd64/{name}.ko")).exists());
    }
    assert!(!modules.join("6.1.0-1-amd64").exists());
}
