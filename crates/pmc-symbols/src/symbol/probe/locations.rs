//! Converts the locations of variables to a form that the kernel's probes can read.
//!
//! Takes DWARF expressions and an address in the program; returns a register, or memory that a probe reaches
//! from a register or fixed address by adding constants and loading pointers. Probes do not support any other
//! calculations.
//!
//! ```text
//!   DW_OP_fbreg -44, frame base CFA = rbp + 16  ->  memory at rbp - 28    ->  -28(%bp)
//!   DW_OP_breg7 8; DW_OP_deref                  ->  memory at *(rsp + 8)  ->  +0(+8(%sp))
//! ```

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use gimli::{
    AttributeValue, BaseAddresses, CfaRule, DebugFrame, EhFrame, Expression, Operation, Reader as _, Section,
    UnwindContext, UnwindOffset, UnwindSection, constants as dw,
};
use object::Architecture;
use object::read::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use super::dies::Die;
use super::registers;
use crate::symbol::dwarf::sections::{DwarfSlice, endian};
use crate::symbol::files::elf;
use crate::unwind::short_cie;

/// Maximum number of operations in an expression.
const MOST_OPERATIONS: usize = 256;

/// The start of a calculation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchBase {
    /// The register with this DWARF number.
    Register(u16),
    /// An address in the file.
    Static(u64),
    Constant(i64),
}

/// A number that a probe can calculate. For each of `loads` in turn, the probe adds that offset and reads the
/// memory there; finally, it adds `plus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FetchNumber {
    base: FetchBase,
    loads: Vec<i64>,
    plus: i64,
}

/// Where to find a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValuePlace {
    /// In memory at this address.
    Memory(FetchNumber),
    /// The value is this number.
    Number(FetchNumber),
}

/// Why a probe cannot read a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The compiler removed the variable, or has not computed it yet.
    #[error("no location at this address (optimized out, or not live here)")]
    Absent,
    /// The variable is not stored and must be calculated.
    #[error("the program does not store the value; a debugger could compute it, but a probe cannot")]
    Computed,
    /// The variable's parts are in several places, such as different registers.
    #[error("the compiler split it across several registers")]
    Split,
    /// Only the caller still knows the value.
    #[error("the function overwrote the value, and only its caller has the original")]
    EntryValue,
    /// Each thread has its own copy.
    #[error("the variable is thread-local, and probes cannot read thread-local storage")]
    ThreadLocal,
    /// The register has no name in the kernel's notation.
    #[error("the value is in a register that probes cannot read (a floating-point or vector register)")]
    Register,
    /// The debug information is incomplete.
    #[error("its location depends on the stack frame, which the debug information does not describe here")]
    NoFrame,
    /// The debug information is invalid.
    #[error("its location is invalid")]
    Invalid,
}

impl FetchNumber {
    fn new(base: FetchBase) -> Self {
        Self { base, loads: Vec::new(), plus: 0 }
    }

    /// Adds an offset to the number.
    pub(super) fn plus(mut self, offset: i64) -> Self {
        self.plus = self.plus.wrapping_add(offset);
        self
    }

    /// Loads the number from memory at this address.
    fn load(mut self) -> Self {
        self.loads.push(std::mem::take(&mut self.plus));
        self
    }
}

impl ValuePlace {
    /// Returns the address to which the pointer at this place points.
    pub(super) fn pointed(self) -> FetchNumber {
        match self {
            Self::Memory(address) => address.load(),
            Self::Number(pointer) => pointer,
        }
    }

    /// Returns the place in the kernel's notation. `base` is the difference between an address in the file
    /// and the number after `@+`, which is relative to the start of the mapping that contains the probe.
    pub(super) fn notation(&self, architecture: Architecture, base: u64) -> Result<String, LocationError> {
        let number = match self {
            Self::Memory(address) => address.clone().load(),
            Self::Number(number) => number.clone(),
        };
        if let FetchNumber { base: FetchBase::Constant(value), ref loads, plus } = number
            && loads.is_empty()
        {
            return Ok(format!("\\{}", value.wrapping_add(plus)));
        }
        if number.plus != 0 {
            return Err(LocationError::Computed);
        }
        let mut loads = number.loads.iter();
        let mut text = match number.base {
            FetchBase::Register(register) => {
                let name = registers::name(architecture, register).ok_or(LocationError::Register)?;
                format!("%{name}")
            }
            FetchBase::Static(address) => {
                let offset = loads.next().ok_or(LocationError::Computed)?;
                let from_mapping = address.wrapping_add_signed(*offset).wrapping_sub(base);
                format!("@+{from_mapping:#x}")
            }
            FetchBase::Constant(_) => return Err(LocationError::Computed),
        };
        for offset in loads {
            text = format!("{offset:+}({text})");
        }
        Ok(text)
    }
}

