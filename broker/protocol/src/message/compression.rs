//! Compression of message bodies.

use std::io::Read;

use bytes::Bytes;

use super::sys_flag::CompressionType;
use crate::error::CompressionError;

/// A producer compresses bodies from this size on.
pub const COMPRESS_OVER_BYTES: usize = 4096;
/// Zlib level of RocketMQ's producers.
pub const ZLIB_LEVEL: u32 = 5;

/// Decompresses a body, at most up to a limit.
///
/// # Errors
/// The stream is malformed, or its plain form is larger than the limit.
pub fn decompress(body: &[u8], kind: CompressionType, bytes_max: usize) -> Result<Bytes, CompressionError> {
    match kind {
        CompressionType::Zlib => read_all(flate2::read::ZlibDecoder::new(body), "zlib", bytes_max),
        CompressionType::Lz4 => read_all(lz4_flex::frame::FrameDecoder::new(body), "lz4", bytes_max),
        CompressionType::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(body)
                .map_err(|_| CompressionError::Malformed { algorithm: "zstd" })?;
            read_all(decoder, "zstd", bytes_max)
        }
    }
}

fn read_all(reader: impl Read, algorithm: &'static str, bytes_max: usize) -> Result<Bytes, CompressionError> {
    let mut plain = Vec::new();
    // One byte more than allowed tells "too large" from "just fits".
    reader.take(bytes_max as u64 + 1).read_to_end(&mut plain).map_err(|_| CompressionError::Malformed { algorithm })?;
    if plain.len() > bytes_max {
        return Err(CompressionError::TooLarge { limit: bytes_max });
    }
    Ok(Bytes::from(plain))
}

/// Compresses a body by zlib, the default of RocketMQ's producers.
///
/// # Panics
/// If the level is above 9.
#[must_use]
pub fn compress_zlib(body: &[u8], level: u32) -> Bytes {
    assert!(level <= 9, "zlib has levels 0 to 9");
    let mut compressed = Vec::with_capacity(body.len() / 2);
    flate2::read::ZlibEncoder::new(body, flate2::Compression::new(level))
        .read_to_end(&mut compressed)
        .expect("reading from memory cannot fail");
    Bytes::from(compressed)
}

#[cfg(test)]
mod tests {
    use super::{CompressionType, compress_zlib, decompress};
    use crate::error::CompressionError;

    #[test]
    fn zlib_returns_what_was_put_in() {
        let body = b"hello hello hello hello".repeat(100);
        let compressed = compress_zlib(&body, 5);
        assert!(compressed.len() < body.len());
        assert_eq!(decompress(&compressed, CompressionType::Zlib, body.len()), Ok(body.clone().into()));
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let compressed = compress_zlib(&vec![0; 1 << 20], 9);
        let limit = 1000;
        assert_eq!(decompress(&compressed, CompressionType::Zlib, limit), Err(CompressionError::TooLarge { limit }));
    }

    #[test]
    fn garbage_is_an_error() {
        for kind in [CompressionType::Zlib, CompressionType::Lz4, CompressionType::Zstd] {
            assert!(matches!(decompress(b"garbage", kind, 100), Err(CompressionError::Malformed { .. })));
        }
    }
}
