//! One frame: a command with its header in either serialisation, and a body.
//!
//! ```text
//!  0        4      5            8                 8+headerLen
//!  +--------+------+------------+-----------------+----------+
//!  | length | type | headerLen  | header          | body     |
//!  | i32    | u8   | u24        | JSON or binary  |          |
//!  +--------+------+------------+-----------------+----------+
//! ```
//! `length` counts everything behind itself. There is no magic, no checksum and no error frame: whatever cannot be read ends the
//! connection.

mod binary;
mod ext;
mod language;
mod text;

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

pub use ext::ExtFields;
pub use language::{Language, VERSION, version_name};

use crate::code::{RequestCode, ResponseCode};
use crate::error::{FrameError, HeaderError};
use crate::header::Header;

/// How a header is written; the frame says which, so both directions of a connection may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Serialization {
    /// JSON text.
    #[default]
    Json,
    /// RocketMQ's binary form. Codes above 32,767 do not survive it.
    RocketMq,
}

/// What a frame may cost before anything is allocated for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// Largest frame in bytes, the length word included.
    pub frame_bytes_max: u32,
}

impl FrameLimits {
    /// RocketMQ's own limit: 16 MiB.
    pub const ROCKETMQ: Self = Self { frame_bytes_max: 16 << 20 };
}

/// Bits of a command's flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flag(pub i32);

impl Flag {
    const RESPONSE: i32 = 1;
    const ONEWAY: i32 = 2;

    /// Whether the command answers another.
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.0 & Self::RESPONSE != 0
    }

    /// Whether the sender wants no answer.
    #[must_use]
    pub const fn is_oneway(self) -> bool {
        self.0 & Self::ONEWAY != 0
    }
}

/// A request or a response.
///
/// `opaque` pairs the two. A new request has 0: whoever owns the connection numbers it, so that no counter is shared behind the
/// back of the simulator.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// [`RequestCode`] of a request, [`ResponseCode`] of a response.
    pub code: i32,
    /// What the sender is written in.
    pub language: Language,
    /// The sender's version, as RocketMQ's ordinal.
    pub version: i32,
    /// Number that pairs request and response; unique among the sender's open requests.
    pub opaque: i32,
    /// Response and oneway bits.
    pub flag: Flag,
    /// Error text of a response. Never a sign of an error by itself.
    pub remark: Option<String>,
    /// The typed header's fields and those of hooks.
    pub ext_fields: ExtFields,
    /// Everything behind the header; empty and absent are the same.
    pub body: Bytes,
    /// How the header was or will be written.
    pub serialization: Serialization,
}

/// A send's header has about so many bytes.
const HEADER_USUAL: usize = 512;

impl Command {
    /// A request with this header, number 0, JSON.
    #[must_use]
    pub fn request(code: RequestCode, header: &impl Header) -> Self {
        let mut ext_fields = ExtFields::new();
        header.encode(&mut ext_fields);
        Self { code: code.as_i32(), ext_fields, ..Self::blank() }
    }

    /// The answer to `request`, in the serialisation that the request came in.
    #[must_use]
    pub fn reply(request: &Self, code: ResponseCode) -> Self {
        Self {
            code: code.as_i32(),
            opaque: request.opaque,
            flag: Flag(Flag::RESPONSE),
            serialization: request.serialization,
            ..Self::blank()
        }
    }

    fn blank() -> Self {
        Self {
            code: 0,
            language: Language::Rust,
            version: VERSION,
            opaque: 0,
            flag: Flag(0),
            remark: None,
            ext_fields: ExtFields::new(),
            body: Bytes::new(),
            serialization: Serialization::Json,
        }
    }

    /// The same command with this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The same command with the fields of this header put on top of those it has.
    #[must_use]
    pub fn with_header(mut self, header: &impl Header) -> Self {
        header.encode(&mut self.ext_fields);
        self
    }

    /// The same command with one more ext field.
    #[must_use]
    pub fn with_ext(mut self, key: &str, value: impl AsRef<str>) -> Self {
        self.ext_fields.insert(key, value);
        self
    }

