//! Reads the machine code of functions from the program's file, the kernel's memory, a JIT's dump or a
//! running process.
//!
//! Takes an address in a module's own address space. Returns the machine code with names for its targets,
//! or the reason why the code is unavailable, with a remedy. The running kernel's memory is preferred to the
//! kernel's file, since the kernel patches its code at boot. [`disassemble`](disassemble) decodes
//! instructions.
//!
//! ```text
//!   program, library, vdso   its file, by segment
//!   kernel, module, BPF      --kcore FILE | --vmlinux FILE | /proc/kcore of the same boot
//!                            vmlinux found by search
//!   JIT                      jitdump | /proc/PID/mem of a running process
//! ```

pub mod disassemble;
mod kcore;
pub(super) mod scan;

use crate::hint::Hint;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSegment};
use rustc_hash::FxHashMap;

use self::disassemble::{
    CodeRequest, DisassemblyError, Flow, Instruction, InstructionSet, InstructionTarget, Syntax,
};
use super::archive::ArchivedModule;
use super::files::elf::laid_out;
use super::files::image::Image;
use super::jit::jitdump::Jitdump;
use super::module::{ModuleId, SymbolModuleKind, SymbolQuery};
use super::name_sources::LiveMemory;
use super::symbolizer::Symbolizer;
use super::tables::plt::{SlotTarget, slot_targets};
use crate::address::Avma;

/// Maximum size of a function in bytes. Larger functions are truncated.
pub const MOST_CODE: u64 = 1 << 20;

/// Maximum size of an instruction in bytes, on x86.
pub const LONGEST_INSTRUCTION: u64 = 15;

/// Machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCode {
    /// Start address in the module's own address space.
    pub(crate) start: u64,
    pub(crate) machine: InstructionSet,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The file that provided the bytes.
    pub from: PathBuf,
    /// Addresses with source file and line, if the source of the bytes has them (jitdump).
    pub lines: Vec<(u64, String, u32)>,
    /// Whether the code contains unresolved relocations (a kernel module's file), so that its targets are
    /// meaningless.
    pub is_unlinked: bool,
}

/// Why code is unavailable, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCode {
    /// The reason.
    pub why: String,
    /// A remedy.
    pub remedy: Option<Hint>,
}

impl NoCode {
    fn new(why: impl Into<String>, remedy: impl Into<Hint>) -> Self {
        Self { why: why.into(), remedy: Some(remedy.into()) }
    }
}

impl Symbolizer {
    /// Reads a function's code, given its start address in the module's own address space. `kcore` is a copy
    /// of the recorded machine's `/proc/kcore`.
    ///
    /// # Errors
    /// Returns the reason why the code is unavailable.
    pub fn code(
        &self,
        id: ModuleId,
        start: u64,
        size: u64,
        kcore: Option<&Path>,
    ) -> Result<MachineCode, NoCode> {
        if size == 0 {
            return Err(NoCode { why: "the function's size is unknown".into(), remedy: None });
        }
        let size = size.min(MOST_CODE);
        if let Some(archived) = self.sources(id).archived() {
            return of_archive(archived, start, size);
        }
        match &self.module(id).kind {
            SymbolModuleKind::File | SymbolModuleKind::Vdso => self.out_of_file(id, start, size),
            SymbolModuleKind::Anonymous { pid } => self.generated(id, *pid, start, size),
            SymbolModuleKind::Kernel { .. }
            | SymbolModuleKind::KernelModule { .. }
            | SymbolModuleKind::Bpf => self.in_kernel(id, start, size, kcore),
        }
    }

    /// Disassembles code, and adds names to targets from symbol tables.
    ///
    /// # Errors
    /// Fails if the disassembler fails, which [`Symbolizer::failures`] then reports too.
    pub fn disassemble(
        &self,
        id: ModuleId,
        code: &MachineCode,
        syntax: Syntax,
    ) -> Result<Vec<Instruction>, DisassemblyError> {
        let decoded = disassemble::disassemble(code.machine, syntax, &code.bytes, code.start);
        let mut all = decoded.inspect_err(|error| self.report(id, error))?;
        drop_unlinked(code, &mut all);
        self.name_targets(id, &mut all.iter_mut().collect::<Vec<_>>());
        Ok(all)
    }

