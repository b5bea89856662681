//! Tokens to an expression, by recursive descent with a bounded depth.
use super::compare::{Value, compare};
use super::expression::{Expression, Literal, Node, Order, Place, Sense};
use super::token::{Keyword, Token, Tokens};
use crate::error::FilterError;
use std::cmp::Ordering;

/// Brackets and signs inside each other, at most: room for the text of the deepest expression.
const NESTED_MAX: usize = 2 * Expression::DEPTH_MAX + 2;
/// Characters of a token that an error shows.
const SHOWN_MAX: usize = 40;

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong, and the byte at which it begins.
    pub fn parse(text: &str) -> Result<Expression, FilterError> {
        if text.len() > Expression::LENGTH_MAX {
            return Err(FilterError::TooLong { bytes: text.len(), limit: Expression::LENGTH_MAX });
        }
        let mut tokens = Tokens::of(text);
        let (token, at) = tokens.next()?;
        let mut parser = Parser { tokens, token, at, nested: 0 };
        let root = parser.either()?;
        Ok(Expression { root: truth(root)?.node })
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    /// The next token, and where it begins.
    token: Token<'a>,
    at: usize,
    nested: usize,
}

/// A node with the byte at which it begins, and how deep it is.
struct Part {
    node: Node,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<(Token<'a>, usize), FilterError> {
        let (token, at) = self.tokens.next()?;
        Ok((std::mem::replace(&mut self.token, token), std::mem::replace(&mut self.at, at)))
    }

