//! The ROCKETMQ header: fixed fields, then two blocks with their lengths.
//!
//! ```text
//! code i16 | language u8 | version i16 | opaque i32 | flag i32 | remarkLen i32 | remark
//! extLen i32 | ( keyLen i16 | key | valueLen i32 | value )*
//! ```

use bytes::BufMut;

use super::{Command, ExtFields, Flag, Language, Serialization};
use crate::error::FrameError;
use crate::lossy::lossy;

/// Appends the header. The code keeps its low 16 bits only, as in RocketMQ.
#[expect(clippy::cast_possible_truncation, reason = "the format has 16 bits for code and version")]
pub(super) fn write(command: &Command, out: &mut Vec<u8>) {
    out.put_i16(command.code as i16);
    out.put_u8(command.language.code());
    out.put_i16(command.version as i16);
    out.put_i32(command.opaque);
    out.put_i32(command.flag.0);
    put_text(command.remark.as_deref().unwrap_or(""), out);
    let block = out.len();
    out.put_i32(0);
    for (key, value) in command.ext_fields.iter() {
        let key_bytes = i16::try_from(key.len()).expect("ext field keys are short");
        out.put_i16(key_bytes);
        out.extend_from_slice(key.as_bytes());
        put_text(value, out);
    }
    let block_bytes = i32::try_from(out.len() - block - 4).expect("headers stay below 16 MiB");
    out[block..block + 4].copy_from_slice(&block_bytes.to_be_bytes());
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.put_i32(i32::try_from(text.len()).expect("headers stay below 16 MiB"));
    out.extend_from_slice(text.as_bytes());
}

/// Reads the header. Empty texts count as absent, the last of two equal keys wins.
pub(super) fn read(header: &[u8]) -> Result<Command, FrameError> {
    let mut cursor = Cursor { rest: header };
    let code = i32::from(i16::from_be_bytes(cursor.array("code")?));
    let [language] = cursor.array("language")?;
    let version = i32::from(i16::from_be_bytes(cursor.array("version")?));
    let opaque = i32::from_be_bytes(cursor.array("opaque")?);
    let flag = i32::from_be_bytes(cursor.array("flag")?);
    let remark_bytes = i32::from_be_bytes(cursor.array("remark")?);
    let remark = cursor.text(i64::from(remark_bytes), "remark")?;
    let ext_bytes = i32::from_be_bytes(cursor.array("extFields")?);
    let block = cursor.slice(i64::from(ext_bytes), "extFields")?;
    Ok(Command {
        code,
        language: Language::from_code(language),
        version,
        opaque,
        flag: Flag(flag),
        remark: (!remark.is_empty()).then_some(remark),
        ext_fields: read_ext(block)?,
        serialization: Serialization::RocketMq,
        ..Command::blank()
    })
}

fn read_ext(block: &[u8]) -> Result<ExtFields, FrameError> {
    let mut cursor = Cursor { rest: block };
    let mut fields = ExtFields::new();
    while !cursor.rest.is_empty() {
        let key_bytes = i16::from_be_bytes(cursor.array("extFields key")?);
        let key = cursor.text(i64::from(key_bytes), "extFields key")?;
        let value_bytes = i32::from_be_bytes(cursor.array("extFields value")?);
        let value = cursor.text(i64::from(value_bytes), "extFields value")?;
        if !key.is_empty() && !value.is_empty() {
            fields.insert(key, value);
        }
    }
    Ok(fields)
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(FrameError::Truncated { field })?;
        self.rest = rest;
        Ok(*head)
    }

    fn slice(&mut self, length: i64, field: &'static str) -> Result<&'a [u8], FrameError> {
        let bad = FrameError::BadLength { field, length };
        let length = usize::try_from(length).map_err(|_| bad.clone())?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(bad)?;
        self.rest = rest;
        Ok(head)
    }

    fn text(&mut self, length: i64, field: &'static str) -> Result<String, FrameError> {
        Ok(lossy(self.slice(length, field)?).into_owned())
    }
}
