//! The JSON header as clients and brokers of RocketMQ write it: compact, with double quotes and the escapes of JSON. Nearly every frame has one, and it is
//! read in one pass, its fields without a copy of each. Whatever looks otherwise is left to the reader that takes all that Java takes; both read the same from the same
//! bytes.

use super::super::{Command, ExtFields, Flag, Language};
use super::java_command;
use crate::json::quote_or_escape;
use std::ops::Range;

/// The properties of a message have separators that are escaped, and about as many bytes.
const ESCAPED_USUAL: usize = 192;

/// Reads the header; `None`: it is not plain, or not whole.
pub(super) fn read(header: &str) -> Option<Command> {
    let mut command = java_command();
    let mut cursor = Cursor { header, at: 0 };
    cursor.members(|key, cursor| {
        match &header.as_bytes()[key] {
            b"code" => command.code = cursor.number()?,
            b"extFields" => command.ext_fields = fields(cursor)?,
            b"flag" => command.flag = Flag(cursor.number()?),
            b"language" => command.language = Language::from_name(&cursor.text()?),
            b"opaque" => command.opaque = cursor.number()?,
            b"remark" => command.remark = Some(cursor.text()?),
            b"serializeTypeCurrentRPC" => drop(cursor.value()?),
            b"version" => command.version = cursor.number()?,
            _ => return None,
        }
        Some(())
    })?;
    (cursor.at == header.len()).then_some(command)
}

fn fields(cursor: &mut Cursor<'_>) -> Option<ExtFields> {
    let header = cursor.header;
    let mut fields = ExtFields::over(header, ESCAPED_USUAL);
    cursor.members(|key, cursor| {
        match cursor.value()? {
            Text::Plain(value) => fields.insert_part(header, key, value),
            Text::Escaped(value) => fields.insert(&header[key], value),
        }
        Some(())
    })?;
    Some(fields)
}

/// A text of the header.
enum Text {
    /// Stands there.
    Plain(Range<usize>),
    /// Stands there in other words.
    Escaped(String),
}

struct Cursor<'a> {
    header: &'a str,
    at: usize,
}

impl Cursor<'_> {
    /// Reads an object. A key is told by where it stands; one with an escape is not plain.
    #[inline]
    fn members(&mut self, mut member: impl FnMut(Range<usize>, &mut Self) -> Option<()>) -> Option<()> {
        self.skip(b'{')?;
        if self.skip(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.run()?;
            self.skip(b'"')?;
            // fastjson's mark of a member that stands for another one.
            if &self.header.as_bytes()[key.clone()] == b"$ref" {
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
    fn value(&mut self) -> Option<Text> {
        let start = self.run()?;
        match self.skip(b'"') {
            Some(()) => Some(Text::Plain(start)),
            None => self.escaped(start).map(Text::Escaped),
        }
    }

    fn text(&mut self) -> Option<String> {
        Some(match self.value()? {
            Text::Plain(range) => self.header[range].to_owned(),
            Text::Escaped(text) => text,
        })
    }

    /// A text that begins so and then has an escape.
    fn escaped(&mut self, start: Range<usize>) -> Option<String> {
        let mut text = String::with_capacity(start.len() + ESCAPED_USUAL);
        text.push_str(&self.header[start]);
        loop {
            text.push(self.escape()?);
            let from = self.at;
            self.at += quote_or_escape(&self.header.as_bytes()[from..])?;
            text.push_str(&self.header[from..self.at]);
            if self.skip(b'"').is_some() {
                return Some(text);
            }
        }
    }

    /// A quote, and what stands before the next quote or escape.
    #[inline]
    fn run(&mut self) -> Option<Range<usize>> {
        self.skip(b'"')?;
        let from = self.at;
        self.at += quote_or_escape(&self.header.as_bytes()[from..])?;
        Some(from..self.at)
    }

    /// The escapes that JSON has and a properties' separator needs. A half of a surrogate pair is left to the other reader.
    fn escape(&mut self) -> Option<char> {
        let rest = &self.header.as_bytes()[self.at..];
        let (length, character) = match rest.get(1)? {
            b'u' => {
                let digit = |code, digit: &u8| Some(code << 4 | char::from(*digit).to_digit(16)?);
                (6, char::from_u32(rest.get(2..6)?.iter().try_fold(0, digit)?)?)
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
        let (from, mut number) = (self.at, 0);
        while let Some(byte @ b'0'..=b'9') = self.header.as_bytes().get(self.at) {
            if self.at - from == 9 {
                return None;
            }
            number = number * 10 + i32::from(byte - b'0');
            self.at += 1;
        }
        (self.at > from).then_some(if is_negative { -number } else { number })
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
