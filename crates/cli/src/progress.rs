//! How far something long has come, for whoever watches a terminal. Where nobody does, nothing is shown.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a second the terminal is written to.
const DRAWN_PER_SECOND: u8 = 8;

/// A line at the foot of the terminal, on stderr; gone when this is.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Counts things of which nobody knows how many there will be.
    pub fn counting(what: &str) -> Self {
        Self::new(None, &format!("{{spinner}} {{human_pos}} {what}, {{per_sec}}"))
    }

    fn new(total: Option<u64>, template: &str) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND);
        let bar = ProgressBar::with_draw_target(total, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// So many by now.
    pub fn set(&mut self, count: u64) {
        self.bar.set_position(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
