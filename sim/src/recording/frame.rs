//! What a message means: only a scenario knows.

use rt::world::Packet;
use std::borrow::Cow;

/// A message of a scenario's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Of a question its name, of an answer what it says: `SendMessage`, `Success`.
    pub name: Cow<'static, str>,
    /// Its whole length in bytes, 1 or more, even if not all of them are here yet.
    pub length: usize,
    /// How it belongs to others of its connection.
    pub call: Call,
}

/// Which part of a conversation a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// None.
    Alone,
    /// A question with that number.
    Asks(u64),
    /// The answer to the question with that number, of the other side of the connection.
    Answers(u64),
}

/// Reads the message that begins with these bytes; `None` if none does, or if they are too few to tell.
pub type ReadFrame = fn(&Packet, &[u8]) -> Option<Frame>;
