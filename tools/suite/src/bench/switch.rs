// SPDX-License-Identifier: MIT OR Apache-2.0
//! The world switch, counted in a trace of one hypercall (bench/switch.c): its
//! instructions and memory accesses from the guest to the handler of the exit, and
//! from there back. objdump decodes the instructions as they were in memory, that
//! is, with everything that the kernel patches when it boots.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context as _, Result};
use dune_machine::{MachineType, Step, Trace};

use super::Measured;

pub const INSTRUCTIONS: &str = "world_switch_instructions";
pub const MEMORY: &str = "world_switch_memory";

/// Separates the counts from the special instructions in the detail of
/// `world_switch_instructions`.
pub const OF_THESE: &str = "; of these ";

/// More steps than a getpid takes.
const STEPS: usize = 800;

/// The world switches, in kernel/dune/*/switch.S.
const ASSEMBLY: [&str; 3] = ["svm_switch", "vmx_switch", "vmx_switch_exit"];
const HANDLERS: [&str; 2] = ["svm_handle_exit", "vmx_handle_exit"];

/// A guest's addresses are those of a process; the kernel's are higher.
const USER_END: u64 = 1 << 47;

/// Bytes for each instruction in objdump's input: the longest instruction, and
/// NOPs after which objdump is in step again.
const SLOT: usize = 32;

/// Whether the figure of this name is counted here.
pub fn is_id(id: &str) -> bool {
    id == INSTRUCTIONS || id == MEMORY
}

/// The trace, which begins at the program's label for this machine type.
pub fn trace_from_label(program: &Path, machine_type: &MachineType) -> Result<Trace> {
    let label = format!("trace_{machine_type}_here");
    let output = Command::new("nm").arg(program).output().context("running nm")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.ends_with(&format!(" {label}")));
    let address = line.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let address = address.with_context(|| format!("{} has no {label}", program.display()))?;
    Ok(Trace { address, steps: STEPS })
}

/// Functions of dune.ko by address, from /proc/kallsyms.
struct Symbols(BTreeMap<u64, String>);

impl Symbols {
    fn new(kallsyms: &str) -> Self {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let _ = words.next()?;
            let name = words.next()?;
            // Of Dune's module only: the kernel's functions are not distinguished here.
            let module = words.next()?.strip_prefix('[')?.strip_suffix(']')?;
            (module == "dune").then(|| (address, name.to_owned()))
        };
        Symbols(kallsyms.lines().filter_map(symbol).collect())
    }

    /// The module's function at an address: no other module follows so near.
    fn function(&self, address: u64) -> Option<(&str, u64)> {
        let (begin, name) = self.0.range(..=address).next_back()?;
        let offset = address - begin;
        (offset < 0x4000).then_some((name, offset))
    }

    fn is_start_of(&self, address: u64, names: &[&str]) -> bool {
        self.0.get(&address).is_some_and(|name| names.contains(&name.as_str()))
    }
}

/// An instruction, as objdump prints it.
#[derive(Debug, PartialEq, Eq)]
struct Instruction {
    length: usize,
    mnemonic: String,
    operands: String,
}

impl Instruction {
    /// The number of memory accesses: operands in memory, and the stack.
    fn memory(&self) -> usize {
        let name = self.mnemonic.strip_suffix('q').unwrap_or(&self.mnemonic);
        let stack = ["push", "pop", "call", "ret", "pushf", "popf", "leave"];
        let implicit = stack.contains(&name) as usize;
        let names_only = ["lea", "nop", "prefetch"].iter().any(|no| self.mnemonic.starts_with(no));
        if names_only || self.mnemonic == "leave" {
            return implicit;
        }
        let jumps = self.mnemonic.starts_with('j') || self.mnemonic.starts_with("call");
        let mut depth = 0;
        let parts = self.operands.split(|c| {
            depth += (c == '(') as i32 - (c == ')') as i32;
            c == ',' && depth == 0
        });
        let in_memory = |operand: &str| {
            if jumps {
                operand.starts_with('*') && operand.contains(['(', ':'])
            } else {
                operand.contains(['(', ':']) || operand.starts_with("0x")
            }
        };
        implicit + parts.filter(|operand| in_memory(operand.trim())).count()
    }

