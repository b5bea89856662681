//! The JSON header. Written strictly, keys sorted as Java's are; read as leniently as Java does.

mod plain;

use super::{Command, ExtFields, Flag, Language, Serialization};
use crate::error::FrameError;

use crate::json::{Value, parse, write_number, write_text};
use crate::lossy::lossy;

/// Appends the header.
pub(super) fn write(command: &Command, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"code\":");
    write_number(i64::from(command.code), out);
    // Java brokers look ext fields up without asking whether there are any, so a request always has them.
    if !command.is_response() || !command.ext_fields.is_empty() {
        write_ext(&command.ext_fields, out);
    }
    out.extend_from_slice(b",\"flag\":");
    write_number(i64::from(command.flag.0), out);
    out.extend_from_slice(b",\"language\":\"");
    out.extend_from_slice(command.language.name().as_bytes());
    out.extend_from_slice(b"\",\"opaque\":");
    write_number(i64::from(command.opaque), out);
    if let Some(remark) = &command.remark {
        out.extend_from_slice(b",\"remark\":");
        write_text(remark, out);
    }
    out.extend_from_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    write_number(i64::from(command.version), out);
    out.push(b'}');
}

fn write_ext(fields: &ExtFields, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"extFields\":{");
    for (index, (key, value)) in fields.bytes().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        write_text(value, out);
    }
    out.push(b'}');
}

/// Reads the header.
pub(super) fn read(header: &[u8]) -> Result<Command, FrameError> {
    let header = lossy(header);
    match plain::read(&header) {
        Some(command) => Ok(command),
        None => read_any(&header),
    }
}

/// Reads what Java would read.
fn read_any(header: &str) -> Result<Command, FrameError> {
    let Value::Object(members) = parse(header)? else { return Err(FrameError::NotAnObject) };
    let mut command = java_command();
    for (key, value) in members {
        member(&mut command, &key.into_text(), value)?;
    }
    Ok(command)
}

/// What a header without members says.
fn java_command() -> Command {
    Command { language: Language::Java, version: 0, serialization: Serialization::Json, ..Command::blank() }
}

fn member(command: &mut Command, key: &str, value: Value<'_>) -> Result<(), FrameError> {
    if key.eq_ignore_ascii_case("code") {
        command.code = number(&value, "code")?;
    } else if key.eq_ignore_ascii_case("extFields") {
        command.ext_fields = ext_fields(value)?;
    } else if key.eq_ignore_ascii_case("flag") {
        command.flag = Flag(number(&value, "flag")?);
    } else if key.eq_ignore_ascii_case("language") {
        command.language = language(value)?;
    } else if key.eq_ignore_ascii_case("opaque") {
        command.opaque = number(&value, "opaque")?;
    } else if key.eq_ignore_ascii_case("remark") {
        command.remark = match value {
            Value::Null => None,
            other => Some(other.into_text().into_owned()),
        };
    } else if key.eq_ignore_ascii_case("version") {
        command.version = number(&value, "version")?;
    }
    Ok(())
}

fn number(value: &Value<'_>, member: &'static str) -> Result<i32, FrameError> {
    match value {
        Value::Null => Ok(0),
        Value::Number(text) | Value::Text(text) => text.trim().parse().map_err(|_| FrameError::Member { member }),
        _ => Err(FrameError::Member { member }),
    }
}

fn language(value: Value<'_>) -> Result<Language, FrameError> {
    match value {
        Value::Null => Ok(Language::Other),
        Value::Text(name) => Ok(Language::from_name(&name)),
        Value::Number(text) => Ok(text.parse().map_or(Language::Other, Language::from_code)),
        _ => Err(FrameError::Member { member: "language" }),
    }
}

fn ext_fields(value: Value<'_>) -> Result<ExtFields, FrameError> {
    match value {
        Value::Null => Ok(ExtFields::new()),
        // A null value stays absent, everything else becomes its text.
        Value::Object(members) => Ok(members
            .into_iter()
            .filter(|(_, value)| !matches!(value, Value::Null))
            .map(|(key, value)| (key.into_text(), value.into_text()))
            .collect()),
        _ => Err(FrameError::Member { member: "extFields" }),
    }
}
