//! Text to tokens, one at a time: what nobody asks for is not looked at.
use crate::error::FilterError;

/// A token; texts and names as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(Keyword),
    Name(&'a str),
    /// Without a point, without the `L` at its end.
    Whole(&'a str),
    /// With a point or an exponent.
    Real(&'a str),
    /// Between its quotes, each quote in it twice.
    Text(&'a str),
    Symbol(&'static str),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    Not,
    And,
    Or,
    Between,
    In,
    True,
    False,
    Null,
    Is,
    Contains,
    StartsWith,
    EndsWith,
}

const KEYWORDS: [(&str, Keyword); 12] = [
    ("NOT", Keyword::Not),
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("BETWEEN", Keyword::Between),
    ("IN", Keyword::In),
    ("TRUE", Keyword::True),
    ("FALSE", Keyword::False),
    ("NULL", Keyword::Null),
    ("IS", Keyword::Is),
    ("CONTAINS", Keyword::Contains),
    ("STARTSWITH", Keyword::StartsWith),
    ("ENDSWITH", Keyword::EndsWith),
];

/// Longer ones first.
const SYMBOLS: [&str; 11] = ["<>", ">=", "<=", "=", ">", "<", "(", ")", ",", "+", "-"];

/// Reads a text from its front.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Tokens<'a> {
        Tokens { text, at: 0 }
    }

    /// The next token with the byte at which it begins.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), FilterError> {
        self.skip();
        let at = self.at;
        let rest = &self.text[at..];
        let Some(first) = rest.bytes().next() else { return Ok((Token::End, at)) };
        let (token, bytes) = match first {
            b'\'' => {
                let inner = quoted(&rest[1..]).ok_or(FilterError::OpenText { at })?;
                (Token::Text(&rest[1..=inner]), inner + 2)
            }
            b'0'..=b'9' | b'.' => number(rest).ok_or(FilterError::Character { at, found: '.' })?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => word(rest),
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => (Token::Symbol(symbol), symbol.len()),
                None => {
                    let found = rest.chars().next().expect("not empty");
                    return Err(FilterError::Character { at, found });
                }
            },
        };
        self.at += bytes;
        Ok((token, at))
    }

    /// Passes over spaces and comments. A comment without an end is none.
    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let bytes = match rest.as_bytes() {
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0C, ..] => Some(1),
                [b'-', b'-', ..] => rest.find(['\n', '\r']).map(|end| end + 1),
                [b'/', b'*', ..] => rest[2..].find("*/").map(|end| end + 4),
                _ => None,
            };
            let Some(bytes) = bytes else { return };
            self.at += bytes;
        }
    }
}

/// Bytes up to the quote that ends the text. A quote after a quote goes on with it, unless the text then has no end.
fn quoted(rest: &str) -> Option<usize> {
    let mut end = None;
    let mut quotes = rest.bytes().enumerate().filter(|(_, byte)| *byte == b'\'').map(|(at, _)| at);
    while let Some(quote) = quotes.next() {
        end = Some(quote);
        if rest.as_bytes().get(quote + 1) != Some(&b'\'') {
            break;
        }
        quotes.next();
    }
    end
}

fn word(rest: &str) -> (Token<'_>, usize) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    let bytes = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    let word = &rest[..bytes];
    let keyword = KEYWORDS.iter().find(|(text, _)| text.eq_ignore_ascii_case(word));
    (keyword.map_or(Token::Name(word), |(_, keyword)| Token::Word(*keyword)), bytes)
}

/// The longest number at the front; none: a point without digits.
fn number(rest: &str) -> Option<(Token<'_>, usize)> {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let before = digits(0);
    let has_point = rest.as_bytes().get(before) == Some(&b'.');
    let after = if has_point { digits(before + 1) } else { 0 };
    if before + after == 0 {
        return None;
    }
    let plain = before + usize::from(has_point) + after;
    let exponent = exponent(&rest[plain..], &digits, plain);
    if has_point || exponent > 0 {
        return Some((Token::Real(&rest[..plain + exponent]), plain + exponent));
    }
    // A zero at the front is a number of its own.
    let bytes = if rest.starts_with('0') { 1 } else { before };
    let has_suffix = !rest.starts_with('0') && matches!(rest.as_bytes().get(bytes), Some(b'l' | b'L'));
    Some((Token::Whole(&rest[..bytes]), bytes + usize::from(has_suffix)))
}

/// Bytes of an exponent at the front.
fn exponent(rest: &str, digits: &impl Fn(usize) -> usize, at: usize) -> usize {
    let sign = match rest.as_bytes() {
        [b'e' | b'E', b'+' | b'-', ..] => 1,
        [b'e' | b'E', ..] => 0,
        _ => return 0,
    };
    match digits(at + 1 + sign) {
        0 => 0,
        count => 1 + sign + count,
    }
}