    /// Adds names to the addresses in these instructions of a module.
    fn name_targets(&self, id: ModuleId, all: &mut [&mut Instruction]) {
        for instruction in all.iter_mut() {
            for target in [&mut instruction.target, &mut instruction.refers].into_iter().flatten() {
                target.name = self.name_at(id, target.address);
            }
        }
        self.name_data(id, all);
    }

    /// Reads and disassembles the instructions at addresses in the modules' own address spaces. The result is
    /// `None` where the bytes are unavailable or are not an instruction, or where the disassembler fails.
    pub fn instructions(&self, addresses: &[(ModuleId, u64)]) -> Vec<Option<Instruction>> {
        let code = |&(id, address): &(ModuleId, u64)| self.code_at(id, address, LONGEST_INSTRUCTION);
        let codes: Vec<Option<MachineCode>> = addresses.iter().map(code).collect();
        let modules = addresses.iter().map(|(id, _)| *id);
        let known: Vec<_> = modules.zip(&codes).filter_map(|(id, code)| Some((id, code.as_ref()?))).collect();
        let mut first = self.first_instructions(&known).into_iter();
        codes.iter().map(|code| code.as_ref().and_then(|_| first.next()?)).collect()
    }

    /// Disassembles the first instruction of each code.
    fn first_instructions(&self, codes: &[(ModuleId, &MachineCode)]) -> Vec<Option<Instruction>> {
        let requests = codes.iter().map(|(_, code)| CodeRequest {
            machine: code.machine,
            syntax: Syntax::default(),
            start: code.start,
            bytes: &code.bytes,
            is_first_only: true,
        });
        let decoded = disassemble::disassemble_each(&requests.collect::<Vec<_>>());
        let mut all = Vec::with_capacity(codes.len());
        for (&(id, code), decoded) in codes.iter().zip(decoded) {
            let mut first = decoded.inspect_err(|error| self.report(id, error)).unwrap_or_default();
            drop_unlinked(code, &mut first);
            all.push(first.pop());
        }
        // Names are found for all instructions of a module at once, because finding slots reads all of its
        // relocations.
        let mut by_module: FxHashMap<ModuleId, Vec<&mut Instruction>> = FxHashMap::default();
        for ((id, _), instruction) in codes.iter().zip(&mut all) {
            by_module.entry(*id).or_default().extend(instruction);
        }
        by_module.iter_mut().for_each(|(id, all)| self.name_targets(*id, all));
        all
    }

    /// Adds an error of the disassembler to [`Symbolizer::failures`].
    fn report(&self, id: ModuleId, error: &DisassemblyError) {
        self.add_failure(match error {
            DisassemblyError::Failed { .. } => format!("{}: {error}", self.module(id).path.display()),
            DisassemblyError::SetUp(_) | DisassemblyError::GaveUp(_) => error.to_string(),
        });
    }

    /// Reads up to `size` bytes of code at an address in the module's own address space.
    pub fn code_at(&self, id: ModuleId, address: u64, size: u64) -> Option<MachineCode> {
        let mut code = self.code(id, address, size, None).ok()?;
        // A jitdump always provides the code of the whole function.
        let skipped = usize::try_from(address.checked_sub(code.start)?).ok()?;
        code.bytes.drain(..skipped.min(code.bytes.len()));
        code.bytes.truncate(size as usize);
        code.start = address;
        (!code.bytes.is_empty()).then_some(code)
    }

    /// Adds the names of variables, and of the slots through which functions are called.
    fn name_data(&self, id: ModuleId, all: &mut [&mut Instruction]) {
        let is_file = matches!(self.module(id).kind, SymbolModuleKind::File);
        let mut slots: Vec<(u64, &mut InstructionTarget)> = Vec::new();
        for instruction in all.iter_mut().filter(|_| is_file) {
            let Some(place) = instruction.refers.as_mut().filter(|place| place.name.is_none()) else {
                continue;
            };
            // Only calls and jumps read slots. Other instructions read variables, whose contents are not
            // targets.
            if instruction.flow == Flow::Next {
                let variable = self.sources(id).variable_at(place.address);
                place.name = variable.map(|it| (it.name.to_owned(), place.address - it.start));
            } else {
                slots.push((place.address, place));
            }
        }
        let found = self.slot_names(id, slots.iter().map(|(address, _)| *address).collect());
        for (address, place) in slots {
            place.name = found.get(&address).cloned();
        }
    }