    /// Takes the next token if it is the one.
    fn took(&mut self, token: Token<'_>) -> Result<bool, FilterError> {
        let is_it = self.token == token;
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    fn took_word(&mut self, word: Keyword) -> Result<bool, FilterError> {
        self.took(Token::Word(word))
    }

    fn demand(&mut self, token: Token<'_>, expected: &'static str) -> Result<(), FilterError> {
        if self.took(token)? { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &'static str) -> FilterError {
        FilterError::Token { at: self.at, found: shown(self.token), expected }
    }

    fn either(&mut self) -> Result<Part, FilterError> {
        self.chain(Keyword::Or, Node::Or, Self::both)
    }

    fn both(&mut self) -> Result<Part, FilterError> {
        self.chain(Keyword::And, Node::And, Self::equality)
    }

    fn chain(
        &mut self,
        word: Keyword,
        make: fn(Vec<Node>) -> Node,
        operand: fn(&mut Self) -> Result<Part, FilterError>,
    ) -> Result<Part, FilterError> {
        let first = operand(self)?;
        if self.token != Token::Word(word) {
            return Ok(first);
        }
        let first = truth(first)?;
        let (at, mut depth) = (first.at, first.depth);
        let mut operands = vec![first.node];
        while self.took_word(word)? {
            let next = truth(operand(self)?)?;
            depth = depth.max(next.depth);
            operands.push(next.node);
        }
        Part::over(at, depth, make(operands))
    }

    fn equality(&mut self) -> Result<Part, FilterError> {
        let mut left = self.comparison()?;
        loop {
            left = match self.token {
                Token::Symbol("=") => self.equal("=", left, Node::Equal)?,
                Token::Symbol("<>") => self.equal("<>", left, Node::NotEqual)?,
                Token::Word(Keyword::Is) => {
                    self.advance()?;
                    let sense = self.sense()?;
                    self.demand(Token::Word(Keyword::Null), "NULL")?;
                    Part::over(left.at, left.depth, Node::IsNull(Box::new(left.node), sense))?
                }
                _ => return Ok(left),
            }
        }
    }

    /// Null is equal to nothing, and a boolean literal to no literal of another type (`checkEqualOperand`,
    /// `checkEqualOperandCompatability`).
    fn equal(
        &mut self,
        symbol: &'static str,
        left: Part,
        make: fn(Box<[Node; 2]>) -> Node,
    ) -> Result<Part, FilterError> {
        self.advance()?;
        let right = self.comparison()?;
        for side in [&left, &right] {
            if side.node == Node::Literal(Literal::Null) {
                return Err(side.not_comparable(symbol));
            }
        }
        if let (Node::Literal(Literal::Bool(_)), Node::Literal(other)) = (&left.node, &right.node)
            && !matches!(other, Literal::Bool(_))
        {
            return Err(right.not_comparable(symbol));
        }
        Part::over(left.at, left.depth.max(right.depth), make(Box::new([left.node, right.node])))
    }

    fn comparison(&mut self) -> Result<Part, FilterError> {
        let mut left = self.unary()?;
        loop {
            left = match self.token {
                Token::Symbol(">") => self.order(Order::Greater, left)?,
                Token::Symbol(">=") => self.order(Order::GreaterOrEqual, left)?,
                Token::Symbol("<") => self.order(Order::Less, left)?,
                Token::Symbol("<=") => self.order(Order::LessOrEqual, left)?,
                Token::Word(
                    Keyword::Not
                    | Keyword::Contains
                    | Keyword::StartsWith
                    | Keyword::EndsWith
                    | Keyword::Between
                    | Keyword::In,
                ) => self.worded(left)?,
                _ => return Ok(left),
            }
        }
    }

    fn order(&mut self, order: Order, left: Part) -> Result<Part, FilterError> {
        self.advance()?;
        let right = self.unary()?;
        let left = left.orderable(order.symbol())?;
        let right = right.orderable(order.symbol())?;
        Part::over(left.at, left.depth.max(right.depth), Node::Order(order, Box::new([left.node, right.node])))
    }

    /// An operator that is a word, with or without `NOT`.
    fn worded(&mut self, left: Part) -> Result<Part, FilterError> {
        let sense = self.sense()?;
        let place = match self.token {
            Token::Word(Keyword::Contains) => Place::Anywhere,
            Token::Word(Keyword::StartsWith) => Place::Start,
            Token::Word(Keyword::EndsWith) => Place::End,
            Token::Word(Keyword::Between) => return self.between(left, sense),
            Token::Word(Keyword::In) => return self.within(left, sense),
            _ => return Err(self.unexpected("an operator")),
        };
        self.advance()?;
        let text = self.text()?;
        let value = Box::new(left.node);
        Part::over(left.at, left.depth, Node::Search { value, place, text, sense })
    }

    fn sense(&mut self) -> Result<Sense, FilterError> {
        Ok(if self.took_word(Keyword::Not)? { Sense::Opposite } else { Sense::Plain })
    }

    /// The ends of a `BETWEEN` are in order if both are literals (`ComparisonExpression.createBetween`); those of a `NOT BETWEEN` need not.
    fn between(&mut self, value: Part, sense: Sense) -> Result<Part, FilterError> {
        self.advance()?;
        let low = self.unary()?;
        self.demand(Token::Word(Keyword::And), "AND")?;
        let high = self.unary()?;
        let [value, low, high] = [value.orderable("BETWEEN")?, low.orderable("BETWEEN")?, high.orderable("BETWEEN")?];
        if let (Node::Literal(lowest), Node::Literal(highest)) = (&low.node, &high.node)
            && sense == Sense::Plain
            && let (Some(lowest), Some(highest)) = (Value::of(lowest), Value::of(highest))
            && compare(highest, lowest) == Ok(Ordering::Less)
        {
            return Err(FilterError::Range { at: low.at, low: low.node.to_string(), high: high.node.to_string() });
        }
        let depth = value.depth.max(low.depth).max(high.depth);
        Part::over(value.at, depth, Node::Between(Box::new([value.node, low.node, high.node]), sense))
    }

    fn within(&mut self, value: Part, sense: Sense) -> Result<Part, FilterError> {
        self.advance()?;
        self.demand(Token::Symbol("("), "(")?;
        let mut texts = vec![self.text()?];
        while self.took(Token::Symbol(","))? {
            texts.push(self.text()?);
        }
        self.demand(Token::Symbol(")"), ")")?;
        match value.node {
            Node::Property(property) => Part::over(value.at, value.depth, Node::In { property, texts, sense }),
            other => Err(FilterError::NoProperty { at: value.at, found: cut(&other.to_string()) }),
        }
    }

    fn unary(&mut self) -> Result<Part, FilterError> {
        let is_operator = matches!(self.token, Token::Symbol("+" | "-") | Token::Word(Keyword::Not));
        if !is_operator {
            return self.primary();
        }
        let (operator, at) = self.advance()?;
        let operand = self.nest(at, Self::unary)?;
        match operator {
            Token::Symbol("-") => Part::over(at, operand.depth, Node::Negate(Box::new(operand.node))),
            Token::Word(_) => {
                let operand = truth(operand)?;
                Part::over(at, operand.depth, Node::Not(Box::new(operand.node)))
            }
            _ => Ok(operand),
        }
    }

    /// Goes one level deeper.
    fn nest(&mut self, at: usize, inner: fn(&mut Self) -> Result<Part, FilterError>) -> Result<Part, FilterError> {
        if self.nested == NESTED_MAX {
            return Err(FilterError::TooDeep { at, limit: Expression::DEPTH_MAX });
        }
        self.nested += 1;
        let part = inner(self)?;
        self.nested -= 1;
        Ok(part)
    }

    fn primary(&mut self) -> Result<Part, FilterError> {
        if self.token == Token::Symbol("(") {
            let (_, at) = self.advance()?;
            let inner = self.nest(at, Self::either)?;
            self.demand(Token::Symbol(")"), ")")?;
            return Ok(inner);
        }
        let at = self.at;
        let node = match self.token {
            Token::Name(name) => Node::Property(name.to_owned()),
            Token::Text(text) => Node::Literal(Literal::Text(unquoted(text))),
            Token::Whole(digits) => Node::Literal(whole(digits, at)?),
            Token::Real(digits) => Node::Literal(real(digits, at)?),
            Token::Word(Keyword::True) => Node::Literal(Literal::Bool(true)),
            Token::Word(Keyword::False) => Node::Literal(Literal::Bool(false)),
            Token::Word(Keyword::Null) => Node::Literal(Literal::Null),
            _ => return Err(self.unexpected("a property, a literal or (")),
        };
        self.advance()?;
        Ok(Part { node, at, depth: 0 })
    }

    fn text(&mut self) -> Result<String, FilterError> {
        let Token::Text(text) = self.token else { return Err(self.unexpected("a text in quotes")) };
        self.advance()?;
        Ok(unquoted(text))
    }
}

impl Part {
    /// An operation on parts of that depth.
    fn over(at: usize, depth: usize, node: Node) -> Result<Part, FilterError> {
        if depth == Expression::DEPTH_MAX {
            return Err(FilterError::TooDeep { at, limit: Expression::DEPTH_MAX });
        }
        Ok(Part { node, at, depth: depth + 1 })
    }

    fn not_comparable(&self, operator: &'static str) -> FilterError {
        FilterError::NotComparable { at: self.at, found: cut(&self.node.to_string()), operator }
    }

    /// Only numbers, and what may be one (`checkLessThanOperand`).
    fn orderable(self, operator: &'static str) -> Result<Part, FilterError> {
        let is_text = matches!(self.node, Node::Literal(Literal::Text(_)));
        if is_text || self.node.is_boolean() { Err(self.not_comparable(operator)) } else { Ok(self) }
    }
}

/// The part where true or false is asked for (`asBooleanExpression`).
fn truth(part: Part) -> Result<Part, FilterError> {
    match part.node {
        Node::Property(name) => Ok(Part { node: Node::Truth(name), ..part }),
        node if node.is_boolean() => Ok(Part { node, ..part }),
        node => Err(FilterError::NoTruth { at: part.at, found: cut(&node.to_string()) }),
    }
}

/// An `Integer` if it fits, else a `Long` (`ConstantExpression.createFromDecimal`).
fn whole(digits: &str, at: usize) -> Result<Literal, FilterError> {
    let number: i64 = digits.parse().map_err(|_| FilterError::Number { at, found: cut(digits) })?;
    Ok(i32::try_from(number).map_or(Literal::Long(number), Literal::Int))
}

/// Above zero and finite (`ConstantExpression.createFloat`).
fn real(digits: &str, at: usize) -> Result<Literal, FilterError> {
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(Literal::Double(number)),
        _ => Err(FilterError::Number { at, found: cut(digits) }),
    }
}

fn unquoted(text: &str) -> String {
    text.replace("''", "'")
}

fn shown(token: Token<'_>) -> String {
    match token {
        Token::Word(word) => format!("{word:?}").to_ascii_uppercase(),
        Token::Name(text) | Token::Whole(text) | Token::Real(text) => cut(text),
        Token::Text(text) => format!("'{}'", cut(text)),
        Token::Symbol(symbol) => symbol.to_owned(),
        Token::End => "the end".to_owned(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