    /// The same command with this remark.
    #[must_use]
    pub fn with_remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = Some(remark.into());
        self
    }

    /// Whether this answers a request.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        self.flag.is_response()
    }

    /// Whether the sender wants no answer, not even an error.
    #[must_use]
    pub const fn is_oneway(&self) -> bool {
        self.flag.is_oneway()
    }

    /// Says that no answer is wanted.
    pub fn mark_oneway(&mut self) {
        self.flag.0 |= Flag::ONEWAY;
    }

    /// Reads the typed header out of the ext fields.
    ///
    /// # Errors
    /// As [`Header::decode`].
    pub fn header<H: Header>(&self) -> Result<H, HeaderError> {
        H::decode(&self.ext_fields)
    }

    /// What the request asks for, if we know the code. Meaningless on a response.
    #[must_use]
    pub const fn request_code(&self) -> Option<RequestCode> {
        RequestCode::from_i32(self.code)
    }

    /// How the request went, if we know the code. Meaningless on a request.
    #[must_use]
    pub const fn response_code(&self) -> Option<ResponseCode> {
        ResponseCode::from_i32(self.code)
    }

    /// Appends the frame to `out`.
    ///
    /// # Panics
    /// As [`Command::to_bytes`].
    pub fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// The frame.
    ///
    /// # Panics
    /// If the header is 16 MiB or the frame 2 GiB long: senders check sizes where they take messages in.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        // Not into a buffer of the caller's: a vector is written piece by piece at a third of the cost.
        let mut out = Vec::with_capacity(HEADER_USUAL + self.body.len());
        out.extend_from_slice(&[0; 8]);
        match self.serialization {
            Serialization::Json => text::write(self, &mut out),
            Serialization::RocketMq => binary::write(self, &mut out),
        }
        let header_bytes = out.len() - 8;
        assert!(header_bytes < 1 << 24, "header of {header_bytes} bytes does not fit a frame");
        let length = i32::try_from(4 + header_bytes + self.body.len()).expect("frames stay below 2 GiB");
        out.extend_from_slice(&self.body);
        let kind: u32 = match self.serialization {
            Serialization::Json => 0,
            Serialization::RocketMq => 1,
        };
        out[..4].copy_from_slice(&length.to_be_bytes());
        let header_word = (kind << 24) | u32::try_from(header_bytes).expect("checked above");
        out[4..8].copy_from_slice(&header_word.to_be_bytes());
        out.into()
    }

    /// Takes one whole frame off the front of `input`; `None` if it is not all there yet, and then nothing is taken.
    ///
    /// The body shares the memory of `input`; nothing is allocated before the limits are checked.
    ///
    /// # Errors
    /// The bytes cannot become a frame whatever follows. The connection is to be closed.
    pub fn decode(input: &mut BytesMut, limits: FrameLimits) -> Result<Option<Self>, FrameError> {
        let Some((length, layout)) = peek(input, limits)? else { return Ok(None) };
        let Some(layout) = layout else { return Ok(None) };
        if input.len() < 4 + length {
            return Ok(None);
        }
        let mut frame = input.split_to(4 + length).freeze();
        frame.advance(8);
        let header = frame.split_to(layout.header_bytes);
        let mut command = match layout.serialization {
            Serialization::Json => text::read(&header)?,
            Serialization::RocketMq => binary::read(&header)?,
        };
        command.serialization = layout.serialization;
        command.body = frame;
        Ok(Some(command))
    }
}

struct Layout {
    serialization: Serialization,
    header_bytes: usize,
}

/// Checks what is there of the two leading words.
fn peek(input: &[u8], limits: FrameLimits) -> Result<Option<(usize, Option<Layout>)>, FrameError> {
    let Some(word) = input.first_chunk::<4>() else { return Ok(None) };
    let length = i32::from_be_bytes(*word);
    let Ok(unsigned) = u32::try_from(length) else { return Err(FrameError::TooShort { length }) };
    if unsigned < 4 {
        return Err(FrameError::TooShort { length });
    }
    let bytes = u64::from(unsigned) + 4;
    if bytes > u64::from(limits.frame_bytes_max) {
        return Err(FrameError::TooLong { bytes, limit: limits.frame_bytes_max });
    }
    let Some(word) = input[4..].first_chunk::<4>() else { return Ok(Some((unsigned as usize, None))) };
    let header_word = u32::from_be_bytes(*word);
    let header = header_word & 0x00FF_FFFF;
    let serialization = match header_word >> 24 {
        0 => Serialization::Json,
        1 => Serialization::RocketMq,
        value => {
            return Err(FrameError::UnknownSerialization {
                value: u8::try_from(value).expect("a word shifted by 24 bits"),
            });
        }
    };
    if header > unsigned - 4 {
        return Err(FrameError::HeaderTooLong { header, length: unsigned });
    }
    Ok(Some((unsigned as usize, Some(Layout { serialization, header_bytes: header as usize }))))
}

/// One line for logs: direction, code, number, sender, fields, size of the body; never the body itself.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_response() {
            match self.response_code() {
                Some(code) => write!(f, "response {code}")?,
                None => write!(f, "response UNKNOWN({})", self.code)?,
            }
        } else {
            match self.request_code() {
                Some(code) => write!(f, "request {code}")?,
                None => write!(f, "request UNKNOWN({})", self.code)?,
            }
        }
        write!(f, " #{}", self.opaque)?;
        if self.is_oneway() {
            f.write_str(" oneway")?;
        }
        write!(f, " {}", self.language.name())?;
        match version_name(self.version) {
            Some(name) => write!(f, "/{name}")?,
            None => write!(f, "/v{}", self.version)?,
        }
        if self.serialization == Serialization::RocketMq {
            f.write_str(" binary")?;
        }
        if let Some(remark) = &self.remark {
            write!(f, " remark={}", Shortened(remark))?;
        }
        for (key, value) in self.ext_fields.iter() {
            write!(f, " {}={}", key.escape_debug(), Shortened(value))?;
        }
        if !self.body.is_empty() {
            write!(f, " +{} bytes", self.body.len())?;
        }
        Ok(())
    }
}

/// The same line: a dump with megabytes of body helps nobody.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

struct Shortened<'a>(&'a str);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS_MAX: usize = 64;
        match self.0.char_indices().nth(CHARS_MAX) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…({} bytes)", &self.0[..end], self.0.len()),
        }
    }
}

#[cfg(test)]
mod tests;
