//! Who sent a command: language and version.

use serde::{Deserialize, Serialize};

/// What the sender is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Language {
    Java = 0,
    Cpp = 1,
    DotNet = 2,
    Python = 3,
    Delphi = 4,
    Erlang = 5,
    Ruby = 6,
    Other = 7,
    Http = 8,
    Go = 9,
    Php = 10,
    Oms = 11,
    Rust = 12,
    #[serde(rename = "NODE_JS")]
    NodeJs = 13,
}

impl Language {
    const ALL: [Self; 14] = [
        Self::Java,
        Self::Cpp,
        Self::DotNet,
        Self::Python,
        Self::Delphi,
        Self::Erlang,
        Self::Ruby,
        Self::Other,
        Self::Http,
        Self::Go,
        Self::Php,
        Self::Oms,
        Self::Rust,
        Self::NodeJs,
    ];

    /// RocketMQ's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Java => "JAVA",
            Self::Cpp => "CPP",
            Self::DotNet => "DOTNET",
            Self::Python => "PYTHON",
            Self::Delphi => "DELPHI",
            Self::Erlang => "ERLANG",
            Self::Ruby => "RUBY",
            Self::Other => "OTHER",
            Self::Http => "HTTP",
            Self::Go => "GO",
            Self::Php => "PHP",
            Self::Oms => "OMS",
            Self::Rust => "RUST",
            Self::NodeJs => "NODE_JS",
        }
    }

    /// The number in the binary header.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The language with this number; one that we do not know becomes [`Language::Other`].
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Other)
    }

    /// The language with this name in any case; one that we do not know becomes [`Language::Other`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "RUST" => Self::Rust,
            "JAVA" => Self::Java,
            // Nearly all peers are one of these two; the others are looked for one by one.
            _ => Self::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(name)).unwrap_or(Self::Other),
        }
    }
}

/// The version we send: that of the RocketMQ whose wire we speak, 5.3.3. Peers switch features on by it.
pub const VERSION: i32 = 479;

/// Ordinal of 4.0.0; from there on the ordinals follow the version digits.
const V4_0_0: i32 = 213;

/// The release that an ordinal stands for, such as `5.3.3`; `None` before 4.0.0 and behind 5.9.9.
#[must_use]
pub fn version_name(version: i32) -> Option<String> {
    if !(V4_0_0..=V4_0_0 + 2 * 199).contains(&version) {
        return None;
    }
    let half_steps = version - V4_0_0;
    // Each release is preceded by its snapshot, so odd distances are snapshots of the release above.
    let release = (half_steps + 1) / 2;
    let (major, minor, patch) = (4 + release / 100, release / 10 % 10, release % 10);
    let snapshot = if half_steps % 2 == 1 { "-SNAPSHOT" } else { "" };
    Some(format!("{major}.{minor}.{patch}{snapshot}"))
}

#[cfg(test)]
mod tests {
    use super::{Language, VERSION, version_name};

    #[test]
    fn ordinals_follow_the_releases() {
        for (ordinal, name) in [
            (213, "4.0.0"),
            (232, "4.1.0-SNAPSHOT"),
            (317, "4.5.2"),
            (409, "4.9.8"),
            (413, "5.0.0"),
            (VERSION, "5.3.3"),
            (611, "5.9.9"),
        ] {
            assert_eq!(version_name(ordinal).as_deref(), Some(name));
        }
        assert_eq!(version_name(212), None);
        assert_eq!(version_name(612), None);
        assert_eq!(version_name(i32::MIN), None);
    }

    #[test]
    fn unknown_languages_become_other() {
        for language in Language::ALL {
            assert_eq!(Language::from_code(language.code()), language);
            assert_eq!(Language::from_name(&language.name().to_lowercase()), language);
        }
        assert_eq!(Language::from_code(200), Language::Other);
        assert_eq!(Language::from_name("COBOL"), Language::Other);
    }
}
