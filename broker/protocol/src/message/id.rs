//! Offset message ids: which broker, and where in its log.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::error::IdError;
use crate::hex::upper;
use crate::offset::PhysicalOffset;

/// Address of the broker that stored a message, and the message's place in its log. As text: upper-case hexadecimal of IP, port as
/// 32 bits, offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The broker.
    pub host: SocketAddr,
    /// The place.
    pub offset: PhysicalOffset,
}

impl MessageId {
    /// An id.
    #[must_use]
    pub const fn new(host: SocketAddr, offset: PhysicalOffset) -> Self {
        Self { host, offset }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 28];
        let host_bytes = match self.host.ip() {
            IpAddr::V4(ip) => put(&mut bytes, 0, &ip.octets()),
            IpAddr::V6(ip) => put(&mut bytes, 0, &ip.octets()),
        };
        let port_end = put(&mut bytes, host_bytes, &u32::from(self.host.port()).to_be_bytes());
        let end = put(&mut bytes, port_end, &self.offset.0.to_be_bytes());
        f.write_str(upper(&bytes[..end], &mut [0; 56]))
    }
}

/// Copies `part` to `at` and returns its end.
fn put(bytes: &mut [u8], at: usize, part: &[u8]) -> usize {
    let end = at + part.len();
    bytes[at..end].copy_from_slice(part);
    end
}

impl FromStr for MessageId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let length = text.len();
        if length != 32 && length != 56 {
            return Err(IdError::Length { length });
        }
        let mut bytes = [0_u8; 28];
        for (place, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *place = u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).expect("two hexadecimal digits");
        }
        let bytes = &bytes[..length / 2];
        let (host, rest) = bytes.split_at(bytes.len() - 12);
        let ip = match <[u8; 4]>::try_from(host) {
            Ok(octets) => IpAddr::V4(Ipv4Addr::from(octets)),
            Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(host).expect("28 bytes less 12"))),
        };
        let (port, offset) = rest.split_first_chunk::<4>().expect("12 bytes");
        let port = i32::from_be_bytes(*port);
        let offset = i64::from_be_bytes(offset.try_into().expect("12 bytes less 4"));
        let port = u16::try_from(port).map_err(|_| IdError::Port { port })?;
        Ok(Self { host: SocketAddr::new(ip, port), offset: PhysicalOffset(offset) })
    }
}

fn digit(byte: u8) -> Result<u32, IdError> {
    char::from(byte).to_digit(16).ok_or(IdError::NotHexadecimal)
}

#[cfg(test)]
mod tests {
    use super::{IdError, MessageId};

    fn check(text: &str, host: &str, offset: i64) {
        let id: MessageId = text.parse().unwrap();
        assert_eq!(id, MessageId::new(host.parse().unwrap(), offset.into()));
        assert_eq!(id.to_string(), text);
    }

    #[test]
    fn both_address_families() {
        check("0A00000200002A9F0000000000001234", "10.0.0.2:10911", 0x1234);
        check("0000000000000000000000000000000100002A9F0000000000001234", "[::1]:10911", 0x1234);
    }

    #[test]
    fn refuses_other_texts() {
        assert_eq!("".parse::<MessageId>(), Err(IdError::Length { length: 0 }));
        assert_eq!("0A00000200002A9F000000000000123G".parse::<MessageId>(), Err(IdError::NotHexadecimal));
        assert_eq!("0A00000200012A9F0000000000001234".parse::<MessageId>(), Err(IdError::Port { port: 76447 }));
        assert_eq!("éééééééééééééééé".parse::<MessageId>(), Err(IdError::NotHexadecimal));
    }
}
