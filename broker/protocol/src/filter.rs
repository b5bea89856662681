//! Filters over the properties of a message: the SQL92 expressions of a subscription, and the bloom filter that says before a message is
//! read for which groups it was stored.
//!
//! [`Expression`] accepts what Apache's `SelectorParser` accepts and gives what its expression classes give. What surprises there is so
//! here too, because an expression must mean the same at every broker:
//!
//! - What follows a whole expression is not read, except for its first token: `a = 1 b` is `a = 1`, `a LIKE 'x'` is `a`, and `a = 0x10` is
//!   `a = 0` (`SelectorParser.JmsSelector` does not ask for the end).
//! - Keywords have no case, names do. There is no arithmetic, no `LIKE`, and no number in hexadecimal or octal.
//! - A line comment needs its line's end; without one `--` is two signs. `0.0` is refused (`ConstantExpression.createFloat`).
//! - `NOT` binds to the next operand: `NOT a = 1` is `(NOT a) = 1`.
//! - A property alone is never true: it is a text, or null without one (`UnaryExpression.createBooleanCast`).
//! - The text of a property becomes what it is compared with, and if it cannot, the whole evaluation fails, whatever stands beside
//!   (`ComparisonExpression.__compare`): `a > 1` fails for `1.5` and `3000000000`, which are no `Integer`. So does `TRUE = a`.
//! - `=` with null on its left is null, on its right false, on both sides true (`ComparisonExpression.doCreateEqual`).
//! - `CONTAINS`, `STARTSWITH`, `ENDSWITH` and their opposites are false for null and for an empty search.
//!
//! Where this is stricter: the length and the depth of an expression are limited ([`Expression::LENGTH_MAX`],
//! [`Expression::DEPTH_MAX`]), and a property is a number only in ASCII digits and without Java's hexadecimal exponents.

mod bits;
mod bloom;
mod compare;
mod evaluate;
mod expression;
mod murmur;
mod parser;
mod print;
mod token;

pub use bits::BitsArray;
pub use bloom::{BloomFilter, BloomFilterData};
pub use expression::Expression;
