//! What an expression is made of.

/// A filter over the properties of a message, as parsed from its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Gives true, false or null.
    pub(super) root: Node,
}

impl Expression {
    /// Bytes of the longest text.
    pub const LENGTH_MAX: usize = 64 << 10;
    /// Operations inside each other, at most. A chain of `AND` or of `OR` is one.
    pub const DEPTH_MAX: usize = 100;
}

/// An operation or an operand.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Literal(Literal),
    Property(String),
    /// A property where true or false is asked for.
    Truth(String),
    Negate(Box<Node>),
    Not(Box<Node>),
    /// Two operands or more, from the left.
    And(Vec<Node>),
    /// As above.
    Or(Vec<Node>),
    Equal(Box<[Node; 2]>),
    NotEqual(Box<[Node; 2]>),
    Order(Order, Box<[Node; 2]>),
    IsNull(Box<Node>, Sense),
    /// Value, low and high end, both included.
    Between(Box<[Node; 3]>, Sense),
    In {
        property: String,
        texts: Vec<String>,
        sense: Sense,
    },
    Search {
        value: Box<Node>,
        place: Place,
        text: String,
        sense: Sense,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Text(String),
    Int(i32),
    Long(i64),
    Double(f64),
    Bool(bool),
    Null,
}

/// Whether there is a `NOT` inside the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    Plain,
    Opposite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// Where a text is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    Start,
    End,
}

impl Node {
    /// Whether this gives true, false or null by its form (`BooleanExpression`).
    pub(super) fn is_boolean(&self) -> bool {
        match self {
            Node::Literal(literal) => matches!(literal, Literal::Bool(_) | Literal::Null),
            Node::Property(_) | Node::Negate(_) => false,
            _ => true,
        }
    }
}

impl Order {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Order::Greater => ">",
            Order::GreaterOrEqual => ">=",
            Order::Less => "<",
            Order::LessOrEqual => "<=",
        }
    }
}

impl Place {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Place::Anywhere => "CONTAINS",
            Place::Start => "STARTSWITH",
            Place::End => "ENDSWITH",
        }
    }
}
