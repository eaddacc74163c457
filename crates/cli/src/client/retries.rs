//! Retries of a change under one idempotency key. Pure: the caller sends the requests and waits.

use std::time::Duration;

/// Attempts of a change; waits for the rate limit do not count. A cluster whose leader was lost has another one within
/// 6 s.
const ATTEMPTS_MAX: usize = 8;
/// Pause before another attempt, unless the service names a longer one.
const INTERVAL: Duration = Duration::from_secs(1);
/// Limit of the total time spent waiting for `Retry-After`.
const WAIT_MAX: Duration = Duration::from_secs(10 * 60);

/// An attempt that may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// 429: the service names the time to wait.
    RateLimited(Duration),
    /// 503, with `Retry-After` if there is one.
    Unavailable { retry_after: Option<Duration>, is_outcome_unknown: bool },
    /// No connection.
    Unsent,
    /// The request was sent; no response.
    Unanswered,
}

#[derive(Debug, Default)]
pub struct Retries {
    attempts: usize,
    waited: Duration,
    /// Whether the change may have been made, although no response says so.
    pub may_be_done: bool,
}

impl Retries {
    /// The time to wait before the next attempt; none if this was the last.
    pub fn after(&mut self, attempt: Attempt) -> Option<Duration> {
        let (wait, counts) = match attempt {
            Attempt::RateLimited(wait) => (wait, false),
            Attempt::Unavailable { retry_after, .. } => (retry_after.unwrap_or_default().max(INTERVAL), true),
            // Without a service there is nothing to wait for, unless it has been there.
            Attempt::Unsent if !self.may_be_done => return None,
            Attempt::Unsent | Attempt::Unanswered => (INTERVAL, true),
        };
        self.attempts += usize::from(counts);
        self.may_be_done |= match attempt {
            Attempt::Unavailable { is_outcome_unknown, .. } => is_outcome_unknown,
            Attempt::Unanswered => true,
            Attempt::RateLimited(_) | Attempt::Unsent => false,
        };
        let wait = wait.min(WAIT_MAX);
        let is_last = self.attempts >= ATTEMPTS_MAX || self.waited >= WAIT_MAX;
        self.waited += wait;
        (!is_last).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits in seconds, and whether the change may have been made.
    fn run(attempts: &[Attempt]) -> (Vec<Option<u64>>, bool) {
        let mut retries = Retries::default();
        let waits = attempts.iter().map(|attempt| retries.after(*attempt).map(|wait| wait.as_secs()));
        (waits.collect(), retries.may_be_done)
    }

    fn unavailable(retry_after: Option<u64>, is_outcome_unknown: bool) -> Attempt {
        Attempt::Unavailable { retry_after: retry_after.map(Duration::from_secs), is_outcome_unknown }
    }

    #[test]
    fn retry_after_of_503_is_waited_for() {
        let waits = |retry_after| run(&[unavailable(retry_after, false); 8]);
        let seven_times = |seconds| [&[Some(seconds); 7][..], &[None]].concat();
        assert_eq!(waits(Some(7)), (seven_times(7), false));
        assert_eq!(waits(None), (seven_times(1), false));
        assert_eq!(waits(Some(0)).0[0], Some(1));
        assert_eq!(waits(Some(1_000_000)).0[..2], [Some(600), None]);
    }

    #[test]
    fn change_may_be_done_after_unknown_outcome_or_lost_response() {
        assert_eq!(run(&[Attempt::Unsent]), (vec![None], false));
        for first in [unavailable(None, true), Attempt::Unanswered] {
            let then = |last| run(&[first, last]);
            assert_eq!(then(Attempt::Unsent), (vec![Some(1), Some(1)], true), "{first:?}");
            assert!(then(unavailable(None, false)).1);
        }
        let (waits, may_be_done) = run(&[unavailable(None, false), Attempt::Unsent]);
        assert_eq!((waits, may_be_done), (vec![Some(1), None], false));
    }

    #[test]
    fn rate_limit_is_waited_for_up_to_ten_minutes() {
        let limited = Attempt::RateLimited(Duration::from_secs(100));
        let (waits, _) = run(&[limited; 7]);
        assert_eq!(waits, [[Some(100); 6].as_slice(), &[None]].concat());
    }
}
