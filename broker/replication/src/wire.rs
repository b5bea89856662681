//! The bytes of the HA stream, big-endian, without magic or version.
//!
//! ```text
//! slave -> master, repeated           master -> slave, repeated
//!  0              8                    0              8          12           12 + size
//!  +--------------+                    +--------------+----------+------------+
//!  | max offset   |                    | log offset   | size     | body       |
//!  | i64          |                    | i64          | i32      | log bytes  |
//!  +--------------+                    +--------------+----------+------------+
//! ```
//! A frame of size 0 is a heartbeat; its offset is the one of the next byte to come.
use bytes::{BufMut, BytesMut};
use protocol::PhysicalOffset;

/// Size of a report.
pub(crate) const REPORT_BYTES: usize = 8;
/// Size of a frame's header.
pub(crate) const HEADER_BYTES: usize = 12;

/// A report of the slave's end.
pub(crate) fn report(end: PhysicalOffset) -> [u8; REPORT_BYTES] {
    end.get().to_be_bytes()
}

/// A frame: the log's bytes from `at`, or a heartbeat if there are none.
pub(crate) fn put_frame(out: &mut BytesMut, at: PhysicalOffset, body: &[u8]) {
    let size = i32::try_from(body.len()).expect("batches are far below 2 GiB");
    out.reserve(HEADER_BYTES + body.len());
    out.put_i64(at.get());
    out.put_i32(size);
    out.extend_from_slice(body);
}

/// The header at the front of `input`, if it is all there: offset and size field as read.
pub(crate) fn peek_header(input: &[u8]) -> Option<(PhysicalOffset, i32)> {
    let (offset, rest) = input.split_first_chunk::<8>()?;
    let size = rest.first_chunk::<4>()?;
    Some((PhysicalOffset(i64::from_be_bytes(*offset)), i32::from_be_bytes(*size)))
}
