//! What each token may hold of something that there is a limited number of: connections, streams.
//!
//! A token has a limit of its own. Where all tokens together have reached theirs, a token that has fewer than another
//! takes from the one that has most. So the holder of one token cannot lock out the others, nor can several.

use std::fmt;

use crate::by_source::{BySource, Id};

/// How many a token may hold, and all tokens together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareLimits {
    /// Of one token.
    pub per_token: usize,
    /// Of all tokens together.
    pub in_all: usize,
}

/// Why a token gets no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The token holds as many as one may.
    Token(usize),
    /// All tokens together do, and none holds more than this one would.
    All(usize),
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Token(limit) => write!(f, "{limit} of one token"),
            Excess::All(limit) => write!(f, "{limit} of all tokens together"),
        }
    }
}

/// What tokens hold.
#[derive(Debug)]
pub struct Shares {
    limits: ShareLimits,
    pub(crate) held: BySource<String>,
}

impl Shares {
    /// Nothing is held yet.
    pub fn new(limits: ShareLimits) -> Self {
        Self { limits, held: BySource::default() }
    }

    /// Gives one to a token, or says why not. Answers which one is closed for it, if one is.
    pub fn take(&mut self, id: Id, token: &str) -> Result<Option<Id>, Excess> {
        if self.held.source(id).is_some_and(|holder| holder == token) {
            return Ok(None);
        }
        let own = self.held.count(&token.to_owned());
        if own >= self.limits.per_token {
            return Err(Excess::Token(self.limits.per_token));
        }
        let closed = match self.held.len() - usize::from(self.held.source(id).is_some()) {
            held if held < self.limits.in_all => None,
            _ => match self.held.oldest_of_most(None, |_| true) {
                Some((oldest, most)) if most > own + 1 => Some(oldest),
                Some(_) | None => return Err(Excess::All(self.limits.in_all)),
            },
        };
        if let Some(closed) = closed {
            self.held.remove(closed);
        }
        self.held.insert(id, token.to_owned());
        Ok(closed)
    }

    /// Takes one back.
    pub fn remove(&mut self, id: Id) {
        self.held.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_limit_and_takes_from_the_one_that_has_most() {
        let limits = ShareLimits { per_token: 3, in_all: 5 };
        // (who takes, in this order; the answer to the last)
        for (takers, expected) in [
            ("a", Ok(None)),
            ("aaa", Ok(None)),
            ("aaaa", Err(Excess::Token(3))),
            ("aaab", Ok(None)),
            ("aaabb", Ok(None)),
            // The third token's first: taken from the one with three, its oldest.
            ("aaabbc", Ok(Some(0))),
            // The second token would then have as many as the first.
            ("aaabbb", Err(Excess::All(5))),
            ("aabbcd", Ok(Some(0))),
            ("abcdef", Err(Excess::All(5))),
        ] {
            let mut shares = Shares::new(limits);
            let answers: Vec<_> = takers
                .chars()
                .enumerate()
                .map(|(id, token)| shares.take(id as Id, &token.to_string()))
                .collect();
            assert_eq!(answers.last(), Some(&expected), "{takers}");
        }
    }

    #[test]
    fn one_that_is_held_is_moved_to_another_token_and_given_back() {
        let mut shares = Shares::new(ShareLimits { per_token: 2, in_all: 2 });
        assert_eq!([shares.take(1, "a"), shares.take(2, "a"), shares.take(1, "a")], [Ok(None); 3]);
        assert_eq!(shares.take(1, "b"), Ok(None), "the whole number stays the same");
        assert_eq!(shares.take(3, "c"), Err(Excess::All(2)));
        shares.remove(2);
        assert_eq!(shares.take(3, "c"), Ok(None));
        assert_eq!([2, 3].map(|id| shares.held.source(id).is_some()), [false, true]);
    }
}
