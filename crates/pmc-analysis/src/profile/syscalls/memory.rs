//! The memory to which a system call's arguments point, as far as it has been read.

/// Contents of the memory to which an argument points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapturedMemory {
    /// A string without its NUL, a buffer, or a structure. The flag is set if there are more bytes.
    Bytes(Vec<u8>, bool),
    /// A list of strings. The flag is set if there are more strings.
    Texts(Vec<Vec<u8>>, bool),
    /// A string that the kernel recorded with the event. It is therefore exactly the string that the call
    /// used.
    Recorded(Vec<u8>),
}

/// The memory of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallMemory {
    /// The memory of each argument.
    pieces: Option<Box<[Option<CapturedMemory>; 6]>>,
}

impl CallMemory {
    /// Returns the memory to which this argument points, if it was read.
    pub fn get(&self, argument: usize) -> Option<&CapturedMemory> {
        self.pieces.as_ref()?.get(argument)?.as_ref()
    }

    /// Returns the bytes to which this argument points, if they were read.
    pub fn bytes(&self, argument: usize) -> Option<&[u8]> {
        match self.get(argument)? {
            CapturedMemory::Bytes(bytes, _) | CapturedMemory::Recorded(bytes) => Some(bytes),
            CapturedMemory::Texts(..) => None,
        }
    }

    /// Whether the kernel recorded the memory to which this argument points.
    pub fn is_recorded(&self, argument: usize) -> bool {
        matches!(self.get(argument), Some(CapturedMemory::Recorded(_)))
    }

    /// Sets the memory to which this argument points.
    pub fn set(&mut self, argument: usize, memory: CapturedMemory) {
        if let Some(piece) = self.pieces.get_or_insert_default().get_mut(argument) {
            *piece = Some(memory);
        }
    }

    /// Adds the memory read at the end of the call.
    pub fn merge(&mut self, later: Self) {
        let Some(pieces) = later.pieces else { return };
        for (argument, piece) in pieces.into_iter().enumerate() {
            if let Some(piece) = piece {
                self.set(argument, piece);
            }
        }
    }
}
