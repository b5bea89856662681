//! Frames of every shape survive being written and read, in both serialisations and in pieces.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use protocol::{Command, ExtFields, Flag, FrameError, FrameLimits, Language, Serialization};

/// Any command that the serialisation can carry: the binary one has 16-bit codes and no empty texts.
fn commands() -> impl Strategy<Value = Command> {
    let text = "[ -~\u{0}-\u{1f}\u{e9}\u{4e2d}\u{1f30d}]{1,12}";
    let json = (any::<i32>(), any::<i32>(), vec((text, "(?s).{0,20}"), 0..8), proptest::option::of("(?s).{0,20}"));
    let binary = (any::<i16>(), any::<i16>(), vec((text, "(?s).{1,20}"), 0..8), proptest::option::of("(?s).{1,20}"));
    let parts = prop_oneof![
        json.prop_map(|(code, version, ext, remark)| (Serialization::Json, code, version, ext, remark)),
        binary.prop_map(|(code, version, ext, remark)| (
            Serialization::RocketMq,
            code.into(),
            version.into(),
            ext,
            remark
        )),
    ];
    (parts, any::<i32>(), any::<i32>(), 0..14_u8, vec(any::<u8>(), 0..64)).prop_map(
        |((serialization, code, version, ext, remark), opaque, flag, language, body)| Command {
            code,
            language: Language::from_code(language),
            version,
            opaque,
            flag: Flag(flag),
            remark,
            ext_fields: ext.into_iter().collect::<ExtFields>(),
            body: Bytes::from(body),
            serialization,
        },
    )
}

proptest! {
    #[test]
    fn a_command_written_and_read_is_the_same(command in commands()) {
        let mut input = BytesMut::from(&command.to_bytes()[..]);
        prop_assert_eq!(Command::decode(&mut input, FrameLimits::ROCKETMQ).unwrap(), Some(command));
        prop_assert!(input.is_empty());
    }

    #[test]
    fn a_stream_of_commands_can_be_cut_anywhere(commands in vec(commands(), 1..4), cuts in vec(1..40_usize, 1..60)) {
        let mut stream = BytesMut::new();
        commands.iter().for_each(|command| command.encode(&mut stream));
        let (mut input, mut read) = (BytesMut::new(), Vec::new());
        let mut cuts = cuts.into_iter().cycle();
        while !stream.is_empty() {
            let piece = stream.split_to(cuts.next().unwrap().min(stream.len()));
            input.extend_from_slice(&piece);
            while let Some(command) = Command::decode(&mut input, FrameLimits::ROCKETMQ).unwrap() {
                read.push(command);
            }
        }
        prop_assert_eq!(read, commands);
    }
}

fn check_refused(bytes: &[u8], expected: &FrameError) {
    let mut input = BytesMut::from(bytes);
    assert_eq!(Command::decode(&mut input, FrameLimits::ROCKETMQ).as_ref(), Err(expected));
    assert_eq!(input, bytes, "nothing is taken");
}

#[test]
fn lengths_are_checked_before_the_frame_is_there() {
    check_refused(&[0xFF, 0xFF, 0xFF, 0xFF], &FrameError::TooShort { length: -1 });
    check_refused(&[0, 0, 0, 3], &FrameError::TooShort { length: 3 });
    check_refused(&[0x7F, 0xFF, 0xFF, 0xFF], &FrameError::TooLong { bytes: (1 << 31) + 3, limit: 16 << 20 });
    check_refused(&[0, 0xFF, 0xFF, 0xFD], &FrameError::TooLong { bytes: (16 << 20) + 1, limit: 16 << 20 });
    check_refused(&[0, 0, 0, 10, 2, 0, 0, 0], &FrameError::UnknownSerialization { value: 2 });
    check_refused(&[0, 0, 0, 10, 0, 0, 0, 7], &FrameError::HeaderTooLong { header: 7, length: 10 });
    let mut largest = BytesMut::from(&[0, 0xFF, 0xFF, 0xFC, 0, 0, 0, 2][..]);
    assert_eq!(Command::decode(&mut largest, FrameLimits::ROCKETMQ), Ok(None), "the largest frame may still come");
}
