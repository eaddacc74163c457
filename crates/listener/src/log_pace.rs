//! At most one log line a second for what a flood makes happen often.

use std::time::Duration;

/// How long after a line the next one may come.
const EVERY: Duration = Duration::from_secs(1);

/// Counts what is not logged yet, and says when the next line may be.
#[derive(Debug, Default)]
pub struct LogPace {
    logged_at: Option<Duration>,
    since: u64,
}

impl LogPace {
    /// It has happened once more. If a line is due, answers how often it has happened since the last one.
    pub fn note(&mut self, now: Duration) -> Option<u64> {
        self.since += 1;
        if self.logged_at.is_some_and(|at| now.saturating_sub(at) < EVERY) {
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
    fn one_line_a_second_counts_all_since_the_last() {
        let mut pace = LogPace::default();
        let lines: Vec<(u64, u64)> = [0, 1, 999, 1_000, 1_001, 5_000, 5_999, 6_000]
            .into_iter()
            .filter_map(|ms| Some((ms, pace.note(Duration::from_millis(ms))?)))
            .collect();
        assert_eq!(lines, [(0, 1), (1_000, 3), (5_000, 2), (6_000, 2)]);
    }
}
