//! Errors, one enum per operation family. Every one means bad bytes from outside; none means a bug here.

/// A frame cannot be read. There is no error frame in the protocol: the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length word is negative or smaller than the header word that must follow.
    #[error("frame length {length} is too small")]
    TooShort {
        /// The length word as read.
        length: i32,
    },
    /// The frame is larger than the limit.
    #[error("frame of {bytes} bytes is larger than the limit of {limit}")]
    TooLong {
        /// Size of the whole frame, length word included.
        bytes: u64,
        /// The limit.
        limit: u32,
    },
    /// The header does not fit into the frame.
    #[error("header of {header} bytes does not fit into a frame of {length}")]
    HeaderTooLong {
        /// Header length as read.
        header: u32,
        /// The frame's length word.
        length: u32,
    },
    /// The first byte of the header word names no serialisation.
    #[error("unknown header serialisation {value}")]
    UnknownSerialization {
        /// The byte as read.
        value: u8,
    },
    /// The header text is not JSON, not even in fastjson's sense.
    #[error("header is not readable as json")]
    Json(#[from] JsonError),
    /// The header's top level value is not an object.
    #[error("json header is not an object")]
    NotAnObject,
    /// A header member has the wrong type.
    #[error("header member {member} is malformed")]
    Member {
        /// Name of the member.
        member: &'static str,
    },
    /// The binary header ends before a field does.
    #[error("binary header ends inside {field}")]
    Truncated {
        /// Name of the field.
        field: &'static str,
    },
    /// A length inside the binary header is negative or larger than what holds it.
    #[error("binary header has length {length} for {field}")]
    BadLength {
        /// Name of the field.
        field: &'static str,
        /// The length as read.
        length: i64,
    },
}

/// The ext fields do not make up the header asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A mandatory field is absent.
    #[error("header field {field} is missing")]
    Missing {
        /// The field's key on the wire.
        field: &'static str,
    },
    /// A field's text is no value of its type.
    #[error("header field {field} has the malformed value {value:?}")]
    Malformed {
        /// The field's key on the wire.
        field: &'static str,
        /// Its text, cut to a printable length.
        value: String,
    },
}

/// A text is not JSON in fastjson's dialect, or does not have the shape of the type asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text breaks off.
    #[error("json text ends unexpectedly at byte {at}")]
    UnexpectedEnd {
        /// Byte position.
        at: usize,
    },
    /// A character that fits nowhere.
    #[error("unexpected character in json text at byte {at}")]
    Unexpected {
        /// Byte position.
        at: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("json text is nested deeper than {limit}")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// There are too many values.
    #[error("json text holds more than {limit} values")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Readable, but not a value of the type asked for; the text is serde's.
    #[error("json value has the wrong shape: {detail}")]
    Shape {
        /// What serde said.
        detail: String,
    },
    /// The value cannot be written as JSON (a map key that is neither string, number nor struct).
    #[error("value cannot be written as json: {detail}")]
    Unwritable {
        /// What serde said.
        detail: String,
    },
}

/// Bytes are not a message record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Fewer bytes than the record claims or needs.
    #[error("record needs {needed} bytes but {available} are there")]
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// The magic code is that of no record version.
    #[error("record has the unknown magic code {magic:#010x}")]
    Magic {
        /// The code as read.
        magic: u32,
    },
    /// The blank filler at the end of a segment, not a message.
    #[error("record is the blank filler of {size} bytes")]
    Blank {
        /// Size of the filler.
        size: u32,
    },
    /// A length inside the record is negative or overruns it.
    #[error("record has length {length} for {field}")]
    BadLength {
        /// Name of the field.
        field: &'static str,
        /// The length as read.
        length: i64,
    },
    /// The fields do not add up to the record's total size.
    #[error("record claims {claimed} bytes but its fields take {counted}")]
    SizeMismatch {
        /// Total size field.
        claimed: usize,
        /// Sum of the fields.
        counted: usize,
    },
    /// A host's port is not a port.
    #[error("record has the port {port}")]
    Port {
        /// The value as read.
        port: i32,
    },
    /// The topic is not UTF-8.
    #[error("record has a topic that is not utf-8")]
    Topic,
    /// The body does not match its checksum.
    #[error("record body has checksum {computed:#x} instead of {stored:#x}")]
    BodyChecksum {
        /// The checksum in the record.
        stored: u32,
        /// The checksum of the body.
        computed: u32,
    },
    /// The record does not match the checksum that it ends with (`__CRC32#`).
    #[error("record has checksum {computed} instead of {stored}")]
    Seal {
        /// The digits in the record, the least significant first.
        stored: String,
        /// Those of its bytes.
        computed: String,
    },
    /// A record without the checksum that all must have.
    #[error("record has no checksum")]
    Unsealed,
    /// A field is too long to be written.
    #[error("record cannot hold {length} bytes of {field}, the limit is {limit}")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The body cannot be decompressed.
    #[error("record body cannot be decompressed")]
    Compression(#[from] CompressionError),
}

