//! Values to text, in fastjson's dialect or strictly.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};

use super::parse::Value;
use super::scan::to_be_escaped;
use crate::error::JsonError;

/// Which text to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// What Java writes.
    Fastjson,
    /// What every JSON parser reads.
    Strict,
}

impl serde::ser::Error for JsonError {
    fn custom<T: std::fmt::Display>(detail: T) -> Self {
        Self::Unwritable { detail: detail.to_string() }
    }
}

pub(super) fn write<T: Serialize + ?Sized>(value: &T, style: Style) -> Result<Vec<u8>, JsonError> {
    let mut out = Vec::new();
    value.serialize(&mut Writer { out: &mut out, style })?;
    Ok(out)
}

/// Appends a decimal number without formatting machinery: headers are written a hundred thousand times a second.
pub(crate) fn write_number(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a quoted text, which is UTF-8; control characters, quote and backslash escaped, the rest as it is.
pub(crate) fn write_text(text: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_ref();
    let mut plain_from = 0;
    while let Some(run) = to_be_escaped(&bytes[plain_from..]) {
        let at = plain_from + run;
        out.extend_from_slice(&bytes[plain_from..at]);
        plain_from = at + 1;
        write_escape(bytes[at], out);
    }
    out.extend_from_slice(&bytes[plain_from..]);
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        other => write_unit(u16::from(other), out),
    }
}

fn write_unit(unit: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = usize::from(unit >> shift & 0xF);
        out.push(b"0123456789abcdef"[digit]);
    }
}

/// As [`write_text`], with everything outside ASCII escaped.
fn write_text_ascii(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() {
        return write_text(text, out);
    }
    out.push(b'"');
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ (b'"' | b'\\' | 0..0x20 | 0x7F)) => write_escape(byte, out),
            Ok(byte) if byte.is_ascii() => out.push(byte),
            _ => write_unit(unit, out),
        }
    }
    out.push(b'"');
}

/// Appends a parsed value in the dialect.
pub(super) fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(text) => out.extend_from_slice(text.as_bytes()),
        Value::Text(text) => write_text(text.as_bytes(), out),
        Value::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(element, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(key, out);
                out.push(b':');
                write_value(value, out);
            }
            out.push(b'}');
        }
    }
}

/// The value indented by tabs, as RocketMQ writes its configuration files.
pub(super) fn pretty(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    write_pretty(value, 0, &mut out);
    String::from_utf8(out).expect("the writer writes utf-8")
}

fn write_pretty(value: &Value<'_>, depth: usize, out: &mut Vec<u8>) {
    let line = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b'\t', depth));
    };
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                line(depth + 1, out);
                write_pretty(element, depth + 1, out);
            }
            line(depth, out);
            out.push(b']');
        }
        Value::Object(members) if !members.is_empty() => {
            out.push(b'{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                line(depth + 1, out);
                write_value(key, out);
                out.push(b':');
                write_pretty(value, depth + 1, out);
            }
            line(depth, out);
            out.push(b'}');
        }
        plain => write_value(plain, out),
    }
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    style: Style,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        match self.style {
            Style::Fastjson => write_text(text, self.out),
            Style::Strict => write_text_ascii(text, self.out),
        }
    }

    /// A map key: a text, or what the dialect lets stand there as it is.
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        let mut written = Vec::new();
        key.serialize(&mut Writer { out: &mut written, style: self.style })?;
        if self.style == Style::Fastjson || written.first() == Some(&b'"') {
            self.out.extend_from_slice(&written);
            return Ok(());
        }
        let text = String::from_utf8(written).expect("the writer writes utf-8");
        self.text(&text);
        Ok(())
    }
}

fn unwritable<T>(detail: &str) -> Result<T, JsonError> {
    Err(JsonError::Unwritable { detail: detail.to_owned() })
}

/// An array or object that is being written.
pub(super) struct Compound<'w, 'a> {
    writer: &'w mut Writer<'a>,
    close: u8,
    is_empty: bool,
    /// Where the member began whose value is to follow, so that a null member can be taken back.
    member_at: usize,
}

impl<'w, 'a> Compound<'w, 'a> {
    fn open(writer: &'w mut Writer<'a>, open: u8, close: u8) -> Self {
        writer.out.push(open);
        Self { writer, close, is_empty: true, member_at: 0 }
    }