    /// Its name, if it does more than compute.
    fn special(&self) -> Option<String> {
        const NAMES: [&str; 8] =
            ["clgi", "stgi", "rdmsr", "wrmsr", "xgetbv", "xsetbv", "invept", "verw"];
        let name = &self.mnemonic;
        if NAMES.contains(&name.as_str()) || name.starts_with("vm") {
            return Some(name.to_uppercase());
        }
        let register = ["%cr", "%db", "%dr"].iter().any(|r| self.operands.contains(r));
        (register && name.starts_with("mov")).then(|| "MOV of CR or DR".to_owned())
    }
}

/// An instruction whose bytes could not be read counts as a NOP.
fn decode(steps: &[Step]) -> Result<Vec<Instruction>> {
    let mut file = tempfile::NamedTempFile::new().context("making a file for objdump")?;
    for step in steps {
        let bytes = step.bytes.as_deref().unwrap_or_default();
        let mut slot = [0x90; SLOT];
        slot[..bytes.len()].copy_from_slice(bytes);
        file.write_all(&slot).context("writing for objdump")?;
    }
    let output = Command::new("objdump")
        .args(["-D", "-b", "binary", "-m", "i386:x86-64", "--insn-width=15"])
        .arg(file.path())
        .output()
        .context("running objdump")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found: Vec<Option<Instruction>> = steps.iter().map(|_| None).collect();
    for line in text.lines() {
        if let Some((at, instruction)) = parse(line) {
            if at % SLOT == 0 && at / SLOT < found.len() {
                found[at / SLOT] = Some(instruction);
            }
        }
    }
    let all: Option<Vec<_>> = found.into_iter().collect();
    all.context("objdump does not know an instruction")
}

/// "  40:\t48 89 d8   \tmov    %rbx,%rax"
fn parse(line: &str) -> Option<(usize, Instruction)> {
    let mut parts = line.split('\t');
    let at = usize::from_str_radix(parts.next()?.trim().strip_suffix(':')?, 16).ok()?;
    let length = parts.next()?.split_whitespace().count();
    let text = parts.next()?.split('#').next()?.trim();
    let prefixes =
        ["lock", "rep", "repz", "repnz", "cs", "ds", "data16", "notrack", "rex.W", "bnd"];
    let mut words = text.split_whitespace().skip_while(|word| prefixes.contains(word));
    let mnemonic = words.next().unwrap_or(text).to_owned();
    let operands = words.collect::<Vec<_>>().join(" ");
    Some((at, Instruction { length, mnemonic, operands }))
}

/// Adds what is missing in QEMU's trace. QEMU executes VMRUN, and likewise a
/// guest's exit, together with the instruction that follows, so the instruction
/// after VMRUN is missing. It does not read a guest's memory either, but the first
/// instruction is known.
fn complete(steps: &[Step]) -> Result<Vec<Step>> {
    const VMMCALL: [u8; 3] = [0x0f, 0x01, 0xd9];
    let mut steps = steps.to_vec();
    if let Some(first) = steps.first_mut().filter(|first| first.bytes.is_none()) {
        first.bytes = Some(VMMCALL.to_vec());
    }
    let decoded = decode(&steps)?;
    let enters = decoded.iter().position(|instruction| instruction.mnemonic == "vmrun");
    let first = steps.iter().position(|step| step.address >= USER_END);
    let (Some(enters), Some(first)) = (enters, first) else { return Ok(steps) };
    let length = decoded[enters].length;
    let after = Step {
        address: steps[enters].address + length as u64,
        bytes: steps[enters].bytes.as_ref().map(|bytes| bytes[length..].to_vec()),
    };
    let missing = &decode(std::slice::from_ref(&after))?[0];
    if steps[first].address == after.address + missing.length as u64 {
        steps.insert(first, after);
    }
    Ok(steps)
}

/// A part of the path.
#[derive(Default)]
struct Part {
    instructions: usize,
    memory: usize,
    special: BTreeMap<String, usize>,
}

impl Part {
    fn of(instructions: &[Instruction]) -> Self {
        let mut part = Part { instructions: instructions.len(), ..Part::default() };
        for instruction in instructions {
            part.memory += instruction.memory();
            if let Some(name) = instruction.special() {
                *part.special.entry(name).or_default() += 1;
            }
        }
        part
    }
}

