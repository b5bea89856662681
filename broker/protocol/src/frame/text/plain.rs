//! The JSON header as clients and brokers of RocketMQ write it: compact, with double quotes and the escapes of JSON. Nearly every frame has one, and it is
//! read in one pass. Whatever looks otherwise is left to the reader that takes all that Java takes; both read the same from the same
//! bytes.

use std::borrow::Cow;

use memchr::memchr2;

use super::super::{Command, ExtFields, Flag, Language};
use super::java_command;

/// The properties of a message have separators that are escaped, and about as many bytes.
const ESCAPED_USUAL: usize = 192;

/// Reads the header; `None`: it is not plain, or not whole.
pub(super) fn read(header: &str) -> Option<Command> {
    let mut command = java_command();
    let mut cursor = Cursor { header, at: 0 };
    cursor.members(|key, cursor| {
        match &*key {
            "code" => command.code = cursor.number()?,
            "extFields" => command.ext_fields = fields(cursor)?,
            "flag" => command.flag = Flag(cursor.number()?),
            "language" => command.language = Language::from_name(&cursor.text()?),
            "opaque" => command.opaque = cursor.number()?,
            "remark" => command.remark = Some(cursor.text()?.into_owned()),
            "serializeTypeCurrentRPC" => drop(cursor.text()?),
            "version" => command.version = cursor.number()?,
            _ => return None,
        }
        Some(())
    })?;
    (cursor.at == header.len()).then_some(command)
}

fn fields(cursor: &mut Cursor<'_>) -> Option<ExtFields> {
    let mut fields = ExtFields::with_room(cursor.header.len() - cursor.at);
    cursor.members(|key, cursor| {
        fields.insert(key, cursor.text()?);
        Some(())
    })?;
    Some(fields)
}

struct Cursor<'a> {
    header: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn members(&mut self, mut member: impl FnMut(Cow<'a, str>, &mut Self) -> Option<()>) -> Option<()> {
        self.skip(b'{')?;
        if self.skip(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.text()?;
            // fastjson's mark of a member that stands for another one.
            if key == "$ref" {
                return None;
            }
            self.skip(b':')?;
            member(key, self)?;
            match self.skip(b',') {
                Some(()) => {}
                None => return self.skip(b'}'),
            }
        }
    }

    #[inline]
    fn skip(&mut self, byte: u8) -> Option<()> {
        let is_there = self.header.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there.then_some(())
    }

    #[inline]
    fn text(&mut self) -> Option<Cow<'a, str>> {
        self.skip(b'"')?;
        let start = self.run()?;
        if self.skip(b'"').is_some() {
            return Some(Cow::Borrowed(start));
        }
        let mut text = String::with_capacity(start.len() + ESCAPED_USUAL);
        text.push_str(start);
        loop {
            text.push(self.escape()?);
            text.push_str(self.run()?);
            if self.skip(b'"').is_some() {
                return Some(Cow::Owned(text));
            }
        }
    }

    /// What stands before the next quote or escape.
    #[inline]
    fn run(&mut self) -> Option<&'a str> {
        let rest = &self.header[self.at..];
        let end = memchr2(b'"', b'\\', rest.as_bytes())?;
        self.at += end;
        Some(&rest[..end])
    }

    /// The escapes that JSON has and a properties' separator needs. A half of a surrogate pair is left to the other reader.
    fn escape(&mut self) -> Option<char> {
        let rest = &self.header.as_bytes()[self.at..];
        let (length, character) = match rest.get(1)? {
            b'u' => {
                let digits = std::str::from_utf8(rest.get(2..6)?).ok()?;
                let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                (6, char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| is_plain)?)?)
            }
            b'n' => (2, '\n'),
            b'r' => (2, '\r'),
            b't' => (2, '\t'),
            quoted @ (b'"' | b'\\' | b'/') => (2, char::from(*quoted)),
            _ => return None,
        };
        self.at += length;
        Some(character)
    }

    /// Up to nine digits: a longer number may be too large, and an empty one is none.
    fn number(&mut self) -> Option<i32> {
        let is_negative = self.skip(b'-').is_some();
        let rest = &self.header.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        self.at += digits;
        let number = rest[..digits].iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
        Some(if is_negative { -number } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::frame::text::read_any;
    use proptest::prelude::*;

    proptest! {
        /// Pieces of headers in any order, well formed or not: what is read in one pass is what would be read of it anyway.
        #[test]
        fn it_reads_what_any_header_says(pieces in proptest::collection::vec(piece(), 0..12)) {
            let header = format!("{{{}}}", pieces.join(","));
            if let Some(command) = read(&header) {
                prop_assert_eq!(Ok(command), read_any(&header).map_err(|error| error.to_string()));
            }
        }
    }

    fn piece() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            r#""code":10"#,
            r#""code":-0000000011"#,
            r#""code":2147483648"#,
            r#""flag":01"#,
            r#""flag":"1""#,
            r#""language":"GO""#,
            r#""language":"""#,
            r#""opaque":-3"#,
            r#""remark":"x\ny""#,
            r#""remark":"é""#,
            r#""remark":"\u0001a\u0002\\\"\/\t\u00e9""#,
            r#""remark":"\ud83d\ude00""#,
            r#""remark":"\u+123""#,
            r#""remark":"\q""#,
            r#""rem\u0061rk":"y""#,
            r#""remark":null"#,
            r#""version":477L"#,
            r#""version":1.5"#,
            r#""Version":5"#,
            r#""serializeTypeCurrentRPC":"JSON""#,
            r#""extFields":{}"#,
            r#""extFields":{"a":"1","b":"2","a":"3","":""}"#,
            r#""extFields":{"a":null}"#,
            r#""extFields":{"$ref":"$.code"}"#,
            r#""$ref":"$""#,
            r#"code:'11'"#,
            "}",
            "",
        ])
    }

    #[test]
    fn what_clients_send_is_plain() {
        let java = r#"{"code":310,"extFields":{"a":"G","e":"2"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":477}"#;
        let command = read(java).unwrap();
        assert_eq!((command.code, command.opaque, command.version), (310, 7, 477));
        assert_eq!((command.ext_fields.get("a"), command.ext_fields.get("e")), (Some("G"), Some("2")));
    }
}
