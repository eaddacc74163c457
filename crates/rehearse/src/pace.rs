//! Pace of a rehearsal: how long the waits of a scenario take.
//!
//! Scenarios have the times of a real platform: fifteen minutes of notice, ten minutes until an event is over. A pace
//! divides these waits, but makes none shorter than a floor, so that a handler that polls every few seconds has its
//! chance. A wait that is shorter than the floor already stays as it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A notice beyond this keeps its real date. The rehearsal waits for the handler's reaction, then moves the clock.
pub const REAL_DATE_FROM: Duration = Duration::from_secs(3_600);

/// A notice up to this stays as it is: a handler that uses the 30 s of an eviction is right.
pub const REAL_NOTICE_UP_TO: Duration = Duration::from_secs(120);

/// How long a handler may take to react to an event with a far date, before compression.
pub const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Default of `--compress`.
pub const COMPRESS: f64 = 60.0;

/// Default of `--floor`.
pub const FLOOR: Duration = Duration::from_secs(5);

/// Divisor and floor of waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// 1 or more.
    pub compress: f64,
    pub floor: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { compress: COMPRESS, floor: FLOOR }
    }
}

impl Pace {
    /// How long a wait takes in this rehearsal.
    pub fn wait(&self, natural: Duration) -> Duration {
        natural.div_f64(self.compress.max(1.0)).max(natural.min(self.floor))
    }

    /// How long the rehearsal waits for NotBefore, and how far ahead guests see it.
    pub fn notice(&self, natural: Duration) -> Notice {
        if natural > REAL_DATE_FROM {
            return Notice { shown: natural, wait: self.wait(PATIENCE) };
        }
        let shown = if natural <= REAL_NOTICE_UP_TO { natural } else { self.wait(natural) };
        Notice { shown, wait: shown }
    }
}

/// The notice of an event in a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// From the announcement to the NotBefore that guests see.
    pub shown: Duration,
    /// The longest time that the rehearsal waits for the handler's approval. If it is shorter than `shown`, the clock
    /// then moves to NotBefore.
    pub wait: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn waits_are_divided_down_to_the_floor() {
        let pace = Pace { compress: 60.0, floor: seconds(5) };
        for (natural, shorter) in [(900, 15), (600, 10), (120, 5), (30, 5), (5, 5), (3, 3), (0, 0)] {
            assert_eq!(pace.wait(seconds(natural)), seconds(shorter), "{natural}");
        }
        let real = Pace { compress: 1.0, floor: seconds(5) };
        assert_eq!(real.wait(seconds(900)), seconds(900));
    }

    #[test]
    fn far_date_stays_and_the_rehearsal_waits_less() {
        let pace = Pace { compress: 60.0, floor: seconds(5) };
        let week = seconds(7 * 86_400);
        assert_eq!(pace.notice(week), Notice { shown: week, wait: seconds(15) });
        let short = Notice { shown: seconds(30), wait: seconds(30) };
        assert_eq!(pace.notice(seconds(30)), short, "an eviction keeps its 30 s");
        assert_eq!(pace.notice(seconds(900)), Notice { shown: seconds(15), wait: seconds(15) });
    }
}
