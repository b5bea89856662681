//! What an expression gives for the properties of a message.
use super::compare::{Incomparable, Value, compare, compare_order};
use super::expression::{Expression, Node, Order, Place, Sense};
use crate::Properties;
use crate::error::EvaluationError;
use std::cmp::Ordering;

/// True, false, or null.
type Truth = Option<bool>;

impl Expression {
    /// True, false, or none for null.
    ///
    /// # Errors
    /// A property cannot become what it is compared with.
    pub fn evaluate(&self, properties: &Properties) -> Result<Option<bool>, EvaluationError> {
        truth(&self.root, properties).map_err(|Incomparable| EvaluationError)
    }

    /// Whether a message with these properties is wanted: not if the expression gives null, or fails.
    #[must_use]
    pub fn matches(&self, properties: &Properties) -> bool {
        self.evaluate(properties) == Ok(Some(true))
    }
}

fn truth(node: &Node, properties: &Properties) -> Result<Truth, Incomparable> {
    Ok(match node {
        // A text is not a boolean, whatever it says.
        Node::Truth(name) => properties.get(name).map(|_| false),
        Node::Not(operand) => truth(operand, properties)?.map(|value| !value),
        Node::And(operands) => chain(operands, properties, false)?,
        Node::Or(operands) => chain(operands, properties, true)?,
        Node::Equal(sides) => equal(sides, properties)?,
        Node::NotEqual(sides) => equal(sides, properties)?.map(|value| !value),
        Node::Order(order, sides) => ordered(*order, &sides[0], &sides[1], properties)?,
        Node::IsNull(operand, sense) => Some(sense.of(value(operand, properties)?.is_none())),
        Node::Between(parts, sense) => between(parts, *sense, properties)?,
        Node::In { property, texts, sense } => {
            let text = properties.get(property);
            text.map(|text| sense.of(texts.iter().any(|wanted| wanted == text)))
        }
        Node::Search { value: searched, place, text, sense } => Some(match value(searched, properties)? {
            Some(Value::Text(found)) if !text.is_empty() => sense.of(place.has(found, text)),
            _ => false,
        }),
        Node::Literal(_) | Node::Property(_) | Node::Negate(_) => match value(node, properties)? {
            None => None,
            Some(Value::Bool(truth)) => Some(truth),
            Some(_) => return Err(Incomparable),
        },
    })
}

fn value<'a>(node: &'a Node, properties: &'a Properties) -> Result<Option<Value<'a>>, Incomparable> {
    Ok(match node {
        Node::Literal(literal) => Value::of(literal),
        Node::Property(name) => properties.get(name).map(Value::Text),
        // The number of a text is not looked for (`UnaryExpression.createNegate`).
        Node::Negate(operand) => match value(operand, properties)? {
            Some(Value::Int(number)) => Some(Value::Int(number.wrapping_neg())),
            Some(Value::Long(number)) => Some(Value::Long(number.wrapping_neg())),
            Some(Value::Double(number)) => Some(Value::Double(-number)),
            Some(Value::Text(_) | Value::Bool(_)) | None => None,
        },
        node => truth(node, properties)?.map(Value::Bool),
    })
}

/// `AND` (false decides) or `OR` (true decides); null if nothing decides and one operand is null (`LogicExpression`).
fn chain(operands: &[Node], properties: &Properties, deciding: bool) -> Result<Truth, Incomparable> {
    let mut result = Some(!deciding);
    for operand in operands {
        match truth(operand, properties)? {
            Some(value) if value == deciding => return Ok(Some(deciding)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn equal(sides: &[Node; 2], properties: &Properties) -> Result<Truth, Incomparable> {
    let (left, right) = (value(&sides[0], properties)?, value(&sides[1], properties)?);
    Ok(match (left, right) {
        (None, None) => Some(true),
        (None, Some(_)) => None,
        (Some(_), None) => Some(false),
        (Some(left), Some(right)) => Some(compare(left, right)?.is_eq()),
    })
}

fn ordered(order: Order, left: &Node, right: &Node, properties: &Properties) -> Result<Truth, Incomparable> {
    let Some(left) = value(left, properties)? else { return Ok(None) };
    let Some(right) = value(right, properties)? else { return Ok(None) };
    Ok(Some(order.holds(compare_order(left, right)?)))
}

/// `value >= low AND value <= high`, or `value < low OR value > high`.
fn between(parts: &[Node; 3], sense: Sense, properties: &Properties) -> Result<Truth, Incomparable> {
    let [value, low, high] = parts;
    let (first, second, deciding) = match sense {
        Sense::Plain => (Order::GreaterOrEqual, Order::LessOrEqual, false),
        Sense::Opposite => (Order::Less, Order::Greater, true),
    };
    let above = ordered(first, value, low, properties)?;
    if above == Some(deciding) {
        return Ok(above);
    }
    let below = ordered(second, value, high, properties)?;
    Ok(if below == Some(deciding) { below } else { above.and(below) })
}

impl Sense {
    fn of(self, truth: bool) -> bool {
        truth == (self == Sense::Plain)
    }
}

impl Order {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Order::Greater => ordering.is_gt(),
            Order::GreaterOrEqual => ordering.is_ge(),
            Order::Less => ordering.is_lt(),
            Order::LessOrEqual => ordering.is_le(),
        }
    }
}

impl Place {
    fn has(self, text: &str, part: &str) -> bool {
        match self {
            Place::Anywhere => text.contains(part),
            Place::Start => text.starts_with(part),
            Place::End => text.ends_with(part),
        }
    }
}