/// Bytes are not a client batch, or messages cannot form one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end inside an entry.
    #[error("batch entry at byte {at} needs {needed} bytes but {available} are there")]
    Truncated {
        /// Position of the entry.
        at: usize,
        /// Bytes needed.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// A length inside an entry is negative or overruns it.
    #[error("batch entry at byte {at} has length {length} for {field}")]
    BadLength {
        /// Position of the entry.
        at: usize,
        /// Name of the field.
        field: &'static str,
        /// The length as read.
        length: i64,
    },
    /// More entries than allowed.
    #[error("batch holds more than {limit} messages")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A field is too long to be written.
    #[error("batch entry cannot hold {length} bytes of {field}, the limit is {limit}")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
}

/// A body cannot be compressed or decompressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The system flag's compression bits name no algorithm.
    #[error("unknown compression type {value}")]
    UnknownType {
        /// The three bits.
        value: i32,
    },
    /// The bytes are not a stream of the algorithm.
    #[error("malformed {algorithm} stream")]
    Malformed {
        /// Name of the algorithm.
        algorithm: &'static str,
    },
    /// The plain body is larger than the limit.
    #[error("decompressed body is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// This program does not write the algorithm.
    #[error("writing {algorithm} is not supported")]
    Unsupported {
        /// Name of the algorithm.
        algorithm: &'static str,
    },
}

/// A text is not a message id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Neither 32 nor 56 hexadecimal digits.
    #[error("message id has {length} characters instead of 32 or 56")]
    Length {
        /// Length as given.
        length: usize,
    },
    /// A character that is no hexadecimal digit.
    #[error("message id is not hexadecimal")]
    NotHexadecimal,
    /// The port is not a port.
    #[error("message id has the port {port}")]
    Port {
        /// The value as read.
        port: i32,
    },
}

/// Bytes are not the body of a broker's registration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterBodyError {
    /// The compressed form cannot be decompressed.
    #[error("registration cannot be decompressed")]
    Compression(#[from] CompressionError),
    /// A JSON part is malformed.
    #[error("registration holds malformed json")]
    Json(#[from] JsonError),
    /// The compressed form ends inside a part, or a length is negative.
    #[error("registration ends inside {part}")]
    Truncated {
        /// Name of the part.
        part: &'static str,
    },
    /// A topic's line is malformed.
    #[error("registration holds the malformed topic {line:?}")]
    Topic {
        /// The line, cut to a printable length.
        line: String,
    },
}

/// A text is no filter expression. Places are bytes from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is longer than the limit.
    #[error("filter expression of {bytes} bytes is longer than {limit}")]
    TooLong {
        /// Length of the text.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many operations inside each other.
    #[error("filter expression is deeper than {limit} at byte {at}")]
    TooDeep {
        /// Where.
        at: usize,
        /// The limit.
        limit: usize,
    },
    /// A character that begins nothing.
    #[error("filter expression has {found:?} at byte {at}")]
    Character {
        /// Where.
        at: usize,
        /// The character.
        found: char,
    },
    /// A text without its second quote.
    #[error("filter expression has a text without an end at byte {at}")]
    OpenText {
        /// Where the text begins.
        at: usize,
    },
    /// Another token than the grammar asks for.
    #[error("filter expression has {found} instead of {expected} at byte {at}")]
    Token {
        /// Where.
        at: usize,
        /// The token.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// A number that no type holds, or a real number that is zero.
    #[error("filter expression has the number {found}, out of range, at byte {at}")]
    Number {
        /// Where.
        at: usize,
        /// The number.
        found: String,
    },
    /// Something that is neither true nor false where that is asked for.
    #[error("filter expression has {found} where true or false is needed, at byte {at}")]
    NoTruth {
        /// Where.
        at: usize,
        /// The expression.
        found: String,
    },
    /// An operand that its operator cannot take.
    #[error("filter expression compares {found} by {operator}, at byte {at}")]
    NotComparable {
        /// Where the operand is.
        at: usize,
        /// The operand.
        found: String,
        /// The operator.
        operator: &'static str,
    },
    /// Something else than a property on the left of `IN`.
    #[error("filter expression has {found} instead of a property before IN, at byte {at}")]
    NoProperty {
        /// Where.
        at: usize,
        /// The operand.
        found: String,
    },
    /// The ends of a `BETWEEN` are not in order.
    #[error("filter expression has BETWEEN {low} AND {high}, at byte {at}")]
    Range {
        /// Where the low end is.
        at: usize,
        /// The low end.
        low: String,
        /// The high end.
        high: String,
    },
}

/// A filter expression has no value for a message: a property cannot become what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a property cannot become what the filter expression compares it with")]
pub struct EvaluationError;
