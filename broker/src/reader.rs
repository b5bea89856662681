//! Reads typed values out of a [`RawConfig`], and remembers which keys exist: so unknown keys are found, and the dump of a
//! configuration is the list of what was really read.
use crate::error::ConfigError;
use crate::raw::{RawConfig, RawValue};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

pub(crate) struct Reader<'a> {
    raw: &'a RawConfig,
    /// Every key asked for, with the value in force.
    read: RefCell<BTreeMap<&'static str, String>>,
}

impl<'a> Reader<'a> {
    pub fn new(raw: &'a RawConfig) -> Reader<'a> {
        Reader { raw, read: RefCell::default() }
    }

    /// The value of `key` by `parse`, or `absent` if the file does not have it or leaves it empty.
    fn get<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        absent: T,
        parse: impl Fn(&str) -> Option<T>,
        show: impl Fn(&T) -> String,
    ) -> Result<T, ConfigError> {
        let value = match self.raw.get(key).filter(|value| !value.text.is_empty()) {
            None => absent,
            Some(value) => parse(&value.text).ok_or_else(|| refused(key, value, expected))?,
        };
        self.read.borrow_mut().insert(key, show(&value));
        Ok(value)
    }

    pub fn text(&self, key: &'static str, absent: &str) -> String {
        let value = self
            .raw
            .get(key)
            .filter(|value| !value.text.is_empty())
            .map_or(absent, |value| value.text.as_str())
            .to_owned();
        self.read.borrow_mut().insert(key, value.clone());
        value
    }

    pub fn flag(&self, key: &'static str, absent: bool) -> Result<bool, ConfigError> {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        self.get(key, "true or false", absent, parse, bool::to_string)
    }

    pub fn number(
        &self,
        key: &'static str,
        absent: i64,
        range: RangeInclusive<i64>,
        expected: &'static str,
    ) -> Result<i64, ConfigError> {
        self.get(key, expected, absent, |text| text.parse().ok().filter(|value| range.contains(value)), i64::to_string)
    }

    pub fn millis(&self, key: &'static str, absent: Duration) -> Result<Duration, ConfigError> {
        let parse =
            |text: &str| text.parse().ok().filter(|ms| (1..=31_536_000_000).contains(ms)).map(Duration::from_millis);
        self.get(key, "milliseconds, 1 or more", absent, parse, |value| value.as_millis().to_string())
    }

    pub fn ip(&self, key: &'static str) -> Result<Option<IpAddr>, ConfigError> {
        self.get(
            key,
            "an IP address",
            None,
            |text| text.parse().ok().map(Some),
            |value| value.map_or(String::new(), |ip: IpAddr| ip.to_string()),
        )
    }

    /// One address `host:port`.
    pub fn address(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        let parse = |text: &str| is_host_and_port(text).then(|| Some(text.to_owned()));
        self.get(key, "host:port", None, parse, |value| value.clone().unwrap_or_default())
    }

    pub fn port(&self, key: &'static str, absent: u16) -> Result<u16, ConfigError> {
        self.get(key, "a port, 0 to 65535", absent, |text| text.parse().ok(), u16::to_string)
    }

    /// Addresses `host:port`, separated by `;`.
    pub fn addresses(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        let parse = |text: &str| {
            let list: Vec<String> =
                text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
            list.iter().all(|address| is_host_and_port(address)).then_some(list)
        };
        self.get(key, "host:port, several separated by ;", Vec::new(), parse, |list| list.join(";"))
    }

    /// One of the names in `names`.
    pub fn one_of<T: Copy + PartialEq>(
        &self,
        key: &'static str,
        names: &[(&'static str, T)],
        absent: T,
        expected: &'static str,
    ) -> Result<T, ConfigError> {
        let parse = |text: &str| names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        let show =
            |value: &T| names.iter().find(|(_, of)| of == value).map_or(String::new(), |(name, _)| (*name).to_owned());
        self.get(key, expected, absent, parse, show)
    }

    /// Delay levels: numbers with the unit s, m, h or d, separated by blanks.
    pub fn delay_levels(&self, key: &'static str, absent: &str) -> Result<Vec<Duration>, ConfigError> {
        let parse = |text: &str| {
            let levels: Vec<Duration> = text.split_whitespace().map(delay).collect::<Option<_>>()?;
            (!levels.is_empty() && levels.len() <= 64).then_some((levels, text.to_owned()))
        };
        let standard = parse(absent).expect("the built-in levels are well-formed");
        Ok(self.get(key, "delays such as 1s 5m 2h", standard, parse, |(_, text)| text.clone())?.0)
    }

    /// Hours of the day, separated by `;`.
    pub fn hours(&self, key: &'static str, absent: &str) -> Result<BTreeSet<u8>, ConfigError> {
        let parse = |text: &str| {
            let hour = |part: &str| part.trim().parse().ok().filter(|hour: &u8| *hour < 24);
            let hours = text.split(';').filter(|part| !part.trim().is_empty()).map(hour).collect::<Option<_>>()?;
            Some((hours, text.to_owned()))
        };
        let standard = parse(absent).expect("the built-in hour is well-formed");
        Ok(self
            .get(key, "hours of the day, 0 to 23, several separated by ;", standard, parse, |(_, text)| text.clone())?
            .0)
    }

    /// Refuses a setting that asks for what is not built: every value but `only` is an error.
    pub fn must_be(&self, key: &'static str, only: &str) -> Result<(), ConfigError> {
        match self.raw.get(key) {
            Some(value) if !value.text.is_empty() && !value.text.eq_ignore_ascii_case(only) => {
                Err(ConfigError::NotBuilt { key: key.to_owned(), value: value.text.clone(), line: value.line })
            }
            _ => {
                self.read.borrow_mut().insert(key, only.to_owned());
                Ok(())
            }
        }
    }

    /// The error of a value that is wrong together with others.
    pub fn refuse(&self, key: &'static str, expected: &'static str) -> ConfigError {
        match self.raw.get(key) {
            Some(value) => refused(key, value, expected),
            None => {
                let value = self.read.borrow().get(key).cloned().unwrap_or_default();
                ConfigError::Value { key: key.to_owned(), value, line: None, expected }
            }
        }
    }

    /// Keys of the file that nobody asked for.
    pub fn unknown(&self) -> Vec<String> {
        let read = self.read.borrow();
        self.raw.entries().map(|(key, _)| key).filter(|key| !read.contains_key(key)).map(str::to_owned).collect()
    }

    /// Every setting in force, a line each, by name.
    pub fn dump(&self) -> String {
        let mut out = String::new();
        for (key, value) in self.read.borrow().iter() {
            writeln!(out, "{key}={value}").expect("writing to a string");
        }
        out
    }
}

fn refused(key: &str, value: &RawValue, expected: &'static str) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), value: value.text.clone(), line: value.line, expected }
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn delay(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    (number <= 1_000_000).then(|| Duration::from_secs(number * seconds))
}
