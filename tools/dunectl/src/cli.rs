// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl's commands and options, and their help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use dune_machine::{options, Device, MachineType, Series};

use crate::content::Choice;

/// Run unmodified Linux programs in Dune mode
///
/// Dune gives ordinary processes safe, direct use of the processor's
/// privileged hardware. `dunectl run` runs a program inside a sandbox that is
/// built on it. `dunectl check` reports what this computer has and lacks for it.
/// `dunectl machine` boots an emulated computer, for use where this one has no
/// virtualization or no /dev/dune.
#[derive(Debug, Parser)]
#[command(name = "dunectl", version, max_term_width = 90, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dunectl check                          report what this computer lacks
  dunectl run -- ls -l                   ls in the sandbox
  dunectl run --stats -- make            make in the sandbox, with counters at the end
  dunectl machine shell --kernel 6.12    look around in the emulated machine
  dunectl guard check                    can the guard be launched beneath this kernel?
  dunectl keys generate disk             a key to encrypt with, kept by the kernel";

const RUN_NOTES: &str = "\
Where it runs:
  The program runs on this computer if /dev/dune can be used, and otherwise in the
  svm machine (AMD, emulated); one line on stderr reports that. There, arguments,
  directory, environment, user, standard streams (pipes and a terminal), Ctrl-C and
  exit status are the same as here. The working directory and each --write DIR are
  the real ones. Everything else can be written to as well, but only in the machine's
  memory, and is discarded at the end. The machine has no network.
  In the vmx machine (--machine vmx) all files are copies, and all changes are
  discarded. It has the files of the Debian packages that the tests use, and copies of
  /etc, Dune's programs and the working directory, together at most 1 GB.
  --kernel, --model, --memory, --cpus and --write are for the machine. They have no
  effect if the program runs on this computer; --machine svm forces the machine.

Exit status:
  the program's own (also death by a signal)
  2    an option of dunectl is wrong
  69   this computer lacks something (see dunectl check)
  125  dunectl or the machine failed
  126  the program was found but cannot be executed
  127  the program was not found

Examples:
  dunectl run -- python3 script.py
  dunectl run --machine svm --kernel 6.12 --memory 4096 -- ./test-suite
  tar c . | dunectl run -- gzip -9 >../all.tar.gz";

const GUARD_NOTES: &str = "\
From nothing to a sealed guard (AMD, as root):
  modprobe dune-guard       loads the module; nothing changes yet
  dunectl guard check       can it be launched here? If not, the reason
  dunectl guard launch      Linux now runs as the guard's only guest
  dunectl guard status      CPUs, memory, and how often a CPU left the kernel
  dunectl guard seal        from now on until a reboot the guard cannot be stopped,
                            and its memory is not there for the kernel
  Before the seal, `dunectl guard stop` takes the guard away again.

To guard a driver that nobody changed:
  dunectl guard describe DRIVER.ko -o DRIVER.toml    what has to be in memory
  dunectl guard bind DRIVER.toml     writes /etc/dune/guard.d/DRIVER.toml
  dunectl guard leaves DRIVER.toml >>/etc/dune/guard.d/DRIVER.toml    makes it faster
  dunectl guard register DRIVER.toml before the seal; status shows what became of it

Exit status:
  0    done
  1    the guard refused; stderr (of check, stdout) has the reason
  2    an option of dunectl is wrong
  69   there is no /dev/dune-guard, or it may not be opened
  125  dunectl failed

Of kernel modules the guard protects guard-keys, and those that were registered: docs/guard.md tells
what it promises, and docs/guard-modules.md what it does for a module.";

const KEYS_NOTES: &str = "\
The keys are yours alone, until you forget them or the computer is reset. Then what they
encrypted is lost, unless they were put and you have their secret. No command prints a key.
Without a guard, the kernel can read all keys, and so can root: `dunectl keys list` tells
whether they are guarded. A guard that is launched guards them when guard-keys is loaded; if it
is launched later, `dunectl keys guard` lets it.

