//! What each token may hold of something that there is a limited number of: connections, streams.
//!
//! A token has a limit of its own. Where all tokens together have reached theirs, a token that has fewer than another
//! takes from the one that has most. So the holder of one token cannot lock out the others, nor can several.

use std::fmt;

use crate::by_source::{BySource, Id};

/// How many a token may hold, and all tokens together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenQuotaLimits {
    /// Of one token.
    pub per_token: usize,
    /// Of all tokens together.
    pub total: usize,
}

/// Why a token gets no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// The token holds as many as one may.
    Token(usize),
    /// All tokens together do, and none holds more than this one would.
    All(usize),
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotaExceeded::Token(limit) => write!(f, "{limit} of one token"),
            QuotaExceeded::All(limit) => write!(f, "{limit} of all tokens together"),
        }
    }
}

/// What tokens hold.
#[derive(Debug)]
pub struct TokenQuotas {
    limits: TokenQuotaLimits,
    pub(crate) held: BySource<String>,
}

impl TokenQuotas {
    /// Nothing is held yet.
    pub fn new(limits: TokenQuotaLimits) -> Self {
        Self { limits, held: BySource::default() }
    }

    /// Gives one to a token, or says why not. Answers which one is closed for it, if one is.
    pub fn acquire(&mut self, id: Id, token: &str) -> Result<Option<Id>, QuotaExceeded> {
        if self.held.source(id).is_some_and(|holder| holder == token) {
            return Ok(None);
        }
        let own = self.held.count(&token.to_owned());
        if own >= self.limits.per_token {
            return Err(QuotaExceeded::Token(self.limits.per_token));
        }
        let closed = match self.held.len() - usize::from(self.held.source(id).is_some()) {
            held if held < self.limits.total => None,
            _ => match self.held.oldest_of_largest(None, |_| true) {
                Some((oldest, most)) if most > own + 1 => Some(oldest),
                Some(_) | None => return Err(QuotaExceeded::All(self.limits.total)),
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
    fn full_quota_evicts_from_largest_token() {
        let limits = TokenQuotaLimits { per_token: 3, total: 5 };
        // (who takes, in this order; the answer to the last)
        for (takers, expected) in [
            ("a", Ok(None)),
            ("aaa", Ok(None)),
            ("aaaa", Err(QuotaExceeded::Token(3))),
            ("aaab", Ok(None)),
            ("aaabb", Ok(None)),
            // The third token's first: taken from the one with three, its oldest.
            ("aaabbc", Ok(Some(0))),
            // The second token would then have as many as the first.
            ("aaabbb", Err(QuotaExceeded::All(5))),
            ("aabbcd", Ok(Some(0))),
            ("abcdef", Err(QuotaExceeded::All(5))),
        ] {
            let mut shares = TokenQuotas::new(limits);
            let answers: Vec<_> = takers
                .chars()
                .enumerate()
                .map(|(id, token)| shares.acquire(id as Id, &token.to_string()))
                .collect();
            assert_eq!(answers.last(), Some(&expected), "{takers}");
        }
    }

    #[test]
    fn held_id_moves_between_tokens_and_is_released() {
        let mut shares = TokenQuotas::new(TokenQuotaLimits { per_token: 2, total: 2 });
        assert_eq!([shares.acquire(1, "a"), shares.acquire(2, "a"), shares.acquire(1, "a")], [Ok(None); 3]);
        assert_eq!(shares.acquire(1, "b"), Ok(None), "the whole number stays the same");
        assert_eq!(shares.acquire(3, "c"), Err(QuotaExceeded::All(2)));
        shares.remove(2);
        assert_eq!(shares.acquire(3, "c"), Ok(None));
        assert_eq!([2, 3].map(|id| shares.held.source(id).is_some()), [false, true]);
    }
}
