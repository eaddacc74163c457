//! Quotas per token for a limited resource: connections, streams.
//!
//! Each token has a limit. At the limit of all tokens together, a token that holds fewer than another evicts from the
//! one that holds most. So neither one token nor several can lock out the others.

use std::fmt;

use crate::by_source::{BySource, Id};

/// Limits per token and for all tokens together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenQuotaLimits {
    /// Limit of one token.
    pub per_token: usize,
    /// Limit of all tokens together.
    pub total: usize,
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// The limit of one token.
    Token(usize),
    /// The limit of all tokens together; no token has more than this one would, so none can be evicted from.
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

/// Resources held by tokens.
#[derive(Debug)]
pub struct TokenQuotas {
    limits: TokenQuotaLimits,
    pub(crate) held: BySource<String>,
}

impl TokenQuotas {
    /// Nothing is held.
    pub fn new(limits: TokenQuotaLimits) -> Self {
        Self { limits, held: BySource::default() }
    }

    /// Gives one to a token, or returns the limit exceeded. Returns the id evicted for it, if any.
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

    /// Releases one.
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
        // (tokens in order of acquisition; the result of the last)
        for (takers, expected) in [
            ("a", Ok(None)),
            ("aaa", Ok(None)),
            ("aaaa", Err(QuotaExceeded::Token(3))),
            ("aaab", Ok(None)),
            ("aaabb", Ok(None)),
            // The third token's first: evicts the oldest of the token with three.
            ("aaabbc", Ok(Some(0))),
            // The second token would then have as many as the first.
            ("aaabbb", Err(QuotaExceeded::All(5))),
            ("aabbcd", Ok(Some(0))),
            ("abcdef", Err(QuotaExceeded::All(5))),
        ] {
            let mut quotas = TokenQuotas::new(limits);
            let answers: Vec<_> = takers
                .chars()
                .enumerate()
                .map(|(id, token)| quotas.acquire(id as Id, &token.to_string()))
                .collect();
            assert_eq!(answers.last(), Some(&expected), "{takers}");
        }
    }

    #[test]
    fn held_id_moves_between_tokens_and_is_released() {
        let mut quotas = TokenQuotas::new(TokenQuotaLimits { per_token: 2, total: 2 });
        assert_eq!([quotas.acquire(1, "a"), quotas.acquire(2, "a"), quotas.acquire(1, "a")], [Ok(None); 3]);
        assert_eq!(quotas.acquire(1, "b"), Ok(None), "the total stays the same");
        assert_eq!(quotas.acquire(3, "c"), Err(QuotaExceeded::All(2)));
        quotas.remove(2);
        assert_eq!(quotas.acquire(3, "c"), Ok(None));
        assert_eq!([2, 3].map(|id| quotas.held.source(id).is_some()), [false, true]);
    }
}
