//! Request and response codes of the remoting protocol.

mod request;
mod response;

pub use request::RequestCode;
pub use response::ResponseCode;

/// Declares an enum of numbered codes with its conversions; RocketMQ's own constant name is kept for logs.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i32)]
        pub enum $name {
            $($(#[$variant_doc])* #[doc = $text] $variant = $value,)*
        }

        impl $name {
            /// Every code, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code with this number, if there is one.
            #[must_use]
            pub const fn from_i32(value: i32) -> Option<Self> {
                match value {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The number on the wire.
            #[must_use]
            pub const fn as_i32(self) -> i32 {
                self as i32
            }

            /// RocketMQ's name of the constant.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", self.name(), self.as_i32())
            }
        }
    };
}

use codes;

#[cfg(test)]
mod tests {
    use super::{RequestCode, ResponseCode};

    #[test]
    fn numbers_and_codes_agree() {
        for code in RequestCode::ALL {
            assert_eq!(RequestCode::from_i32(code.as_i32()), Some(*code));
        }
        for code in ResponseCode::ALL {
            assert_eq!(ResponseCode::from_i32(code.as_i32()), Some(*code));
        }
        assert_eq!(RequestCode::from_i32(9999), None);
        assert_eq!(RequestCode::SendMessageV2.to_string(), "SEND_MESSAGE_V2(310)");
        assert_eq!(ResponseCode::PullNotFound.to_string(), "PULL_NOT_FOUND(19)");
    }
}
