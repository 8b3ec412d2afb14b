#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs dune-dkms and dune as docs/install.md describes, in a machine whose
# changes are discarded. dkms builds the module here, with the headers of the
# kernel that runs; udev gives the device its rights. Fails when a package does
# not install, when dkms does not build the module, when the device is not
# dune:660, when a member of the group cannot run a program or another user can,
# when an upgrade unloads a module for which there is no new one or leaves the old one
# loaded, or when removal leaves the module (also one that is loaded and whose file is gone, as
# after an upgrade without a new one). Compiling takes minutes in an emulator, so the
# upgrade uses the tree in which dkms built the module before. DKMS_TREE names such a tree,
# instead of the first compilation.
DUNE_BUILD=${DUNE_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)}
packages=$DUNE_BUILD/packages
release=$(uname -r)
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
. "$(dirname "$0")/tap.bash"

# A user in the group dune, and one outside it.
member() { setpriv --reuid 65534 --regid 65534 --groups "$(getent group dune | cut -d: -f3)" "$@"; }
stranger() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# Prints make's log if dkms has not installed the module.
is_installed() {
	dkms status -k "$release" dune | grep -q ': installed' && return
	cat /var/lib/dkms/dune/*/build/make.log
	return 1
}

# dunectl as a user runs it, from a directory that every user can enter.
by() { (cd / && "$1" dunectl "${@:2}" 2>&1); }

ls "$packages"/dune_*.deb "$packages"/dune-dkms_*.deb >/dev/null ||
	bail "no packages: make deb"
# The headers lie where the kernel was unpacked.
for headers in "$DUNE_BUILD"/machine/*/usr/src/linux-headers-"$release"; do
	[ -d "$headers" ] && ln -sfn "$headers" "/lib/modules/$release/build"
done
rmmod dune dune_guard 2>/dev/null
[ -d /run/udev ] || /lib/systemd/systemd-udevd --daemon || bail "no udev"

# adopt TREE: dkms installs the module that it built in another tree
adopt() {
	cp -r "$1/." /var/lib/dkms/
	ln -sfn "/usr/src/dune-$version" "/var/lib/dkms/dune/$version/source"
	dkms install -m dune -v "$version" -k "$release"
}

[ -z "$DKMS_TREE" ] || touch /etc/dkms/no-autoinstall
try "dune-dkms installs" dpkg -i "$packages"/dune-dkms_*.deb
version=$(dpkg-query -W -f '${Version}' dune-dkms)
[ -z "$DKMS_TREE" ] || try "dkms installs the module of DKMS_TREE" adopt "$DKMS_TREE"
try "dkms has built and installed the module" is_installed
try "modprobe loads the module that dkms installed" modprobe dune
try "udev settles after the module was loaded" udevadm settle
is "$(stat -c %G:%a /dev/dune)" dune:660 "the device belongs to the group"
try "dune installs after dune-dkms" dpkg -i "$packages"/dune_*.deb
is "$(by member run --no-machine -- sh -c 'id -u; echo hello' | tr '\n' ' ')" "65534 hello " \
	"a member of the group runs a program in Dune mode"
try "dunectl check succeeds for a member of the group" by member check
is "$(by member check | grep -cE '^ *lacks +(module|headers|device) ')" 0 \
	"dunectl check lacks no module"
is "$(by stranger run --no-machine -- echo hello >/dev/null; echo $?)" 69 \
	"a user outside the group cannot run a program in Dune mode"
echo '#include <dune.h>
#include <linux/dune.h>
int main(void) { return DUNE_VENDOR_SVM ? 0 : 1; }' >/tmp/dune-header.c
try "a program compiles with the installed headers" gcc -fsyntax-only /tmp/dune-header.c
# A new module makes a new device. While dkms may not build, the package has no new module.
old=$(stat -c %i /dev/dune)
tree=$(mktemp -d)
cp -r /var/lib/dkms/. "$tree"
# By this link dkms knows that it has installed the module; with it, adopt would do nothing.
rm "$tree/dune/kernel-$release-x86_64"
touch /etc/dkms/no-autoinstall
try "dune-dkms is upgraded" dpkg -i "$packages"/dune-dkms_*.deb
is "$(stat -c %i /dev/dune)" "$old" "an upgrade without a new module leaves the old one loaded"
try "dkms installs the new module" adopt "$tree"
try "dune-dkms is configured after an upgrade" \
	/var/lib/dpkg/info/dune-dkms.postinst configure "$version"
try "udev settles after the upgrade" udevadm settle
is "$(stat -c %G:%a /dev/dune)" dune:660 "a module is loaded after the upgrade"
[ "$(stat -c %i /dev/dune)" != "$old" ]
ok $? "the module that is loaded after the upgrade is the new one"
try "modprobe loads the guard's module" modprobe dune-guard
try "dune-dkms is removed" dpkg -r dune-dkms
is "$(lsmod | grep -c '^dune ')" 0 "removing dune-dkms unloads the module"
is "$(lsmod | grep -c '^dune_guard ')" 0 "removing dune-dkms unloads the guard's module"
is "$(find "/lib/modules/$release/" -name 'dune.ko*')" "" \
	"removing dune-dkms removes the module from the disk"
try "a module without a file is loaded" \
	insmod "$tree/dune/$version/$release/x86_64/module"/dune.ko*
try "dune-dkms installs while a module without a file is loaded" \
	dpkg -i "$packages"/dune-dkms_*.deb
try "dune-dkms is removed again" dpkg -r dune-dkms
is "$(lsmod | grep -c '^dune ')" 0 "removing dune-dkms unloads a module whose file is gone"
try "dune is removed" dpkg -r dune
finish
