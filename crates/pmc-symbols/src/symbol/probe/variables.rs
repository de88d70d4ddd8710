//! Finds the variables at an address in a program, and what a probe must read to get their values.

use gimli::constants as dw;
use rustc_hash::{FxHashMap, FxHashSet};

use super::dies::{Die, Dies};
use super::error::ProbeError;
use super::expression::{AccessStep, VariableExpression};
use super::locations::{FrameTables, LocationError, LocationReader, ValuePlace};
use super::scopes::{ScopeKind, UnitScopes};
use super::types::{ValueType, type_name};

/// What a probe reads for an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedValue {
    /// The argument's default name.
    pub name: String,
    /// The location in the kernel's notation: `-24(%bp)`.
    pub place: String,
    /// The kernel's type: `s32`.
    pub kind: Option<String>,
}

/// A variable that is available at an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AvailableVariable {
    /// The type in C.
    pub kind: String,
    /// The variable's name.
    pub name: String,
}

/// An address in a function, and the scope whose variables are visible there.
pub(super) struct VariableScope<'v, 'a> {
    pub(super) dies: &'v Dies<'a>,
    pub(super) frames: &'v FrameTables<'a>,
    pub(super) unit: &'v UnitScopes<'a>,
    /// Index of the function, which may be inlined.
    pub(super) scope: usize,
    pub(super) address: u64,
    /// Difference between addresses in the file and the offsets that the kernel uses for static memory.
    pub(super) static_base: u64,
}

