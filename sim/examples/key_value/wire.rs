//! What clients and replicas say to each other: a length of four bytes, and that many bytes of JSON.

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpStream;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;

/// Longer frames are refused: nobody sends them.
const FRAME_BYTES_MAX: u32 = 1 << 20;

/// Orders the values of one key. No two puts have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Version {
    /// One more than the highest that the writer knew.
    pub counter: u64,
    /// The client that put it, for two that counted alike.
    pub writer: u32,
}

/// A value with its version; version zero of nothing is a key that nobody has put.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Versioned {
    /// When it is newer than another.
    pub version: Version,
    /// What was put.
    pub value: Option<String>,
}

/// What a client asks of one replica.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// The newest value that it knows.
    Load {
        /// Of this key.
        key: String,
    },
    /// To remember a value, unless it knows a newer one.
    Store {
        /// Of this key.
        key: String,
        /// The value.
        versioned: Versioned,
    },
}

/// What a replica answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Load`].
    Loaded(Versioned),
    /// To [`Request::Store`]: it is on the disk, or something newer is.
    Stored,
}

/// Sends one message.
pub async fn send<T: Serialize>(stream: &mut TcpStream, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &body].concat()).await
}

/// Receives one message.
pub async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let length = stream.read_u32().await?;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}