/// The instructions that were executed, to read.
pub fn listing(steps: &[Step], kallsyms: &str) -> Result<String> {
    let symbols = Symbols::new(kallsyms);
    let steps = complete(steps)?;
    let mut text = String::new();
    for (step, Instruction { mnemonic, operands, .. }) in steps.iter().zip(decode(&steps)?) {
        let place = symbols.function(step.address);
        let place = place.map(|(name, offset)| format!("{name}+{offset:#x}")).unwrap_or_default();
        writeln!(text, "{:016x} {place:32} {mnemonic} {operands}", step.address)?;
    }
    Ok(text)
}

/// The figures of a trace.
pub fn count(steps: &[Step], kallsyms: &str) -> Result<Vec<Measured>> {
    let symbols = Symbols::new(kallsyms);
    let steps = complete(steps)?;
    let decoded = decode(&steps)?;
    let from = |start: usize, wanted: &dyn Fn(&Step) -> bool| {
        let found = steps.iter().skip(start).position(wanted);
        found
            .map(|place| place + start)
            .context("the trace does not reach the functions that it should")
    };
    let is_c = |step: &Step| {
        let place = symbols.function(step.address);
        place.is_some_and(|(name, _)| !ASSEMBLY.contains(&name))
    };
    let c = from(0, &is_c)?;
    let handler = from(c, &|step| symbols.is_start_of(step.address, &HANDLERS))?;
    let call = (0..handler).rev().find(|&n| decoded[n].mnemonic.starts_with("call"));
    let call = call.context("the handler is not called")?;
    let return_address = steps[call].address + decoded[call].length as u64;
    let returned = from(handler, &|step| step.address == return_address)?;
    let guest = from(returned, &|step| step.address < USER_END)?;
    ensure!(steps[0].address < USER_END, "the trace does not begin in the guest");

    let parts = [0..c, c..handler, returned..guest].map(|range| Part::of(&decoded[range]));
    let mut special = BTreeMap::new();
    for (name, times) in parts.iter().flat_map(|part| &part.special) {
        *special.entry(name).or_insert(0) += times;
    }
    let special: Vec<_> = special.iter().map(|(name, times)| format!("{times} {name}")).collect();
    let figure = |id: &str, unit: &str, of: fn(&Part) -> usize, more: String| {
        let [assembly, exit, back] = parts.each_ref().map(of);
        Measured {
            id: id.to_owned(),
            unit: unit.to_owned(),
            linux: None,
            dune: (assembly + exit + back) as f64,
            exits: None,
            allowance: 0.0,
            detail: Some(format!(
                "{assembly} to the assembly's end, {exit} to the handler, {back} back{more}"
            )),
            functions: Vec::new(),
        }
    };
    let more = format!("{OF_THESE}{}", special.join(", "));
    Ok(vec![
        figure(INSTRUCTIONS, "instructions", |part| part.instructions, more),
        figure(MEMORY, "accesses", |part| part.memory, String::new()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(line: &str) -> usize {
        parse(&format!("  40:\t48 89 d8   \t{line}")).unwrap().1.memory()
    }

    #[test]
    fn accesses_are_counted() {
        assert_eq!(memory("mov    %rbx,%rax"), 0);
        assert_eq!(memory("mov    0x18(%rbx,%rcx,8),%rax"), 1);
        assert_eq!(memory("mov    %gs:0x1fbc0,%rax"), 1);
        assert_eq!(memory("mov    %gs:0x7f03e68b(%rip),%rax        # 0x7f03e6a2"), 1);
        assert_eq!(memory("cmpq   $0x0,0x8(%rdx)"), 1);
        assert_eq!(memory("lea    0x8(%rdx),%rax"), 0);
        assert_eq!(memory("nopl   0x0(%rax,%rax,1)"), 0);
        assert_eq!(memory("push   %rbp"), 1);
        assert_eq!(memory("pop    0x28(%rdi)"), 2);
        assert_eq!(memory("ret"), 1);
        assert_eq!(memory("call   0x1234"), 1);
        assert_eq!(memory("jmp    0x1234"), 0);
        assert_eq!(memory("jmp    *0x8(%rax)"), 1);
        assert_eq!(memory("lock xchg %eax,(%rdx)"), 1);
        assert_eq!(memory("vmload %rax"), 0);
    }
}
