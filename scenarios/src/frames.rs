//! What messages between nodes mean, for a recording: remoting frames by their codes, the HA stream by its direction.

use crate::node_config::HA_PORT;
use bytes::{BufMut, BytesMut};
use protocol::{Command, FrameLimits};
use rt::world::Packet;
use sim::recording::{Call, Frame};
use std::borrow::Cow;

/// Length word, and the word of header length and serialization.
const REMOTING_HEAD_BYTES: usize = 8;
/// A slave's report is one offset.
const REPORT_BYTES: usize = 8;
/// Offset and size before the log's bytes.
const TRANSFER_HEAD_BYTES: usize = 12;

/// The message that begins with these bytes.
pub fn read_frame(packet: &Packet, bytes: &[u8]) -> Option<Frame> {
    if packet.destination.port() == HA_PORT {
        (bytes.len() >= REPORT_BYTES).then(|| alone("HA report", REPORT_BYTES))
    } else if packet.source.port() == HA_PORT {
        transfer(bytes)
    } else {
        remoting(bytes)
    }
}

fn alone(name: &'static str, length: usize) -> Frame {
    Frame { name: Cow::Borrowed(name), length, call: Call::Alone }
}

fn transfer(bytes: &[u8]) -> Option<Frame> {
    let size = i32::from_be_bytes(*bytes.get(8..TRANSFER_HEAD_BYTES)?.first_chunk()?);
    let name = if size == 0 { "HA heartbeat" } else { "HA transfer" };
    Some(alone(name, TRANSFER_HEAD_BYTES + usize::try_from(size).ok()?))
}

fn remoting(bytes: &[u8]) -> Option<Frame> {
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..at + 4)?.first_chunk()?));
    let length = usize::try_from(word(0)?).ok()? + 4;
    let header_bytes = usize::try_from(word(4)? & 0x00FF_FFFF).ok()?;
    let header = bytes.get(4..REMOTING_HEAD_BYTES + header_bytes)?;
    // The frame without its body, which is not looked at and may not be here yet.
    let mut frame = BytesMut::with_capacity(4 + header.len());
    frame.put_u32(u32::try_from(header.len()).ok()?);
    frame.extend_from_slice(header);
    let command = Command::decode(&mut frame, FrameLimits::ROCKETMQ).ok()??;
    let number = u64::from(command.opaque.cast_unsigned());
    let (name, call) = if command.is_response() {
        (command.response_code().map(|code| format!("{code:?}")), Call::Answers(number))
    } else {
        let call = if command.is_oneway() { Call::Alone } else { Call::Asks(number) };
        (command.request_code().map(|code| format!("{code:?}")), call)
    };
    let name = name.unwrap_or_else(|| format!("code {}", command.code));
    Some(Frame { name: Cow::Owned(name), length, call })
}

#[cfg(test)]
mod tests {
    use super::read_frame;
    use bytes::BytesMut;
    use protocol::header::GetMaxOffsetRequest;
    use protocol::{Command, RequestCode, ResponseCode};
    use rt::world::{NodeId, Packet, PacketKind};
    use sim::recording::Call;
    use std::net::SocketAddr;

    fn read(from: u16, to: u16, bytes: &[u8]) -> Option<(String, usize, Call)> {
        let address = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        let (source, destination) = (address(from), address(to));
        let (node, kind, length) = (NodeId::WORLD, PacketKind::Data, bytes.len());
        let packet = Packet { from: node, to: node, source, destination, kind, length };
        read_frame(&packet, bytes).map(|frame| (frame.name.into_owned(), frame.length, frame.call))
    }

    #[test]
    fn questions_and_answers_have_the_names_of_their_codes() {
        let header = GetMaxOffsetRequest { topic: "t".into(), queue_id: 1, committed: true };
        let request = Command::request(RequestCode::GetMaxOffset, &header).with_body(vec![7; 100]);
        let answer = Command::reply(&request, ResponseCode::QueryNotFound);
        let bytes = |command: &Command| {
            let mut out = BytesMut::new();
            command.encode(&mut out);
            out
        };
        let (asked, told) = (bytes(&request), bytes(&answer));
        let number = u64::from(request.opaque.cast_unsigned());
        let name = || "GetMaxOffset".to_owned();
        assert_eq!(read(40_000, 10_911, &asked), Some((name(), asked.len(), Call::Asks(number))));
        // Its body may come later, its header may not.
        assert_eq!(read(40_000, 10_911, &asked[..asked.len() - 50]), Some((name(), asked.len(), Call::Asks(number))));
        assert_eq!(read(40_000, 10_911, &asked[..20]), None);
        let answered = ("QueryNotFound".to_owned(), told.len(), Call::Answers(number));
        assert_eq!(read(10_911, 40_000, &told), Some(answered));
        let mut oneway = request;
        oneway.mark_oneway();
        assert_eq!(read(40_000, 10_911, &bytes(&oneway)).map(|(.., call)| call), Some(Call::Alone));
        assert_eq!(read(40_000, 10_911, b"GET / HTTP/1.1\r\n\r\n"), None);
    }

    #[test]
    fn the_replication_stream_has_three_kinds() {
        let named = |name: &str, length: usize| Some((name.to_owned(), length, Call::Alone));
        assert_eq!(read(40_000, 10_912, &[0; 8]), named("HA report", 8));
        assert_eq!(read(10_912, 40_000, &[0; 12]), named("HA heartbeat", 12));
        let transfer = [&[0_u8; 8][..], &100_i32.to_be_bytes(), &[1; 20]].concat();
        assert_eq!(read(10_912, 40_000, &transfer), named("HA transfer", 112));
        assert_eq!(read(10_912, 40_000, &[0xFF; 12]), None, "no size is negative");
        assert_eq!(read(10_912, 40_000, &[0; 11]), None);
    }
}
