//! Parsed values to types, with fastjson's conversions.

use serde::de::value::{CowStrDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use std::borrow::Cow;

use super::parse::{Value, parse};
use crate::error::JsonError;

impl serde::de::Error for JsonError {
    fn custom<T: std::fmt::Display>(detail: T) -> Self {
        Self::Shape { detail: detail.to_string() }
    }
}

/// Deserialises a value, converting where Java would.
pub(super) struct Lenient<'a>(pub(super) Value<'a>);

impl<'a> Lenient<'a> {
    fn integer(self) -> Result<i64, JsonError> {
        match self.0 {
            Value::Number(text) | Value::Text(text) => whole(text.trim()).ok_or_else(|| shape("number", &text)),
            Value::Null => Ok(0),
            Value::Bool(value) => Ok(i64::from(value)),
            other => Err(shape("number", &other.into_text())),
        }
    }

    fn real(self) -> Result<f64, JsonError> {
        match self.0 {
            Value::Number(text) | Value::Text(text) => text.trim().parse().map_err(|_| shape("number", &text)),
            Value::Null => Ok(0.0),
            other => Err(shape("number", &other.into_text())),
        }
    }

    fn truth(self) -> Result<bool, JsonError> {
        match self.0 {
            Value::Bool(value) => Ok(value),
            Value::Null => Ok(false),
            Value::Number(text) => Ok(whole(&text) == Some(1)),
            Value::Text(text) => Ok(text.trim().eq_ignore_ascii_case("true") || text.trim() == "1"),
            other => Err(shape("boolean", &other.into_text())),
        }
    }

