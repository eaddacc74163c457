//! Lines of the log that would repeat: one in an interval. This crate reads no clock, so a timer gives the turn back.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;

pub(crate) struct LogTurns {
    interval: Duration,
    turn: Arc<Semaphore>,
}

impl LogTurns {
    pub(crate) fn every(interval: Duration) -> Self {
        Self { interval, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Whether a line is due. The next one is due after the interval.
    pub(crate) fn take(&self) -> bool {
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else { return false };
        let interval = self.interval;
        tokio::spawn(async move {
            sleep(interval).await;
            drop(turn);
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_is_due_in_an_interval() {
        let turns = LogTurns::every(Duration::from_secs(10));
        let mut lines = 0;
        // Two attempts a second, for 30 s.
        for _ in 0..60 {
            lines += u32::from(turns.take());
            sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(lines, 3);
    }
}