    /// Returns the function, and the offset into it, whose address is in each of these slots of a file. Reads
    /// all relocations, so callers pass as many slots as they know.
    pub(super) fn slot_names(&self, id: ModuleId, mut slots: Vec<u64>) -> FxHashMap<u64, (String, u64)> {
        let mut found: FxHashMap<u64, (String, u64)> = FxHashMap::default();
        if slots.is_empty() {
            return found;
        }
        slots.sort_unstable();
        slots.dedup();
        if let Some(archived) = self.sources(id).archived() {
            found.extend(slots.iter().filter_map(|slot| {
                let symbol = archived.slot(*slot)?;
                Some((*slot, (symbol.name.to_owned(), slot - symbol.start)))
            }));
        }
        for image in [self.debug(id), self.binary(id)].into_iter().flatten() {
            let Ok(file) = image.elf() else { continue };
            self.find_slots(id, &file, &slots, &mut found);
        }
        found
    }

    /// Finds the functions whose addresses the dynamic linker writes to slots.
    fn find_slots(
        &self,
        id: ModuleId,
        file: &object::File<'_>,
        wanted: &[u64],
        found: &mut FxHashMap<u64, (String, u64)>,
    ) {
        for (slot, target) in slot_targets(file, &|slot| wanted.binary_search(&slot).is_ok()) {
            let name = match target {
                SlotTarget::Symbol(name) => Some((String::from_utf8_lossy(name).into_owned(), 0)),
                SlotTarget::Address(address) => self.name_at(id, address),
            };
            found.extend(name.filter(|(name, _)| !name.is_empty()).map(|name| (slot, name)));
        }
    }

    /// Returns the symbol-table name of the function at an address in the module's own address space, and the
    /// offset into the function.
    pub(crate) fn name_at(&self, id: ModuleId, address: u64) -> Option<(String, u64)> {
        let sources = self.sources(id);
        let symbol = sources.find(sources.query_at(address)?)?;
        Some((symbol.name.to_owned(), address.wrapping_sub(symbol.start)))
    }

    /// Converts an address in the module's own address space to a query.
    pub fn query_at(&self, id: ModuleId, address: u64) -> Option<SymbolQuery> {
        self.sources(id).query_at(address)
    }

    fn out_of_file(&self, id: ModuleId, start: u64, size: u64) -> Result<MachineCode, NoCode> {
        let Some(image) = self.binary(id) else { return Err(self.no_file(id)) };
        let in_file = self.sources(id).query_at(start).and_then(|query| self.sources(id).file_address(query));
        in_file.and_then(|address| from_image(image, address, start, size)).ok_or_else(|| NoCode {
            why: format!("{} has no code there", image.path.display()),
            remedy: None,
        })
    }

    /// Returns the reason why the search did not find the module's file.
    fn no_file(&self, id: ModuleId) -> NoCode {
        match self.quality(id).missing.first() {
            Some(missing) => NoCode { why: missing.to_string(), remedy: self.remedy(id) },
            None => NoCode { why: "the module has no file".into(), remedy: None },
        }
    }

    fn generated(&self, id: ModuleId, pid: u32, start: u64, size: u64) -> Result<MachineCode, NoCode> {
        let sources = self.sources(id);
        // Search the latest dump first, because the symbol table also contains the latest name of an address.
        let dumps = sources.dumps().iter().rev();
        if let Some(code) = dumps.filter_map(|(path, dump)| from_dump(path, dump, start)).next() {
            return Ok(code);
        }
        if let LiveMemory::Process(pid) = sources.memory() {
            let from = PathBuf::from(format!("/proc/{pid}/mem"));
            if let (Ok(bytes), Some(machine)) = (read_at(&from, start, size), own_machine()) {
                return Ok(MachineCode {
                    start,
                    machine,
                    bytes,
                    from,
                    lines: Vec::new(),
                    is_unlinked: false,
                });
            }
        }
        Err(NoCode::new(
            format!("process {pid} has ended or cannot be read, and it left no jitdump with this function"),
            "make the runtime write one while recording: node --perf-prof, java \
             -agentpath:libperf-jvmti.so, DOTNET_PerfEnabled=1",
        ))
    }

