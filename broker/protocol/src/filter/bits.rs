//! A row of bits as bytes (`BitsArray`).

/// Bit *b* is bit *b* % 8, from the lowest, of byte *b* / 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitsArray {
    bytes: Vec<u8>,
}

impl BitsArray {
    /// Bits that are all unset; their number is rounded up to whole bytes.
    #[must_use]
    pub fn unset(bits: usize) -> BitsArray {
        BitsArray { bytes: vec![0; bits.div_ceil(8)] }
    }

    /// The bits of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> BitsArray {
        BitsArray { bytes }
    }

    /// Sets a bit.
    ///
    /// # Panics
    /// If there is no such bit.
    pub fn set(&mut self, bit: usize) {
        self.bytes[bit / 8] |= 1 << (bit % 8);
    }

    /// Whether a bit is set; one that does not exist is not.
    #[must_use]
    pub fn is_set(&self, bit: usize) -> bool {
        self.bytes.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    }

    /// How many bits there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() * 8
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
