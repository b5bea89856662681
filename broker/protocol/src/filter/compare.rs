//! How two values compare (`ComparisonExpression.__compare`).
use super::expression::Literal;
use std::cmp::Ordering;

/// What an operand gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Int(i32),
    Long(i64),
    Double(f64),
    Bool(bool),
}

/// Two values that cannot be compared: Apache's evaluation ends with an exception, and the message does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Incomparable;

impl<'a> Value<'a> {
    /// The value of a literal; none for null.
    pub(super) fn of(literal: &'a Literal) -> Option<Value<'a>> {
        Some(match literal {
            Literal::Text(text) => Value::Text(text),
            Literal::Int(number) => Value::Int(*number),
            Literal::Long(number) => Value::Long(*number),
            Literal::Double(number) => Value::Double(*number),
            Literal::Bool(truth) => Value::Bool(*truth),
            Literal::Null => return None,
        })
    }
}

/// Numbers of different types meet in the wider one; a text becomes what it meets. A boolean, and what is no boolean beside one, is less
/// than anything else.
pub(super) fn compare(left: Value<'_>, right: Value<'_>) -> Result<Ordering, Incomparable> {
    use Value::{Bool, Double, Int, Long, Text};
    Ok(match (left, right) {
        (Text(left), Text(right)) => left.cmp(right),
        (Int(left), Int(right)) => left.cmp(&right),
        (Long(left), Long(right)) => left.cmp(&right),
        (Double(left), Double(right)) => doubles(left, right),
        (Bool(left), Bool(right)) => left.cmp(&right),
        (Int(left), Long(right)) => i64::from(left).cmp(&right),
        (Long(left), Int(right)) => left.cmp(&i64::from(right)),
        (Int(left), Double(right)) => doubles(f64::from(left), right),
        (Double(left), Int(right)) => doubles(left, f64::from(right)),
        (Long(left), Double(right)) => doubles(widened(left), right),
        (Double(left), Long(right)) => doubles(left, widened(right)),
        (Text(left), Int(right)) => int(left)?.cmp(&right),
        (Int(left), Text(right)) => left.cmp(&int(right)?),
        (Text(left), Long(right)) => long(left)?.cmp(&right),
        (Long(left), Text(right)) => left.cmp(&long(right)?),
        (Text(left), Double(right)) => doubles(double(left)?, right),
        (Double(left), Text(right)) => doubles(left, double(right)?),
        (Text(left), Bool(right)) => left.eq_ignore_ascii_case("true").cmp(&right),
        // A cast of the wrong operand in `__compare`.
        (Bool(_), Text(_)) => return Err(Incomparable),
        (Bool(_), _) | (_, Bool(_)) => Ordering::Less,
    })
}

/// As [`compare`], with two texts compared as numbers (`ComparisonExpression.evaluate`).
pub(super) fn compare_order(left: Value<'_>, right: Value<'_>) -> Result<Ordering, Incomparable> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Ok(doubles(double(left)?, double(right)?)),
        _ => compare(left, right),
    }
}

/// `Double.compare`: no number is above all numbers, and minus zero is below zero.
fn doubles(left: f64, right: f64) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.total_cmp(&right),
        (left, right) => left.cmp(&right),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as Java widens a long")]
fn widened(number: i64) -> f64 {
    number as f64
}

fn int(text: &str) -> Result<i32, Incomparable> {
    text.parse().map_err(|_| Incomparable)
}

fn long(text: &str) -> Result<i64, Incomparable> {
    text.parse().map_err(|_| Incomparable)
}

/// `Double.valueOf`, without its hexadecimal form: spaces around, a type's letter at the end, and two words.
fn double(text: &str) -> Result<f64, Incomparable> {
    let text = text.trim_matches(|letter| letter <= ' ');
    let (negative, number) = match text.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match number {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        // Not the words that Rust takes for numbers, nor a second sign.
        _ if number.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            let digits = number.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(number);
            digits.parse().map_err(|_| Incomparable)?
        }
        _ => return Err(Incomparable),
    };
    Ok(if negative { -value } else { value })
}
