//! The text of an expression, which parses to the same expression.
use super::expression::{Expression, Literal, Node, Sense};
use std::fmt::{self, Display, Formatter};

/// Keywords in capitals, every operand that is an operation in brackets.
impl Display for Expression {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.root.fmt(out)
    }
}

impl Display for Node {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Node::Literal(literal) => literal.fmt(out),
            Node::Property(name) | Node::Truth(name) => out.write_str(name),
            Node::Negate(operand) => write!(out, "-{}", Operand(operand)),
            Node::Not(operand) => write!(out, "NOT {}", Operand(operand)),
            Node::And(operands) => chain(out, " AND ", operands),
            Node::Or(operands) => chain(out, " OR ", operands),
            Node::Equal(sides) => chain(out, " = ", &sides[..]),
            Node::NotEqual(sides) => chain(out, " <> ", &sides[..]),
            Node::Order(order, sides) => {
                write!(out, "{} {} {}", Operand(&sides[0]), order.symbol(), Operand(&sides[1]))
            }
            Node::IsNull(value, sense) => write!(out, "{} IS {sense}NULL", Operand(value)),
            Node::Between(parts, sense) => {
                let [value, low, high] = &**parts;
                write!(out, "{} {sense}BETWEEN {} AND {}", Operand(value), Operand(low), Operand(high))
            }
            Node::In { property, texts, sense } => {
                write!(out, "{property} {sense}IN (")?;
                for (number, text) in texts.iter().enumerate() {
                    if number > 0 {
                        out.write_str(", ")?;
                    }
                    quoted(out, text)?;
                }
                out.write_str(")")
            }
            Node::Search { value, place, text, sense } => {
                write!(out, "{} {sense}{} ", Operand(value), place.keyword())?;
                quoted(out, text)
            }
        }
    }
}

impl Display for Literal {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Text(text) => quoted(out, text),
            Literal::Int(number) => number.fmt(out),
            Literal::Long(number) => number.fmt(out),
            // With a point or an exponent, always.
            Literal::Double(number) => write!(out, "{number:?}"),
            Literal::Bool(true) => out.write_str("TRUE"),
            Literal::Bool(false) => out.write_str("FALSE"),
            Literal::Null => out.write_str("NULL"),
        }
    }
}

impl Display for Sense {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Sense::Plain => "",
            Sense::Opposite => "NOT ",
        })
    }
}

/// A node as a part of another one.
struct Operand<'a>(&'a Node);

impl Display for Operand<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            simple @ (Node::Literal(_) | Node::Property(_) | Node::Truth(_)) => simple.fmt(out),
            operation => write!(out, "({operation})"),
        }
    }
}

fn chain(out: &mut Formatter<'_>, between: &str, operands: &[Node]) -> fmt::Result {
    for (number, operand) in operands.iter().enumerate() {
        if number > 0 {
            out.write_str(between)?;
        }
        Operand(operand).fmt(out)?;
    }
    Ok(())
}

fn quoted(out: &mut Formatter<'_>, text: &str) -> fmt::Result {
    write!(out, "'{}'", text.replace('\'', "''"))
}