    fn in_kernel(
        &self,
        id: ModuleId,
        start: u64,
        size: u64,
        kcore: Option<&Path>,
    ) -> Result<MachineCode, NoCode> {
        let sources = self.sources(id);
        let from_file = || {
            let image = self.binary(id)?;
            let address = sources.file_address(SymbolQuery::from(Avma(start)))?;
            from_image(image, address, start, size)
        };
        if let Some(path) = kcore {
            return kcore::read(path, start, start, size);
        }
        if self.options().vmlinux.is_some()
            && let Some(code) = from_file()
        {
            return Ok(code);
        }
        let said = match sources.memory() {
            LiveMemory::Kernel(moved) => {
                match kcore::read(Path::new("/proc/kcore"), start.wrapping_add(moved), start, size) {
                    Ok(code) => return Ok(code),
                    Err(error) => error.why,
                }
            }
            LiveMemory::Gone | LiveMemory::Process(_) => {
                "the recorded kernel is not the running kernel".to_owned()
            }
        };
        from_file().ok_or_else(|| {
            let remedy = match self.module(id).kind {
                SymbolModuleKind::Bpf => {
                    "use bpftool prog dump jited, or read /proc/kcore as root while the program is loaded"
                        .into()
                }
                _ => Hint::KernelMemory,
            };
            NoCode::new(
                format!("cannot read the kernel's code: {said}; no image of this kernel was found"),
                remedy,
            )
        })
    }
}

/// Removes targets that are meaningless, because the linker has not filled them in.
fn drop_unlinked(code: &MachineCode, all: &mut [Instruction]) {
    for instruction in all.iter_mut().filter(|_| code.is_unlinked) {
        instruction.target = instruction.target.take().filter(|_| instruction.bytes.len() <= 2);
        instruction.refers = None;
    }
}

/// The instruction set of the machine on which pmc runs.
fn own_machine() -> Option<InstructionSet> {
    InstructionSet::of_uname(std::env::consts::ARCH)
}

/// Reads the bytes at an address in a file. `start` is the same address in the module's own address space.
fn from_image(image: &Image, address: u64, start: u64, size: u64) -> Option<MachineCode> {
    let file = image.elf().ok()?;
    let machine = match file.architecture() {
        object::Architecture::X86_64 | object::Architecture::X86_64_X32 => InstructionSet::X86_64,
        object::Architecture::I386 => InstructionSet::X86,
        object::Architecture::Aarch64 => InstructionSet::Aarch64,
        _ => return None,
    };
    let is_unlinked = file.kind() == object::ObjectKind::Relocatable;
    let bytes = if is_unlinked {
        laid_out(&file, address, size)?
    } else {
        let inside = |segment: &object::read::Segment<'_, '_>| {
            address.wrapping_sub(segment.address()) < segment.file_range().1
        };
        let segment = file.segments().find(inside)?;
        let at = usize::try_from(address - segment.address()).ok()?;
        segment.data().ok()?.get(at..)?
    };
    let bytes = bytes.get(..(size as usize).min(bytes.len()))?.to_vec();
    (!bytes.is_empty()).then(|| MachineCode {
        start,
        machine,
        bytes,
        from: image.path.clone(),
        lines: Vec::new(),
        is_unlinked,
    })
}

fn of_archive(module: &ArchivedModule, start: u64, size: u64) -> Result<MachineCode, NoCode> {
    let code = module.code(start, size).map_err(|(why, remedy)| NoCode { why, remedy })?;
    let machine = InstructionSet::of_elf(code.machine).ok_or_else(|| NoCode {
        why: format!("the archive's code is for an unknown machine ({})", code.machine),
        remedy: None,
    })?;
    Ok(MachineCode {
        start: code.start,
        machine,
        bytes: code.bytes,
        from: code.from,
        lines: code.lines,
        is_unlinked: code.is_unlinked,
    })
}

fn from_dump(path: &Path, dump: &Jitdump, start: u64) -> Option<MachineCode> {
    let code = dump.latest(start)?;
    let held = dump.bytes(code);
    let bytes = held[..held.len().min(MOST_CODE as usize)].to_vec();
    let machine = InstructionSet::of_elf(dump.machine()).or_else(own_machine)?;
    let lines = dump.lines(code).map(|(address, file, line)| (address, file.to_owned(), line)).collect();
    (!bytes.is_empty()).then(|| MachineCode {
        start: code.start,
        machine,
        bytes,
        from: path.to_owned(),
        lines,
        is_unlinked: false,
    })
}

fn read_at(path: &Path, start: u64, size: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; size as usize];
    File::open(path)?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}