impl<'a> VariableScope<'_, 'a> {
    /// Returns the variables and parameters of the scope, and of its blocks that contain the address,
    /// innermost first.
    fn local_variables(&self) -> Vec<usize> {
        // The depth of each block that contains the address.
        let mut blocks = FxHashMap::from_iter([(self.scope, 0)]);
        let mut found: Vec<(usize, usize)> = Vec::new();
        for number in self.unit.inside(self.scope) {
            let node = &self.unit.nodes[number];
            let Some(depth) = node.parent.and_then(|parent| blocks.get(&parent).copied()) else { continue };
            match node.kind {
                ScopeKind::Variable | ScopeKind::Parameter => found.push((depth, number)),
                ScopeKind::Block if self.unit.holds(number, self.address) => {
                    blocks.insert(number, blocks.len());
                }
                _ => {}
            }
        }
        found.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        found.into_iter().map(|(_, variable)| variable).collect()
    }

    /// Returns the unit's variables outside of functions.
    fn global_variables(&self) -> impl Iterator<Item = usize> + '_ {
        let variables = self.unit.of_kind(ScopeKind::Variable);
        variables.filter(|&variable| self.unit.nodes[variable].parent.is_none())
    }

    fn place(&self, variable: &Die<'a>) -> Result<ValuePlace, LocationError> {
        let function = self.unit.function_at(self.address).unwrap_or(self.scope);
        let reader =
            LocationReader { frames: self.frames, function: self.unit.die(function), address: self.address };
        let place = reader.place(variable);
        // The definition of an `extern` variable has a separate entry.
        match variable.own(dw::DW_AT_declaration) {
            Some(_) if place.is_err() => {
                let name = self.dies.name(variable);
                let defined = self
                    .global_variables()
                    .map(|node| self.unit.die(node))
                    .find(|die| die.own(dw::DW_AT_location).is_some() && self.dies.name(die) == name);
                defined.map_or(place, |die| reader.place(&die))
            }
            _ => place,
        }
    }

    fn names(&self, nodes: impl IntoIterator<Item = usize>) -> Vec<String> {
        nodes.into_iter().filter_map(|node| self.dies.name(&self.unit.die(node))).collect()
    }

    fn find(&self, name: &str) -> Result<Die<'a>, ProbeError> {
        let locals = self.local_variables();
        let has_name = |node: &usize| self.dies.name(&self.unit.die(*node)).as_deref() == Some(name);
        let found: Vec<usize> = locals.iter().copied().filter(has_name).collect();
        // If there are several entries for a variable, use the first one with a location.
        let with_place = found.iter().copied().find(|&node| self.place(&self.unit.die(node)).is_ok());
        let found =
            with_place.or_else(|| found.first().copied()).or_else(|| self.global_variables().find(has_name));
        found.map(|node| self.unit.die(node)).ok_or_else(|| {
            let mut near = self.names(locals);
            near.extend(self.names(self.global_variables()));
            ProbeError::NoVariable { name: name.to_owned(), near }
        })
    }

    /// Returns what a probe must read to get the value of an expression. `cast` is the type that the user
    /// chose.
    pub(super) fn fetch(&self, text: &str, cast: Option<&str>) -> Result<FetchedValue, ProbeError> {
        let expression = VariableExpression::parse(text)
            .map_err(|rest| ProbeError::Expression { expression: text.to_owned(), rest })?;
        let variable = self.find(&expression.variable)?;
        let unreadable = |reason| ProbeError::Location { name: expression.variable.clone(), reason };
        let mut part = AccessedValue {
            place: self.place(&variable).map_err(unreadable)?,
            kind: ValueType::from_die(self.dies, &variable),
            bits: None,
        };
        for step in &expression.steps {
            part = self
                .access(part, step)
                .map_err(|why| ProbeError::Access { expression: text.to_owned(), why })?;
        }
        let kind = self
            .kernel_type(&mut part, cast)
            .map_err(|why| ProbeError::Access { expression: text.to_owned(), why })?;
        let place = part.place.notation(self.frames.architecture(), self.static_base).map_err(unreadable)?;
        let name = match (expression.steps.is_empty(), cast) {
            (true, Some(cast)) => format!("{}_{cast}", expression.variable),
            _ => expression.last_name().to_owned(),
        };
        Ok(FetchedValue { name, place, kind })
    }

    fn access(&self, part: AccessedValue<'a>, step: &AccessStep) -> Result<AccessedValue<'a>, String> {
        let AccessedValue { place, kind, .. } = part;
        match step {
            AccessStep::Dereference | AccessStep::Index(_) => {
                let index = if let AccessStep::Index(index) = step { *index } else { 0 };
                let element = kind.element(self.dies);
                let address = match place {
                    place if kind.is_pointer() => place.pointed(),
                    ValuePlace::Memory(address) if kind.is_array() => address,
                    _ if kind.is_array() => return Err("the array is in registers".to_owned()),
                    _ => return Err("it is neither a pointer nor an array".to_owned()),
                };
                let size = match (index, element.size(self.dies)) {
                    (0, _) => 0,
                    (_, Some(size)) => size.cast_signed(),
                    (_, None) => return Err("the element size is unknown".to_owned()),
                };
                let address = address.plus(index.wrapping_mul(size));
                Ok(AccessedValue { place: ValuePlace::Memory(address), kind: element, bits: None })
            }
            AccessStep::Member { name, through_pointer } => {
                let (address, container) = match (place, through_pointer) {
                    (place, true) if kind.is_pointer() => (place.pointed(), kind.element(self.dies)),
                    (_, true) => return Err(format!("the value is not a pointer: use .{name}")),
                    (_, false) if kind.is_pointer() => {
                        return Err(format!("it is a pointer: write ->{name}"));
                    }
                    (ValuePlace::Memory(address), false) => (address, kind),
                    (ValuePlace::Number(_), false) if kind.is_struct() => {
                        return Err("the structure is in registers, not in memory".to_owned());
                    }
                    (_, false) => return Err(format!("it has no member named {name}")),
                };
                if !container.is_struct() {
                    return Err(format!("it has no member named {name}"));
                }
                let Some(member) = container.member(self.dies, name) else {
                    return Err(match container.is_declaration() {
                        true => "this source file does not define the structure".to_owned(),
                        false => {
                            let names = container.member_names(self.dies);
                            format!("it has no member {name}; its members are {}", names.join(", "))
                        }
                    });
                };
                Ok(AccessedValue {
                    place: ValuePlace::Memory(address.plus(member.offset.cast_signed())),
                    kind: ValueType::from_die(self.dies, &member.die),
                    bits: member.bits,
                })
            }
        }
    }

    /// Returns the kernel's name for the type. If the type is a string, follows a pointer to it.
    fn kernel_type(
        &self,
        part: &mut AccessedValue<'a>,
        cast: Option<&str>,
    ) -> Result<Option<String>, String> {
        let bits = || part.kind.size(self.dies).filter(|size| *size > 0).map(|size| size.saturating_mul(8));
        match cast {
            Some("string" | "ustring") => {
                if !part.kind.is_pointer() && !part.kind.is_array()
                    || !part.kind.element(self.dies).is_character(self.dies)
                {
                    return Err("only char pointers and char arrays can be read as strings".to_owned());
                }
                if part.kind.is_pointer() {
                    part.place = ValuePlace::Memory(part.place.clone().pointed());
                }
                return Ok(cast.map(str::to_owned));
            }
            Some(sign @ ("u" | "s" | "x")) => {
                return Ok(Some(format!("{sign}{}", bits().unwrap_or(64).min(64))));
            }
            Some(cast) => return Ok(Some(cast.to_owned())),
            None => {}
        }
        if let Some((size, start)) = part.bits {
            let container = bits().filter(|container| matches!(container, 8 | 16 | 32 | 64));
            let container = container.filter(|container| size.saturating_add(start) <= *container);
            let container = container.ok_or("probes cannot read this bit field")?;
            return Ok(Some(format!("b{size}@{start}/{container}")));
        }
        if part.kind.is_struct() {
            let names = part.kind.member_names(self.dies);
            return Err(format!("it is a structure: name one of its members {}", names.join(", ")));
        }
        if part.kind.is_array() {
            return Err("it is an array: select an element, such as [0], or add :string".to_owned());
        }
        if part.kind.is_float(self.dies) {
            let bits = bits().filter(|bits| matches!(bits, 16 | 32 | 64)).unwrap_or(64);
            return Err(format!(
                "it is a floating-point number, but the kernel prints only whole numbers and strings: add \
                 :x{bits} to see its bits"
            ));
        }
        let sign = if part.kind.is_signed(self.dies) { 's' } else { 'x' };
        match bits() {
            None => Ok(None),
            Some(bits @ (8 | 16 | 32 | 64)) => Ok(Some(format!("{sign}{bits}"))),
            Some(bits) => Err(format!(
                "it has {bits} bits, but a probe reads 8, 16, 32 or 64: add a type, such as :x64"
            )),
        }
    }

    /// Returns the variables that a probe can read here, sorted. If `globals` is set, includes variables
    /// outside of functions.
    pub(super) fn available(&self, globals: bool) -> Vec<AvailableVariable> {
        let mut nodes = self.local_variables();
        if globals {
            nodes.extend(self.global_variables());
        }
        let mut found: Vec<AvailableVariable> = nodes
            .into_iter()
            .map(|node| self.unit.die(node))
            .filter(|die| {
                let place = self.place(die);
                place.is_ok_and(|place| place.notation(self.frames.architecture(), 0).is_ok())
            })
            .filter_map(|die| {
                Some(AvailableVariable { kind: type_name(self.dies, &die), name: self.dies.name(&die)? })
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns the names of the parameters and, if `all` is set, of the other local variables, in source
    /// order.
    pub(super) fn local_names(&self, all: bool) -> Vec<String> {
        let mut nodes = self.local_variables();
        nodes.retain(|&node| {
            let is_parameter = self.unit.nodes[node].kind == ScopeKind::Parameter;
            (all || is_parameter) && self.place(&self.unit.die(node)).is_ok()
        });
        nodes.sort_unstable();
        let mut names = self.names(nodes);
        let mut seen = FxHashSet::default();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
}

/// A variable, or the part of it that an expression's accesses have reached so far.
struct AccessedValue<'a> {
    place: ValuePlace,
    kind: ValueType<'a>,
    bits: Option<(u64, u64)>,
}
