//! Rate limit for log lines: at most one a second, with the number of occurrences.

use std::time::Duration;

/// Minimum interval between lines.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Counts occurrences that are not logged yet.
#[derive(Debug, Default)]
pub struct LogRateLimit {
    logged_at: Option<Duration>,
    since: u64,
}

impl LogRateLimit {
    /// Counts an occurrence. If a line is due, returns the number of occurrences since the last line.
    pub fn record(&mut self, now: Duration) -> Option<u64> {
        self.since += 1;
        if self.logged_at.is_some_and(|at| now.saturating_sub(at) < LOG_INTERVAL) {
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
