//! Callers of the operator API that a follower does not know: which of them it refuses itself, and how many reach the
//! leader. Pure.
//!
//! A follower has all tokens in its view, but a token may be so new that the view does not have it yet. The view is proof
//! against a token once the follower has shown every commit before the request: when a heartbeat that it sent after
//! the request came has returned through its watch, within about a second. So a caller with an unknown token waits, with its
//! body unread, for its token or for this proof. Such callers take no place of others, cost neither the leader nor
//! the store anything, and are as many as the listener has connections for them.
//!
//! A sign-in by a code is the one request that only the leader can judge. Codes are tried at a limited rate for each source
//! ([`SignInLimit`](crate::sessions::SignInLimit)), and each source has a share of the places ([`SharedPlaces`]).

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use notbefore_listener::by_source::source_of;

/// What a follower does with a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Known,
    /// The token does not exist.
    Unknown,
    /// The token may be newer than the view: look again.
    Wait,
}

/// Judges a caller whose request came at `came_at`. `has_token` is read from the view after `watched_at`, the time before
/// which the view has every commit. Times are the monotonic clock.
pub fn judge(has_token: bool, watched_at: Option<Duration>, came_at: Duration) -> Verdict {
    match (has_token, watched_at) {
        (true, _) => Verdict::Known,
        // Not at the same reading: the clock's resolution is coarse.
        (false, Some(watched_at)) if watched_at > came_at => Verdict::Unknown,
        (false, Some(_) | None) => Verdict::Wait,
    }
}

/// Places that callers share fairly: one source gets only a part of them.
#[derive(Debug)]
pub struct SharedPlaces {
    max: usize,
    per_source_max: usize,
    used: usize,
    /// Sources with a place; addresses that are not known are one source.
    by_source: HashMap<Option<IpAddr>, usize>,
}

impl SharedPlaces {
    pub fn new(max: usize, per_source_max: usize) -> Self {
        Self { max, per_source_max, used: 0, by_source: HashMap::new() }
    }

    /// Takes a place; at a limit, returns that limit. The caller releases the place with the same address.
    pub fn acquire(&mut self, from: Option<IpAddr>) -> Result<(), usize> {
        let source = from.map(source_of);
        let of_source = self.by_source.get(&source).copied().unwrap_or(0);
        if of_source >= self.per_source_max {
            return Err(self.per_source_max);
        }
        if self.used >= self.max {
            return Err(self.max);
        }
        self.used += 1;
        self.by_source.insert(source, of_source + 1);
        Ok(())
    }

    pub fn release(&mut self, from: Option<IpAddr>) {
        let source = from.map(source_of);
        let Some(of_source) = self.by_source.get_mut(&source) else { return };
        self.used -= 1;
        *of_source -= 1;
        if *of_source == 0 {
            self.by_source.remove(&source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_token_is_refused_when_the_view_has_every_commit_before_the_request() {
        let ms = Duration::from_millis;
        for (has_token, watched_at, verdict) in [
            (true, None, Verdict::Known),
            (true, Some(ms(90)), Verdict::Known),
            (false, None, Verdict::Wait),
            (false, Some(ms(90)), Verdict::Wait),
            (false, Some(ms(100)), Verdict::Wait),
            (false, Some(ms(110)), Verdict::Unknown),
        ] {
            assert_eq!(judge(has_token, watched_at, ms(100)), verdict, "{has_token} {watched_at:?}");
        }
    }

    #[test]
    fn no_source_takes_more_than_its_share_of_the_places() {
        let address = |text: &str| Some(text.parse().unwrap());
        let mut places = SharedPlaces::new(5, 2);
        let mut taken = |from, times| (0..times).filter(|_| places.acquire(from).is_ok()).count();
        assert_eq!(taken(address("10.0.0.1"), 9), 2);
        assert_eq!((taken(address("fd00::1"), 9), taken(address("fd00::2"), 9)), (2, 0), "one network");
        assert_eq!((taken(None, 9), taken(address("10.0.0.2"), 9)), (1, 0), "all places are taken");
        assert_eq!(places.acquire(address("10.0.0.1")), Err(2));
        assert_eq!(places.acquire(address("10.0.0.2")), Err(5));
        places.release(address("fd00::2"));
        assert_eq!(places.acquire(address("10.0.0.2")), Ok(()));
        for from in ["10.0.0.1", "10.0.0.1", "fd00::1", "10.0.0.2"] {
            places.release(address(from));
        }
        places.release(None);
        places.release(None);
        assert!(places.used == 0 && places.by_source.is_empty(), "{places:?}");
    }
}