Exit status:
  0    done
  1    refused: no such key, a wrong signature, a message that was changed, ...
  2    an option of dunectl is wrong
  69   there is no /dev/guard-keys, or it may not be opened
  125  dunectl failed

Examples:
  dunectl keys generate disk                        a key that nobody has ever seen
  dunectl keys encrypt disk <notes >notes.enc
  dunectl keys decrypt disk <notes.enc
  head -c 32 /dev/random >s; dunectl keys put seal --kind signer s; shred -u s
  dunectl keys sign seal notes
  dunectl keys verify seal SIGNATURE notes
  dunectl keys forget disk                          what it encrypted is lost";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program in the sandbox
    #[command(after_help = RUN_NOTES)]
    Run(RunOptions),
    /// Use the emulated machine directly: run commands, get a shell, fetch kernels
    Machine {
        #[command(subcommand)]
        command: MachineCommand,
    },
    /// Launch a small hypervisor beneath this computer's kernel, look at it, take it away
    #[command(after_help = GUARD_NOTES)]
    Guard {
        #[command(subcommand)]
        command: GuardCommand,
    },
    /// Keep keys in the kernel module guard-keys, and encrypt and sign with them
    #[command(after_help = KEYS_NOTES)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Report what this computer has and lacks for Dune, and what to do about it
    ///
    /// The report has one line for each finding. The exit status is 0 if programs
    /// run in Dune mode on this computer itself, 1 if they run in the emulated
    /// machine, and 2 if they do not run at all (or an option is wrong).
    Check,
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// Print counters as one JSON object on stderr at the end (system calls, page faults,
    /// VM exits), or with =FILE write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          default_missing_value = STDERR,
          value_parser = OsStringValueParser::new().map(StatsTo::from))]
    pub stats: Option<StatsTo>,

    /// Run in this emulated machine even if /dev/dune can be used
    #[arg(long, value_name = "MACHINE", conflicts_with = "no_machine",
          value_parser = options::machine_type())]
    pub machine: Option<&'static MachineType>,

    /// Never run in an emulated machine; fail without /dev/dune
    #[arg(long)]
    pub no_machine: bool,

    #[command(flatten)]
    pub parts: MachineParts,

    /// Let the svm machine write to the real DIR, too (repeatable)
    #[arg(long = "write", value_name = "DIR")]
    pub shares: Vec<PathBuf>,

    /// The program, looked up in PATH, and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub command: Vec<OsString>,
}

/// The name of standard error, as in other commands.
const STDERR: &str = "-";

/// Where the counters of --stats are printed.
#[derive(Debug, Clone)]
pub enum StatsTo {
    Stderr,
    File(PathBuf),
}

impl From<OsString> for StatsTo {
    fn from(name: OsString) -> Self {
        if name == STDERR {
            StatsTo::Stderr
        } else {
            StatsTo::File(name.into())
        }
    }
}

/// The choices about the machine that both `run` and `machine` offer.
#[derive(Debug, Clone, Args)]
pub struct MachineParts {
    /// Kernel of the emulated machine
    #[arg(long, value_name = "SERIES", default_value_t = Series::DEFAULT,
          value_parser = options::kernel_series())]
    pub kernel: Series,

    /// CPU model of the emulated machine, by QEMU's or Bochs's name for it [default: EPYC
    /// in svm, corei7_ivy_bridge_3770k in vmx; corei7_haswell_4770 also has INVPCID and
    /// accessed and dirty bits in EPT]
    #[arg(long, value_name = "NAME", value_parser = options::cpu_model)]
    pub model: Option<String>,

    /// Memory of the emulated machine in megabytes [default: 2048 in svm, 1024 in vmx]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(256..))]
    pub memory: Option<u32>,

    /// CPUs of the emulated machine. If svm has several, their numbers are 1 to N; CPU 0 stays idle
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = options::cpus())]
    pub cpus: u32,
}