    /// Members of an object, or of one that is held as text inside a text (Java reads map keys so).
    fn members(self) -> Result<Vec<(Value<'a>, Value<'a>)>, JsonError> {
        match self.0 {
            Value::Object(members) => Ok(members),
            Value::Null => Ok(Vec::new()),
            Value::Text(text) => match parse(&text)? {
                Value::Object(members) => {
                    Ok(members.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
                }
                _ => Err(shape("object", &text)),
            },
            other => Err(shape("object", &other.into_text())),
        }
    }
}

/// A whole number, also from a text such as `1.0`.
fn whole(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    let real = text.parse::<f64>().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates; Java's does too")]
    real.is_finite().then_some(real as i64)
}

fn shape(expected: &str, text: &str) -> JsonError {
    let text: String = text.chars().take(64).collect();
    JsonError::Shape { detail: format!("expected a {expected}, found {text:?}") }
}

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'_, str>, visitor: V) -> Result<V::Value, JsonError> {
    match text {
        Cow::Borrowed(text) => visitor.visit_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty = $name:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
            let number = self.integer()?;
            visitor.$visit(<$type>::try_from(number).map_err(|_| shape($name, &number.to_string()))?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Lenient<'_> {
    type Error = JsonError;

    integers! {
        deserialize_i8 visit_i8 i8 = "8-bit number", deserialize_i16 visit_i16 i16 = "16-bit number", deserialize_i32 visit_i32 i32 = "32-bit number", deserialize_i64 visit_i64 i64 = "64-bit number",
        deserialize_u8 visit_u8 u8 = "small number", deserialize_u16 visit_u16 u16 = "small number", deserialize_u32 visit_u32 u32 = "positive number", deserialize_u64 visit_u64 u64 = "positive number",
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(text) => match text.parse::<i64>() {
                Ok(number) => visitor.visit_i64(number),
                Err(_) => visitor.visit_f64(text.parse().map_err(|_| shape("number", &text))?),
            },
            Value::Text(text) => visit_text(text, visitor),
            Value::Array(elements) => visitor.visit_seq(Elements(elements.into_iter())),
            Value::Object(members) => visitor.visit_map(Members::of_map(members)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_bool(self.truth()?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_f64(self.real()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_f64(self.real()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visit_text(self.0.into_text(), visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visit_text(self.0.into_text(), visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visit_text(self.0.into_text(), visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visit_text(self.0.into_text(), visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Value::Array(elements) => visitor.visit_seq(Elements(elements.into_iter())),
            Value::Null => visitor.visit_seq(Elements(Vec::new().into_iter())),
            other => Err(shape("array", &other.into_text())),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, JsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_map(Members::of_map(self.members()?))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_map(Members::of_struct(self.members()?, fields))
    }

    /// By name in any case, or by ordinal: C++ clients send ordinals, Go clients names of their own spelling.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let text = self.0.into_text();
        let by_name = variants.iter().find(|name| name.eq_ignore_ascii_case(&text));
        let by_ordinal = || text.trim().parse::<usize>().ok().and_then(|ordinal| variants.get(ordinal));
        let name = by_name.or_else(by_ordinal).ok_or_else(|| JsonError::unknown_variant(&text, variants))?;
        visitor.visit_enum(Variant(name))
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, JsonError> {
        Err(shape("text", "bytes"))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _: V) -> Result<V::Value, JsonError> {
        Err(shape("text", "bytes"))
    }
}

struct Elements<'a>(std::vec::IntoIter<Value<'a>>);

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = JsonError;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonError> {
        self.0.next().map(|value| seed.deserialize(Lenient(value))).transpose()
    }
}

/// The members of an object, without the null ones: what is null takes the default, as what is absent does.
struct Members<'a> {
    rest: std::vec::IntoIter<(Value<'a>, Value<'a>)>,
    value: Option<Value<'a>>,
}

impl<'a> Members<'a> {
    fn of_map(mut members: Vec<(Value<'a>, Value<'a>)>) -> Self {
        members.retain(|(key, value)| !matches!(key, Value::Null) && !matches!(value, Value::Null));
        Self { rest: members.into_iter(), value: None }
    }

    /// The known members only, each once: the last one wins, and names match in any case.
    fn of_struct(members: Vec<(Value<'a>, Value<'a>)>, fields: &'static [&'static str]) -> Self {
        let mut chosen: Vec<Option<Value<'a>>> = vec![None; fields.len()];
        for (key, value) in members {
            let (Value::Text(key), false) = (key, matches!(value, Value::Null)) else { continue };
            let exact = fields.iter().position(|field| *field == key);
            let place = exact.or_else(|| fields.iter().position(|field| field.eq_ignore_ascii_case(&key)));
            if let Some(place) = place {
                chosen[place] = Some(value);
            }
        }
        let known: Vec<_> = fields
            .iter()
            .zip(chosen)
            .filter_map(|(field, value)| value.map(|value| (Value::Text((*field).into()), value)))
            .collect();
        Self { rest: known.into_iter(), value: None }
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        match key {
            // The common case, without the conversions.
            Value::Text(text) if !text.starts_with('{') && text.parse::<i64>().is_err() => {
                let text: CowStrDeserializer<'_, JsonError> = text.into_deserializer();
                seed.deserialize(text).map(Some)
            }
            other => seed.deserialize(Lenient(other)).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        let value = self.value.take().ok_or_else(|| JsonError::custom("value asked for before its key"))?;
        seed.deserialize(Lenient(value))
    }
}

struct Variant(&'static str);

impl<'de> EnumAccess<'de> for Variant {
    type Error = JsonError;
    type Variant = Unit;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Unit), JsonError> {
        let name: StrDeserializer<'de, JsonError> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, Unit))
    }
}

struct Unit;

impl<'de> serde::de::VariantAccess<'de> for Unit {
    type Error = JsonError;
    fn unit_variant(self) -> Result<(), JsonError> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, JsonError> {
        Err(shape("plain enum", "variant with data"))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, JsonError> {
        Err(shape("plain enum", "variant with data"))
    }
    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, JsonError> {
        Err(shape("plain enum", "variant with data"))
    }
}