/// Unwind tables, for locating the stack frame at an address.
pub(super) struct FrameTables<'a> {
    file: &'a object::File<'a>,
    /// The debug file, which may have `.debug_frame`.
    debug: Option<&'a object::File<'a>>,
    sections: OnceCell<Vec<FrameSection<'a>>>,
    /// The results of [`Self::frame_address`]. Each search reads a section up to the function's entry.
    known: RefCell<FxHashMap<u64, Option<FetchNumber>>>,
}

/// A section with unwind tables.
struct FrameSection<'a> {
    is_eh_frame: bool,
    bases: BaseAddresses,
    bytes: Cow<'a, [u8]>,
}

impl<'a> FrameTables<'a> {
    pub(super) fn new(file: &'a object::File<'a>, debug: Option<&'a object::File<'a>>) -> Self {
        Self { file, debug, sections: OnceCell::new(), known: RefCell::default() }
    }

    pub(super) fn architecture(&self) -> Architecture {
        self.file.architecture()
    }

    /// The sections in the order in which to search them.
    fn sections(&self) -> &[FrameSection<'a>] {
        self.sections.get_or_init(|| {
            let start = |name: &str| self.file.section_by_name(name).map_or(0, |section| section.address());
            let bases = BaseAddresses::default().set_eh_frame(start(".eh_frame")).set_text(start(".text"));
            let read = |file: &object::File<'a>, name: &str, bases: BaseAddresses| {
                let bytes = elf::section(file, name)?;
                Some(FrameSection { is_eh_frame: name == ".eh_frame", bases, bytes })
            };
            let eh_frame = read(self.file, ".eh_frame", bases);
            let files = [Some(self.file), self.debug].into_iter().flatten();
            let others = files.filter_map(|file| read(file, ".debug_frame", BaseAddresses::default()));
            eh_frame.into_iter().chain(others).collect()
        })
    }

    /// The canonical frame address: the stack pointer before the call.
    fn frame_address(&self, address: u64) -> Option<FetchNumber> {
        let find = || {
            let endian = endian(self.file);
            let word = if self.file.is_64() { 8 } else { 4 };
            let cfa = |section: &FrameSection<'a>| match section.is_eh_frame {
                true => {
                    let mut frames = EhFrame::from(DwarfSlice::new(&section.bytes, endian));
                    frames.set_address_size(word);
                    cfa(&frames, &section.bases, address)
                }
                false => {
                    let mut frames = DebugFrame::from(DwarfSlice::new(&section.bytes, endian));
                    frames.set_address_size(word);
                    cfa(&frames, &section.bases, address)
                }
            };
            let (register, offset) = self.sections().iter().find_map(cfa)?;
            Some(FetchNumber::new(FetchBase::Register(register)).plus(offset))
        };
        self.known.borrow_mut().entry(address).or_insert_with(find).clone()
    }
}

fn cfa<'b, S>(frames: &S, bases: &BaseAddresses, address: u64) -> Option<(u16, i64)>
where
    S: UnwindSection<DwarfSlice<'b>> + Section<DwarfSlice<'b>>,
    S::Offset: UnwindOffset<usize>,
{
    let mut context = UnwindContext::new();
    let row = frames.unwind_info_for_address(bases, &mut context, address, short_cie).ok()?;
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some((register.0, *offset)),
        CfaRule::Expression(_) => None,
    }
}

/// Evaluates the locations of variables at one address of a function.
pub(super) struct LocationReader<'f, 'a> {
    pub(super) frames: &'f FrameTables<'a>,
    /// The function that has the stack frame; never an inlined function.
    pub(super) function: Die<'a>,
    pub(super) address: u64,
}