#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// Boot, run one command as root, and end
    ///
    /// Standard streams, directory, environment and exit status are the same as
    /// here. The project's modules are loaded if they were built for the kernel. A
    /// BUG, WARNING, Oops or stall in the kernel's log makes the run fail with status
    /// 125, as does an error of dunectl or of the machine. Other statuses of its own
    /// are 2 (an option is wrong), 69 (this computer lacks something), 126 (the
    /// command cannot be executed) and 127 (it was not found).
    Run(MachineRun),
    /// Boot and give a shell
    Shell(MachineOptions),
    /// List the kernels that are prepared
    List,
    /// Fetch kernels from Debian's packages, and in a build directory make the vmx machine's disk
    ///
    /// Kernels that were fetched already stay.
    Prepare {
        /// The kernels
        #[arg(value_name = "SERIES", default_values_t = Series::USUAL,
              value_parser = options::kernel_series())]
        kernels: Vec<Series>,
        /// Fetch them again, for a newer build of the same series; the old ones stay if that fails
        #[arg(long)]
        update: bool,
    },
}

#[derive(Debug, Args)]
pub struct MachineRun {
    #[command(flatten)]
    pub options: MachineOptions,

    /// Give up, and report a hung machine, after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,

    /// Print the kernel's log on stderr
    #[arg(long)]
    pub log: bool,

    /// The command, looked up in PATH, and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct MachineOptions {
    /// The type of machine
    #[arg(long, value_name = "MACHINE", default_value = MachineType::DEFAULT.name,
          value_parser = options::machine_type())]
    pub machine: &'static MachineType,

    #[command(flatten)]
    pub parts: MachineParts,

    /// Let the svm machine write to the real DIR (repeatable); other writes are discarded
    #[arg(long = "write", value_name = "DIR")]
    pub shares: Vec<PathBuf>,

    /// Count exactly: one CPU, whose time stamp counter counts instructions
    #[arg(long)]
    pub counting: bool,

    /// An argument for the kernel, such as pti=on (repeatable)
    #[arg(long = "append", value_name = "ARGUMENT")]
    pub kernel_arguments: Vec<String>,

    /// A CPU feature to add (la57), to remove (-pdpe1gb) or to set (phys-bits=52); repeatable
    #[arg(long = "cpu-feature", value_name = "FEATURE", allow_hyphen_values = true)]
    pub cpu_features: Vec<String>,

    /// A device for tests, in the svm machine (repeatable)
    #[arg(long = "device", value_name = "DEVICE", value_parser = options::device())]
    pub devices: Vec<&'static Device>,

    /// Do not load the project's modules
    #[arg(long)]
    pub no_module: bool,

    /// Boot a kernel of your own: DIR has boot/vmlinuz-* and lib/modules/*, and gets an initramfs
    #[arg(long, value_name = "DIR")]
    pub kernel_from: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Report whether the guard can be launched now, or the reason why not
    ///
    /// Reasons are, for instance: the processor has no SVM, or the firmware disables it; SVM is
    /// in use by KVM or Dune; the firmware has not locked SMM.
    Check(Json),
    /// Launch the guard beneath the running kernel, on all CPUs
    ///
    /// Programs and devices continue. If one CPU refuses, the launch is undone on the others.
    Launch,
    /// Make the guard irrevocable until the next reboot
    ///
    /// From then on stop, rmmod, suspend, kexec and taking CPUs off line are refused, and the
    /// guard's memory reads as zeros. All CPUs must be on line, Linux must have all
    /// processors of the firmware's table, and no kernel may be loaded for kexec.
    Seal,
    /// Report the state (off, launched, sealed), CPUs, memory, exits by reason, and modules with
    /// what is chosen for suspicious activity
    Status(Json),
    /// Stop a guard that is not sealed, on all CPUs
    Stop,
    /// Print what the guard has refused, oldest first: the time (TSC), the CPU, and the object
    ///
    /// The guard keeps the last 64 entries. Those about suspicious activity around a module also
    /// have what its binding has chosen for that.
    Log(Json),
    /// Write down what a kernel module must look like in memory: its content
    ///
    /// The module's object file is read, and nothing is loaded; this needs neither root nor the
    /// guard. The result is TOML.
    #[command(after_help = DESCRIBE_NOTES)]
    Describe(Describe),
    /// Report what the privileges of a file are on this computer: BARs, ports, registers
    ///
    /// The file has entries [[privilege]], as a binding does; docs/guard-privileges.md has the
    /// form. This needs neither root nor the guard.
    Privileges(PrivilegesOptions),
    /// Write the binding of a description: the file that lists what the module may do
    ///
    /// It names the module, its class, the description's SHA-256, and what happens on suspicious
    /// activity, and goes to /etc/dune/guard.d/NAME.toml. Entries [[privilege]] are for you to add.
    Bind(Bind),
    /// Propose functions of this kernel that a module executes itself: entries [[leaf]]
    ///
    /// They are for the module's binding. A call of such a function, and a return by a thunk of the
    /// kernel's, is no crossing of the border then. The entries are for this kernel on this
    /// computer. This needs root, and no guard; docs/guard-modules.md explains it.
    Leaves(Leaves),
    /// Guard a module that was described and bound, whenever it is loaded
    ///
    /// The module is compared with its description when it is loaded, or now if it is loaded
    /// already. Once the guard is sealed, no module can be registered or unregistered any more.
    Register {
        /// What `dunectl guard describe` has written
        #[arg(value_name = "FILE.toml")]
        description: PathBuf,
        /// Count the crossings of its border by function, for `dunectl guard crossings`, which
        /// makes each crossing cost a little more
        #[arg(long)]
        count_crossings: bool,
    },
    /// Guard a module no longer; it stays loaded
    Unregister {
        /// The module's name, as in `dunectl guard status`
        name: String,
    },
    /// Print how often the border of a module was crossed, by function
    ///
    /// Functions are the module's entry points, which the kernel calls, and the kernel's functions,
    /// which the module calls. The module was registered with --count-crossings. The counts are
    /// those since it was loaded, or those while COMMAND runs.
    Crossings(Crossings),
    /// Write metadata in the form that the guard reads, for tests
    #[command(hide = true)]
    Encode(Encode),
}

