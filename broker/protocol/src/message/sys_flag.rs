//! The system flag of a message.

use std::net::IpAddr;

use crate::error::CompressionError;

/// Bits that say how a record is laid out and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SysFlag(pub i32);

/// What a record is to the transaction it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionType {
    /// No transaction.
    None,
    /// Half message.
    Prepared,
    /// Committed message.
    Commit,
    /// Rolled back message.
    Rollback,
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// Deflate in a zlib wrapper.
    Zlib,
    /// LZ4 frame.
    Lz4,
    /// Zstandard frame.
    Zstd,
}

impl SysFlag {
    /// The body is compressed.
    pub const COMPRESSED: i32 = 0x1;
    /// The topic has multiple tags.
    pub const MULTI_TAGS: i32 = 0x2;
    /// Transaction bits: none.
    pub const TRANSACTION_NONE: i32 = 0;
    /// Transaction bits: half message.
    pub const TRANSACTION_PREPARED: i32 = 0x4;
    /// Transaction bits: committed.
    pub const TRANSACTION_COMMIT: i32 = 0x8;
    /// Transaction bits: rolled back. Also the mask of all transaction bits.
    pub const TRANSACTION_ROLLBACK: i32 = 0xC;
    /// The born host is an IPv6 address.
    pub const BORN_HOST_V6: i32 = 0x10;
    /// The store host is an IPv6 address.
    pub const STORE_HOST_V6: i32 = 0x20;
    /// An inner batch that the client unwraps.
    pub const NEED_UNWRAP: i32 = 0x40;
    /// An inner batch.
    pub const INNER_BATCH: i32 = 0x80;
    /// Mask of the compression type.
    pub const COMPRESSION_MASK: i32 = 0x700;
    /// Compression type LZ4.
    pub const COMPRESSION_LZ4: i32 = 0x100;
    /// Compression type ZSTD.
    pub const COMPRESSION_ZSTD: i32 = 0x200;
    /// Compression type ZLIB; 0 means the same.
    pub const COMPRESSION_ZLIB: i32 = 0x300;

    /// Whether all these bits are set.
    #[must_use]
    pub const fn has(self, bits: i32) -> bool {
        self.0 & bits == bits
    }

    /// The same flag with these bits.
    #[must_use]
    pub const fn with(self, bits: i32) -> Self {
        Self(self.0 | bits)
    }

    /// The same flag without these bits.
    #[must_use]
    pub const fn without(self, bits: i32) -> Self {
        Self(self.0 & !bits)
    }

    /// Whether the body is compressed.
    #[must_use]
    pub const fn is_compressed(self) -> bool {
        self.has(Self::COMPRESSED)
    }

    /// How the body is compressed, if it is.
    ///
    /// # Errors
    /// The type bits name no algorithm.
    pub const fn compression(self) -> Result<CompressionType, CompressionError> {
        match (self.0 & Self::COMPRESSION_MASK) >> 8 {
            0 | 3 => Ok(CompressionType::Zlib),
            1 => Ok(CompressionType::Lz4),
            2 => Ok(CompressionType::Zstd),
            value => Err(CompressionError::UnknownType { value }),
        }
    }

    /// What the record is to its transaction.
    #[must_use]
    pub const fn transaction(self) -> TransactionType {
        match self.0 & Self::TRANSACTION_ROLLBACK {
            Self::TRANSACTION_PREPARED => TransactionType::Prepared,
            Self::TRANSACTION_COMMIT => TransactionType::Commit,
            Self::TRANSACTION_ROLLBACK => TransactionType::Rollback,
            _ => TransactionType::None,
        }
    }

    /// The same flag with the transaction bits replaced.
    #[must_use]
    pub const fn with_transaction(self, kind: TransactionType) -> Self {
        let bits = match kind {
            TransactionType::None => Self::TRANSACTION_NONE,
            TransactionType::Prepared => Self::TRANSACTION_PREPARED,
            TransactionType::Commit => Self::TRANSACTION_COMMIT,
            TransactionType::Rollback => Self::TRANSACTION_ROLLBACK,
        };
        Self(self.0 & !Self::TRANSACTION_ROLLBACK | bits)
    }

    /// The same flag with the host bits that these addresses need.
    #[must_use]
    pub const fn with_hosts(self, born: IpAddr, store: IpAddr) -> Self {
        let mut flag = self.without(Self::BORN_HOST_V6 | Self::STORE_HOST_V6);
        if born.is_ipv6() {
            flag = flag.with(Self::BORN_HOST_V6);
        }
        if store.is_ipv6() {
            flag = flag.with(Self::STORE_HOST_V6);
        }
        flag
    }

    /// Bytes of the born host in the record.
    #[must_use]
    pub const fn born_host_bytes(self) -> usize {
        if self.has(Self::BORN_HOST_V6) { 20 } else { 8 }
    }

    /// Bytes of the store host in the record.
    #[must_use]
    pub const fn store_host_bytes(self) -> usize {
        if self.has(Self::STORE_HOST_V6) { 20 } else { 8 }
    }
}