impl<'a> LocationReader<'_, 'a> {
    /// Returns where to find a variable.
    pub(super) fn place(&self, variable: &Die<'a>) -> Result<ValuePlace, LocationError> {
        if let Some(location) = variable.own(dw::DW_AT_location) {
            let expression = self.expression(variable, location).ok_or(LocationError::Absent)?;
            return self.evaluate(variable, expression, true);
        }
        let value = variable.own(dw::DW_AT_const_value).ok_or(LocationError::Absent)?;
        let value = match value {
            AttributeValue::Block(bytes) => bytes_number(bytes)?,
            value => match value.sdata_value() {
                Some(value) => value,
                None => value.udata_value().ok_or(LocationError::Invalid)?.cast_signed(),
            },
        };
        Ok(ValuePlace::Number(FetchNumber::new(FetchBase::Constant(value))))
    }

    /// Returns the expression that applies at the address.
    fn expression(
        &self,
        die: &Die<'a>,
        value: AttributeValue<DwarfSlice<'a>>,
    ) -> Option<Expression<DwarfSlice<'a>>> {
        match value {
            AttributeValue::Exprloc(expression) => Some(expression),
            AttributeValue::Block(bytes) => Some(Expression(bytes)),
            value => {
                let mut list = die.home.dwarf.attr_locations(&die.home.unit, value).ok()??;
                // A list may consist only of base addresses.
                let next = || match die.home.work.steps.take(1) {
                    true => list.next_raw().ok().flatten().map(|item| list.convert_raw(item).ok().flatten()),
                    false => None,
                };
                std::iter::from_fn(next)
                    .flatten()
                    .find(|part| part.range.begin <= self.address && self.address < part.range.end)
                    .map(|part| part.data)
            }
        }
    }

    fn frame_base(&self) -> Result<FetchNumber, LocationError> {
        let value = self.function.own(dw::DW_AT_frame_base).ok_or(LocationError::NoFrame)?;
        let expression = self.expression(&self.function, value).ok_or(LocationError::NoFrame)?;
        match self.evaluate(&self.function, expression, false)? {
            ValuePlace::Memory(number) | ValuePlace::Number(number) => Ok(number),
        }
    }

    fn evaluate(
        &self,
        die: &Die<'a>,
        expression: Expression<DwarfSlice<'a>>,
        has_frame: bool,
    ) -> Result<ValuePlace, LocationError> {
        let unit = &die.home.unit;
        let mut operations = expression.operations(unit.encoding());
        let mut stack: Vec<FetchNumber> = Vec::new();
        let mut is_value = false;
        for number in 0.. {
            let next = operations.next().map_err(|_| LocationError::Invalid)?;
            let Some(operation) = next else { break };
            if number > MOST_OPERATIONS {
                return Err(LocationError::Invalid);
            }
            match operation {
                Operation::Register { register } => {
                    stack.push(FetchNumber::new(FetchBase::Register(register.0)));
                    is_value = true;
                }
                Operation::StackValue => is_value = true,
                Operation::ImplicitValue { data } => {
                    stack.push(FetchNumber::new(FetchBase::Constant(bytes_number(data)?)));
                    is_value = true;
                }
                Operation::FrameOffset { offset } if has_frame => stack.push(self.frame_base()?.plus(offset)),
                Operation::CallFrameCFA => {
                    stack.push(self.frames.frame_address(self.address).ok_or(LocationError::NoFrame)?);
                }
                Operation::Piece { .. } => return Err(LocationError::Split),
                Operation::EntryValue { .. } => return Err(LocationError::EntryValue),
                Operation::TLS => return Err(LocationError::ThreadLocal),
                operation => calculate(die, operation, &mut stack)?,
            }
        }
        // An empty expression means that the variable was optimized out.
        let number = stack.pop().ok_or(LocationError::Absent)?;
        Ok(if is_value { ValuePlace::Number(number) } else { ValuePlace::Memory(number) })
    }
}

/// Executes an operation that only affects the stack.
fn calculate<'a>(
    die: &Die<'a>,
    operation: Operation<DwarfSlice<'a>>,
    stack: &mut Vec<FetchNumber>,
) -> Result<(), LocationError> {
    let (dwarf, unit) = (die.home.dwarf, &die.home.unit);
    let constant = |value| FetchNumber::new(FetchBase::Constant(value));
    let mut pop = || stack.pop().ok_or(LocationError::Invalid);
    let result = match operation {
        Operation::Nop => return Ok(()),
        Operation::RegisterOffset { register, offset, .. } => {
            FetchNumber::new(FetchBase::Register(register.0)).plus(offset)
        }
        Operation::Address { address } => FetchNumber::new(FetchBase::Static(address)),
        Operation::AddressIndex { index } => {
            let address = dwarf.address(unit, index).map_err(|_| LocationError::Invalid)?;
            FetchNumber::new(FetchBase::Static(address))
        }
        Operation::UnsignedConstant { value } => constant(value.cast_signed()),
        Operation::SignedConstant { value } => constant(value),
        Operation::PlusConstant { value } => pop()?.plus(value.cast_signed()),
        Operation::Deref { space: false, size, .. } if size == unit.encoding().address_size => pop()?.load(),
        Operation::Plus | Operation::Minus => {
            let (right, left) = (pop()?, pop()?);
            let sign = if operation == Operation::Plus { 1 } else { -1 };
            match (&left, &right) {
                (_, FetchNumber { base: FetchBase::Constant(value), loads, plus }) if loads.is_empty() => {
                    let offset = value.wrapping_add(*plus).wrapping_mul(sign);
                    left.plus(offset)
                }
                (FetchNumber { base: FetchBase::Constant(value), loads, plus }, _)
                    if loads.is_empty() && sign == 1 =>
                {
                    let offset = value.wrapping_add(*plus);
                    right.plus(offset)
                }
                _ => return Err(LocationError::Computed),
            }
        }
        _ => return Err(LocationError::Computed),
    };
    stack.push(result);
    Ok(())
}

/// Converts these bytes to a number.
fn bytes_number(mut bytes: DwarfSlice<'_>) -> Result<i64, LocationError> {
    let read = match bytes.len() {
        1 => bytes.read_i8().map(i64::from),
        2 => bytes.read_i16().map(i64::from),
        4 => bytes.read_i32().map(i64::from),
        8 => bytes.read_i64(),
        _ => return Err(LocationError::Computed),
    };
    read.map_err(|_| LocationError::Invalid)
}