const DESCRIBE_NOTES: &str = "\
The metadata have:
  entries    the functions that the kernel may call, since it knows their addresses: those whose
             address the module takes, init, exit, and exported functions
  exits      the functions outside that the module calls
  section    each section, and where it is loaded; for code and constants the SHA-256 before
             relocation, with zeros for relocations and patch sites, and all relocations with
             their targets
  site       the places that Linux patches, by kind (alternative, retpoline, return, mcount,
             jump-label, static-call, ...), with all contents that they may have
  bugs, fixups
             where the module continues after an exception

Examples:
  dunectl guard describe /lib/modules/$(uname -r)/kernel/drivers/net/ethernet/intel/e1000/e1000.ko
  dunectl guard describe e1000e.ko.xz -o e1000e.toml    compressed by xz, zstd or gzip

Exit status:
  0    done
  2    the file is no module for x86-64, or has something that is not known here
  69   the program that unpacks it is missing
  125  dunectl failed

docs/guard-modules.md explains the format.";

#[derive(Debug, Args)]
pub struct Describe {
    /// The module's object file
    #[arg(value_name = "MODULE.ko")]
    pub module: PathBuf,

    /// Write to FILE [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Bind {
    /// What `dunectl guard describe` has written
    #[arg(value_name = "FILE.toml")]
    pub description: PathBuf,

    /// Write to FILE [default: /etc/dune/guard.d/NAME.toml]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// What happens on suspicious activity around the module: a fetch of its code at no entry
    /// point, an exit by no call or return, a write to its code or constants, or another content
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = Choice::Log)]
    pub on_suspicion: Choice,

    /// Replace a binding that exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Leaves {
    /// What `dunectl guard describe` has written
    #[arg(value_name = "FILE.toml")]
    pub description: PathBuf,
}