    fn comma(&mut self) {
        self.member_at = self.writer.out.len();
        if !self.is_empty {
            self.writer.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        self.comma();
        self.is_empty = false;
        value.serialize(&mut *self.writer)
    }

    fn member_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        self.writer.out.push(b':');
        let value_at = self.writer.out.len();
        value.serialize(&mut *self.writer)?;
        if &self.writer.out[value_at..] == b"null" {
            self.writer.out.truncate(self.member_at);
        } else {
            self.is_empty = false;
        }
        Ok(())
    }

    fn close(self) {
        self.writer.out.push(self.close);
    }
}

macro_rules! integers {
    ($($method:ident $type:ty,)*) => {$(
        fn $method(self, value: $type) -> Result<(), JsonError> {
            write_number(i64::from(value), self.out);
            Ok(())
        }
    )*};
}

impl<'w, 'a> Serializer for &'w mut Writer<'a> {
    type Ok = ();
    type Error = JsonError;
    type SerializeSeq = Compound<'w, 'a>;
    type SerializeTuple = Compound<'w, 'a>;
    type SerializeTupleStruct = Compound<'w, 'a>;
    type SerializeTupleVariant = Never;
    type SerializeMap = Compound<'w, 'a>;
    type SerializeStruct = Compound<'w, 'a>;
    type SerializeStructVariant = Never;

    integers! { serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, }

    fn serialize_u64(self, value: u64) -> Result<(), JsonError> {
        self.out.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }
    fn serialize_bool(self, value: bool) -> Result<(), JsonError> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }
    fn serialize_f32(self, value: f32) -> Result<(), JsonError> {
        self.serialize_f64(f64::from(value))
    }
    fn serialize_f64(self, value: f64) -> Result<(), JsonError> {
        if value.is_finite() {
            self.out.extend_from_slice(format!("{value:?}").as_bytes());
        } else {
            self.out.extend_from_slice(b"null");
        }
        Ok(())
    }
    fn serialize_char(self, value: char) -> Result<(), JsonError> {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }
    fn serialize_str(self, value: &str) -> Result<(), JsonError> {
        self.text(value);
        Ok(())
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<(), JsonError> {
        unwritable("bytes")
    }
    fn serialize_none(self) -> Result<(), JsonError> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), JsonError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), JsonError> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), JsonError> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), JsonError> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), JsonError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), JsonError> {
        unwritable("enum variant with data")
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'w, 'a>, JsonError> {
        Ok(Compound::open(self, b'[', b']'))
    }
    fn serialize_tuple(self, _: usize) -> Result<Compound<'w, 'a>, JsonError> {
        Ok(Compound::open(self, b'[', b']'))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'w, 'a>, JsonError> {
        Ok(Compound::open(self, b'[', b']'))
    }
    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, JsonError> {
        unwritable("enum variant with data")
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'w, 'a>, JsonError> {
        Ok(Compound::open(self, b'{', b'}'))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'w, 'a>, JsonError> {
        Ok(Compound::open(self, b'{', b'}'))
    }
    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, JsonError> {
        unwritable("enum variant with data")
    }
}

macro_rules! elements {
    ($($trait:ident $method:ident,)*) => {$(
        impl $trait for Compound<'_, '_> {
            type Ok = ();
            type Error = JsonError;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
                self.element(value)
            }
            fn end(self) -> Result<(), JsonError> {
                self.close();
                Ok(())
            }
        }
    )*};
}

elements! { SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field, }

impl SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = JsonError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        self.comma();
        self.writer.key(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        self.member_value(value)
    }
    fn end(self) -> Result<(), JsonError> {
        self.close();
        Ok(())
    }
}

impl SerializeStruct for Compound<'_, '_> {
    type Ok = ();
    type Error = JsonError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), JsonError> {
        self.comma();
        write_text(key, self.writer.out);
        self.member_value(value)
    }
    fn end(self) -> Result<(), JsonError> {
        self.close();
        Ok(())
    }
}

/// The compound that is never opened: enum variants with data occur in no body.
pub(super) enum Never {}

impl SerializeTupleVariant for Never {
    type Ok = ();
    type Error = JsonError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), JsonError> {
        match *self {}
    }
    fn end(self) -> Result<(), JsonError> {
        match self {}
    }
}

impl SerializeStructVariant for Never {
    type Ok = ();
    type Error = JsonError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, _: &T) -> Result<(), JsonError> {
        match *self {}
    }
    fn end(self) -> Result<(), JsonError> {
        match self {}
    }
}
