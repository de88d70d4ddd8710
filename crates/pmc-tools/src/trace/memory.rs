//! The memory to which a system call's arguments point, as far as it has been read.

/// Contents of the memory to which an argument points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CapturedMemory {
    /// A string without its NUL, a buffer, or a structure. The flag is set if there are more bytes.
    Bytes(Vec<u8>, bool),
    /// A structure or an array of structures that point to more data.
    Structure(CapturedStructure),
    /// The number of strings in a list.
    Count(usize),
    /// A list of strings. The flag is set if there are more strings.
    Texts(Vec<Vec<u8>>, bool),
    /// A string that the kernel recorded with the event. It is therefore exactly the string that the call
    /// used.
    Recorded(Vec<u8>),
}

/// A structure, or an array of structures, with the data to which its fields point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CapturedStructure {
    /// The bytes of the structure or array.
    pub(super) bytes: Vec<u8>,
    /// Whether there are more bytes.
    pub(super) is_cut: bool,
    /// The data to which fields point, each with the offset of the field in `bytes`.
    pub(super) pointed: Vec<(usize, CapturedStructure)>,
}

/// The memory of each argument, by its register.
type ArgumentMemory = Option<Box<[Option<CapturedMemory>; 6]>>;

/// The memory of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallMemory {
    begin: ArgumentMemory,
    end: ArgumentMemory,
}

impl CallMemory {
    /// Returns the memory to which this argument points, if it was read: at the end of the call if possible.
    pub(super) fn get(&self, argument: usize) -> Option<&CapturedMemory> {
        self.at_end(argument).or_else(|| self.at_begin(argument))
    }

    /// Returns the memory read at the begin of the call.
    pub(super) fn at_begin(&self, argument: usize) -> Option<&CapturedMemory> {
        self.begin.as_ref()?.get(argument)?.as_ref()
    }

    /// Returns the memory read at the end of the call.
    pub(super) fn at_end(&self, argument: usize) -> Option<&CapturedMemory> {
        self.end.as_ref()?.get(argument)?.as_ref()
    }

    /// Returns the bytes to which this argument points, if they were read.
    pub(super) fn bytes(&self, argument: usize) -> Option<&[u8]> {
        match self.get(argument)? {
            CapturedMemory::Bytes(bytes, _) | CapturedMemory::Recorded(bytes) => Some(bytes),
            CapturedMemory::Structure(structure) => Some(&structure.bytes),
            CapturedMemory::Texts(..) | CapturedMemory::Count(_) => None,
        }
    }

    /// Whether the kernel recorded the memory to which this argument points.
    pub(super) fn is_recorded(&self, argument: usize) -> bool {
        matches!(self.get(argument), Some(CapturedMemory::Recorded(_)))
    }

    /// Sets the memory to which this argument points.
    pub(super) fn set(&mut self, argument: usize, memory: CapturedMemory) {
        if let Some(piece) = self.begin.get_or_insert_default().get_mut(argument) {
            *piece = Some(memory);
        }
    }

    /// Adds the memory read at the end of the call.
    pub(super) fn finish(&mut self, later: Self) {
        self.end = later.begin;
    }

    /// Adds memory read at the begin of the call.
    pub(super) fn merge(&mut self, later: Self) {
        let Some(pieces) = later.begin else { return };
        for (argument, piece) in pieces.into_iter().enumerate() {
            if let Some(piece) = piece {
                self.set(argument, piece);
            }
        }
    }
}