#[derive(Debug, Args)]
pub struct Encode {
    /// The metadata
    pub metadata: PathBuf,

    /// Take addresses from FILE [default: the running kernel, if the metadata are for it]
    #[arg(short, long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,

    /// Write to FILE [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PrivilegesOptions {
    /// The file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,

    /// Write the guard's own list to FILE instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Crossings {
    /// The module's name, as in `dunectl guard status`
    #[arg(value_name = "MODULE")]
    pub name: String,

    #[command(flatten)]
    pub json: Json,

    /// Divide by the packets that this network interface sends while COMMAND runs
    #[arg(long, value_name = "INTERFACE", requires = "command", conflicts_with = "received")]
    pub sent: Option<String>,

    /// Divide by the packets that this network interface receives while COMMAND runs
    #[arg(long, value_name = "INTERFACE", requires = "command")]
    pub received: Option<String>,

    /// Count while this command runs, and end with its exit status if it fails
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Json {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Put a key of yours into the module: its secret is FILE, or standard input
    ///
    /// A cipher's secret has 32 bytes, a signer's 16 to 64. Clear your own copy afterwards.
    Put {
        #[command(flatten)]
        key: NewKey,
        #[command(flatten)]
        input: Input,
    },
    /// Make a new key, whose secret is never outside of the module
    Generate(NewKey),
    /// Encrypt FILE, or standard input, to standard output (AES-256-GCM)
    ///
    /// The result is 28 bytes longer: the nonce (12 bytes), the tag (16 bytes), the encrypted
    /// text. At most 65,536 bytes are encrypted at once.
    Encrypt {
        /// The key, a cipher
        name: String,
        /// Additional data, which is not in the result, but without which it is not decrypted
        #[arg(long, default_value = "")]
        extra: String,
        #[command(flatten)]
        input: Input,
    },
    /// Decrypt FILE, or standard input, to standard output; nothing is written if it was changed
    Decrypt {
        /// The key, a cipher
        name: String,
        /// The additional data with which it was encrypted
        #[arg(long, default_value = "")]
        extra: String,
        #[command(flatten)]
        input: Input,
    },
    /// Print a signature of FILE, or standard input: 64 digits (HMAC-SHA-256)
    ///
    /// At most 65,536 bytes are signed at once: sign a hash of what is longer.
    Sign {
        /// The key, a signer
        name: String,
        #[command(flatten)]
        input: Input,
    },
    /// Verify a signature of FILE, or standard input, by the key that made it
    Verify {
        /// The key, a signer
        name: String,
        /// The 64 digits
        signature: String,
        #[command(flatten)]
        input: Input,
    },
    /// Let a guard that is launched, and not sealed, keep the keys from the kernel
    ///
    /// Keys that exist already must be forgotten first: the kernel could read them.
    Guard,
    /// List your keys: names, kinds, messages so far, and what each may be used for
    List(Json),
    /// Clear a key; what it encrypted is lost, unless you have a copy of the secret
    Forget {
        /// The key
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct NewKey {
    /// A name: letters, digits, "-", "_" and ".", at most 31
    pub name: String,
    /// What the key is for
    #[arg(long, value_enum, default_value_t = KeyKind::Cipher)]
    pub kind: KeyKind,
    /// Let it be used for this alone (repeatable) [default: for all that its kind does]
    #[arg(long = "may", value_name = "USE", value_enum)]
    pub uses: Vec<KeyUse>,
}

/// The numbers are those of guard_keys_key.kind.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum KeyKind {
    /// Encrypts and decrypts
    Cipher = 1,
    /// Signs and verifies
    Signer = 2,
}

/// The numbers are the bits of guard_keys_key.usage.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum KeyUse {
    Encrypt,
    Decrypt,
    Sign,
    Verify,
}

#[derive(Debug, Args)]
pub struct Input {
    /// What to read [default: standard input]
    pub file: Option<PathBuf>,
}
