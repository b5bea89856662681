//! Text to values: a recursive descent with a depth limit.

use std::borrow::Cow;

use crate::error::JsonError;

use super::scan::quote_or_escape;
use super::ser::write_value;

/// Nothing in RocketMQ nests a quarter as deep.
const DEPTH_MAX: usize = 64;
/// Bounds the memory of a parsed text; the largest real bodies (all topics of a broker) stay far below.
const VALUES_MAX: usize = 4_000_000;
/// Bounds what `$ref` may copy.
const REFERENCE_VALUES_MAX: usize = 100_000;

/// A frame's header and the ext fields in it are this shallow, and have about as many members.
const SHALLOW: usize = 1;
const MEMBERS_USUAL: usize = 12;

/// A parsed value; it borrows every text without an escape. Keys are values too, since fastjson lets numbers and objects be keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    /// A number as it was written.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    Object(Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The value as text: a text itself, everything else as it would be written.
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) | Self::Number(text) => text,
            other => {
                let mut out = Vec::new();
                write_value(&other, &mut out);
                String::from_utf8(out).expect("the writer writes utf-8").into()
            }
        }
    }
}

impl Value<'_> {
    /// The value with texts of its own.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(text) => Value::Number(text.into_owned().into()),
            Self::Text(text) => Value::Text(text.into_owned().into()),
            Self::Array(elements) => Value::Array(elements.into_iter().map(Value::into_owned).collect()),
            Self::Object(members) => {
                Value::Object(members.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
            }
        }
    }
}

/// Parses one whole text.
pub(crate) fn parse(text: &str) -> Result<Value<'_>, JsonError> {
    let mut parser = Parser { bytes: text.as_bytes(), text, at: 0, values: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(JsonError::Unexpected { at: parser.at });
    }
    Ok(if text.contains("$ref") { resolve_references(value) } else { value })
}

struct Parser<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        if depth > DEPTH_MAX {
            return Err(JsonError::TooDeep { limit: DEPTH_MAX });
        }
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(JsonError::TooLarge { limit: VALUES_MAX });
        }
        self.skip_space();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            quote @ (b'"' | b'\'') => Ok(Value::Text(self.quoted(quote)?)),
            b'-' | b'+' | b'0'..=b'9' | b'.' => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        self.at += 1;
        let mut members = Vec::with_capacity(if depth <= SHALLOW { MEMBERS_USUAL } else { 0 });
        loop {
            self.skip_commas();
            if self.peek()? == b'}' {
                self.at += 1;
                return Ok(Value::Object(members));
            }
            let key = self.key(depth)?;
            self.skip_space();
            if self.peek()? != b':' {
                return Err(JsonError::Unexpected { at: self.at });
            }
            self.at += 1;
            members.push((key, self.value(depth + 1)?));
            self.separator(b'}')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.skip_commas();
            if self.peek()? == b']' {
                self.at += 1;
                return Ok(Value::Array(elements));
            }
            elements.push(self.value(depth + 1)?);
            self.separator(b']')?;
        }
    }

    /// What stands between two elements: a comma, or the end.
    fn separator(&mut self, end: u8) -> Result<(), JsonError> {
        self.skip_space();
        match self.peek()? {
            b',' => Ok(()),
            byte if byte == end => Ok(()),
            _ => Err(JsonError::Unexpected { at: self.at }),
        }
    }

    fn key(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        match self.peek()? {
            b'{' | b'[' | b'"' | b'\'' | b'-' | b'0'..=b'9' => self.value(depth + 1),
            _ => {
                let start = self.at;
                while self.at < self.bytes.len() && is_bare(self.bytes[self.at]) {
                    self.at += 1;
                }
                if start == self.at {
                    return Err(JsonError::Unexpected { at: self.at });
                }
                // Bare bytes include every byte above ASCII, so the range ends on a character's edge.
                Ok(Value::Text(self.text[start..self.at].into()))
            }
        }
    }

    fn number(&mut self) -> Result<Value<'a>, JsonError> {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain && text.parse::<f64>().is_err() {
            return Err(JsonError::Unexpected { at: start });
        }
        // Java's suffixes for long, short, byte, float and double.
        if matches!(self.bytes.get(self.at), Some(b'L' | b'S' | b'B' | b'F' | b'D')) {
            self.at += 1;
        }
        Ok(Value::Number(text.into()))
    }

    fn word(&mut self) -> Result<Value<'a>, JsonError> {
        for (word, value) in [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(JsonError::Unexpected { at: self.at })
    }

    fn quoted(&mut self, quote: u8) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let start = self.run(quote);
        let mut byte = self.peek()?;
        self.at += 1;
        if byte == quote {
            return Ok(start.into());
        }
        let mut out = start.to_owned();
        while byte != quote {
            self.escape(&mut out)?;
            out.push_str(self.run(quote));
            byte = self.peek()?;
            self.at += 1;
        }
        Ok(out.into())
    }

    /// What stands before the next quote or escape; without one, all.
    fn run(&mut self, quote: u8) -> &'a str {
        let start = self.at;
        let rest = &self.bytes[start..];
        let end = match quote {
            b'"' => quote_or_escape(rest),
            quote => rest.iter().position(|byte| *byte == quote || *byte == b'\\'),
        };
        self.at += end.unwrap_or(rest.len());
        // Quote and backslash are ASCII, so both ends of the run are on a character's edge.
        &self.text[start..self.at]
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let byte = self.peek()?;
        self.at += 1;
        out.push(match byte {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'v' => '\u{b}',
            b'0'..=b'7' => char::from(byte - b'0'),
            b'"' | b'\'' | b'\\' | b'/' => char::from(byte),
            b'x' => char::from(u8::try_from(self.hexadecimal(2)?).expect("two hexadecimal digits")),
            b'u' => self.unicode()?,
            _ => return Err(JsonError::Unexpected { at: self.at - 1 }),
        });
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.hexadecimal(4)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let is_high = (0xD800..0xDC00).contains(&first);
        if is_high && self.bytes[self.at..].starts_with(b"\\u") {
            let after_first = self.at;
            self.at += 2;
            let second = self.hexadecimal(4)?;
            if (0xDC00..0xE000).contains(&second) {
                let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = after_first;
        }
        // Half a surrogate pair is no character.
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, JsonError> {
        let end = JsonError::UnexpectedEnd { at: self.bytes.len() };
        let slice = self.bytes.get(self.at..self.at + digits).ok_or(end)?;
        let mut number = 0;
        for (index, &digit) in slice.iter().enumerate() {
            let value = char::from(digit).to_digit(16).ok_or(JsonError::Unexpected { at: self.at + index })?;
            number = number * 16 + value;
        }
        self.at += digits;
        Ok(number)
    }

    fn peek(&self) -> Result<u8, JsonError> {
        self.bytes.get(self.at).copied().ok_or(JsonError::UnexpectedEnd { at: self.at })
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0C | 0x08)) {
            self.at += 1;
        }
    }

    fn skip_commas(&mut self) {
        self.skip_space();
        while self.bytes.get(self.at) == Some(&b',') {
            self.at += 1;
            self.skip_space();
        }
    }
}

fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-' | b'.' | b'@' | b'%') || byte >= 0x80
}

/// Replaces each `{"$ref":"$.path"}` by a copy of what it names, or by null if that cannot be found: fastjson writes it where one
/// object instance occurs twice.
fn resolve_references(root: Value<'_>) -> Value<'_> {
    let mut budget = REFERENCE_VALUES_MAX;
    resolve(&root, &root, &mut budget)
}

fn resolve<'a>(value: &Value<'a>, root: &Value<'a>, budget: &mut usize) -> Value<'a> {
    match value {
        Value::Array(elements) => Value::Array(elements.iter().map(|element| resolve(element, root, budget)).collect()),
        Value::Object(members) => match reference(members) {
            Some(path) => follow(path, root).map_or(Value::Null, |target| copy(target, budget)),
            None => Value::Object(
                members.iter().map(|(key, value)| (resolve(key, root, budget), resolve(value, root, budget))).collect(),
            ),
        },
        plain => plain.clone(),
    }
}

fn reference<'v>(members: &'v [(Value<'_>, Value<'_>)]) -> Option<&'v str> {
    match members {
        [(Value::Text(key), Value::Text(path))] if key == "$ref" => Some(path),
        _ => None,
    }
}

fn follow<'v, 'a>(path: &str, root: &'v Value<'a>) -> Option<&'v Value<'a>> {
    let mut at = root;
    for step in path.strip_prefix("$.")?.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        at = match at {
            Value::Array(elements) => elements.get(step.parse::<usize>().ok()?)?,
            Value::Object(members) => {
                &members
                    .iter()
                    .find(|(key, _)| matches!(key, Value::Text(name) | Value::Number(name) if name == step))?
                    .1
            }
            _ => return None,
        };
    }
    Some(at)
}

/// A copy in which references are null: they were written for another place.
fn copy<'a>(value: &Value<'a>, budget: &mut usize) -> Value<'a> {
    if *budget == 0 {
        return Value::Null;
    }
    *budget -= 1;
    match value {
        Value::Array(elements) => Value::Array(elements.iter().map(|element| copy(element, budget)).collect()),
        Value::Object(members) if reference(members).is_some() => Value::Null,
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (copy(key, budget), copy(value, budget))).collect())
        }
        plain => plain.clone(),
    }
}
