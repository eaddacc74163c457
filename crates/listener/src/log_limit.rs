//! Rate limit for log lines: at most one in an interval, with the number of occurrences.

use std::time::Duration;

/// Default of the minimum interval between lines.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Counts occurrences that are not logged yet.
#[derive(Debug)]
pub struct LogRateLimit {
    interval: Duration,
    logged_at: Option<Duration>,
    since: u64,
}

/// One line a second.
impl Default for LogRateLimit {
    fn default() -> Self {
        Self::every(LOG_INTERVAL)
    }
}

impl LogRateLimit {
    pub fn every(interval: Duration) -> Self {
        Self { interval, logged_at: None, since: 0 }
    }

    /// Counts an occurrence. If a line is due, returns the number of occurrences since the last line.
    pub fn record(&mut self, now: Duration) -> Option<u64> {
        self.since += 1;
        if self.logged_at.is_some_and(|at| now.saturating_sub(at) < self.interval) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_once_per_second_with_count() {
        let mut limit = LogRateLimit::default();
        let lines: Vec<(u64, u64)> = [0, 1, 999, 1_000, 1_001, 5_000, 5_999, 6_000]
            .into_iter()
            .filter_map(|ms| Some((ms, limit.record(Duration::from_millis(ms))?)))
            .collect();
        assert_eq!(lines, [(0, 1), (1_000, 3), (5_000, 2), (6_000, 2)]);
    }
}
