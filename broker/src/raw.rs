//! The text of a configuration file: Java's properties format, read into keys and values that remember their lines.
use crate::error::ConfigError;
use std::collections::BTreeMap;

/// One value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawValue {
    pub text: String,
    /// Line of the file, from 1; `None` for a value given on the command line or by a program.
    pub line: Option<usize>,
}

/// Keys and values as text, nothing interpreted. A key given twice has its last value, as Java's reader has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawConfig {
    values: BTreeMap<String, RawValue>,
}

impl RawConfig {
    /// Reads `key=value` lines with `#` and `!` comments, `=`, `:` or blanks as separator, `\` continuations and `\uXXXX` escapes.
    /// A line without a separator, a control character or a bad escape is damage, and named by its line.
    pub fn parse(text: &str) -> Result<RawConfig, ConfigError> {
        let mut config = RawConfig::default();
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
        while let Some((at, first)) = lines.next() {
            let line = at + 1;
            let mut logical = first.trim_start().to_owned();
            if logical.is_empty() || logical.starts_with(['#', '!']) {
                continue;
            }
            while ends_in_continuation(&logical) {
                logical.pop();
                match lines.next() {
                    Some((_, next)) => logical.push_str(next.trim_start()),
                    None => return Err(ConfigError::EndsInContinuation { line }),
                }
            }
            let (key, value) = split(&logical, line)?;
            config.values.insert(key, RawValue { text: value, line: Some(line) });
        }
        Ok(config)
    }

    /// Sets a value over the file's: command line and programs.
    pub fn set(&mut self, key: &str, value: &str) {
        self.values.insert(key.to_owned(), RawValue { text: value.to_owned(), line: None });
    }

    pub(crate) fn get(&self, key: &str) -> Option<&RawValue> {
        self.values.get(key)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// An odd number of backslashes at the end joins the next line.
fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

fn split(logical: &str, line: usize) -> Result<(String, String), ConfigError> {
    if let Some(found) = logical.chars().find(|c| c.is_control() && *c != '\t' && *c != '\u{c}') {
        return Err(ConfigError::ControlCharacter { line, code: found as u32 });
    }
    let mut escaped = false;
    let end = logical.char_indices().find(|&(_, c)| {
        let separates = !escaped && matches!(c, '=' | ':' | ' ' | '\t' | '\u{c}');
        escaped = c == '\\' && !escaped;
        separates
    });
    let Some((end, _)) = end else {
        return Err(ConfigError::NoSeparator { line, text: logical.chars().take(40).collect() });
    };
    let rest = logical[end..].trim_start_matches([' ', '\t', '\u{c}']);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    let key = unescape(&logical[..end], line)?;
    if key.is_empty() {
        return Err(ConfigError::NoKey { line });
    }
    Ok((key, unescape(rest.trim(), line)?))
}

fn unescape(text: &str, line: usize) -> Result<String, ConfigError> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('u') => out.push(unicode(&mut chars).ok_or(ConfigError::BadEscape { line })?),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some(other) => out.push(other),
            None => return Err(ConfigError::BadEscape { line }),
        }
    }
    Ok(out)
}

fn unicode(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let mut code = 0;
    for _ in 0..4 {
        code = code * 16 + chars.next()?.to_digit(16)?;
    }
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::RawConfig;

    fn check(text: &str, expected: &[(&str, &str, usize)]) {
        let config = RawConfig::parse(text).expect("well-formed");
        let got: Vec<_> = config.entries().map(|(k, v)| (k, v.text.as_str(), v.line.expect("from text"))).collect();
        assert_eq!(got, expected, "{text:?}");
    }

    fn refuse(text: &str, expected: &str) {
        assert_eq!(RawConfig::parse(text).expect_err("damaged").to_string(), expected, "{text:?}");
    }

    #[test]
    fn properties_as_java_reads_them() {
        check("", &[]);
        check("# c\n! c\n\n  a = 1 \nb:2\nc 3\n", &[("a", "1", 4), ("b", "2", 5), ("c", "3", 6)]);
        check("a=1\r\na=2\r\n", &[("a", "2", 2)]);
        check("a=b=c", &[("a", "b=c", 1)]);
        check("a=", &[("a", "", 1)]);
        check("a=x\\\n   y\nb=1", &[("a", "xy", 1), ("b", "1", 3)]);
        check("n=\\u00e4\\\\ \\t", &[("n", "ä\\ \t", 1)]);
        check("\u{feff}a=1", &[("a", "1", 1)]);
    }

    #[test]
    fn damage_is_named_by_its_line() {
        refuse("a=1\nbrokerName", "line 2: \"brokerName\" is no key=value");
        refuse("=1", "line 1: a value without a key");
        refuse("a=\\u00g0", "line 1: damaged \\ escape");
        refuse("a=1\\", "line 1: the file ends in a continued line");
        refuse("a=\u{0}", "line 1: control character 0x0");
    }
}
