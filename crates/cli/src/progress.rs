//! Progress of long commands: a bar at a terminal, else lines if requested with `--progress`.

use std::fmt;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{output, time};

const DRAWN_PER_SECOND: u8 = 8;

/// A progress bar on standard error, removed on drop.
pub struct Progress {
    bar: ProgressBar,
    vms: u64,
    /// Interval of progress lines without a terminal.
    report_interval: Option<Duration>,
    reports: u32,
}

impl Progress {
    /// Counts items of unknown total.
    #[cfg(unix)]
    pub fn counting(what: &str) -> Self {
        Self::new(None, &format!("{{spinner}} {{human_pos}} {what}, {{rate}}"), None)
    }

    /// Counts scopes, and the VMs in them.
    pub fn for_fleet(scopes: u64, report_interval: Option<Duration>) -> Self {
        let template = "{bar:30} {human_pos} of {human_len} scopes, {msg} VMs, {rate}, {eta} left";
        Self::new(Some(scopes), template, report_interval)
    }

    /// Counts scenarios, and names those that are played now. Their names are cut at the width of the terminal.
    #[cfg(unix)]
    pub fn for_scenarios(total: u64) -> Self {
        let progress =
            Self::new(Some(total), "{human_pos} of {human_len} done, {elapsed}, playing {wide_msg}", None);
        // A scenario may take minutes.
        progress.bar.enable_steady_tick(Duration::from_secs(1));
        progress
    }

    fn new(total: Option<u64>, template: &str, report_interval: Option<Duration>) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND);
        let bar = ProgressBar::with_draw_target(total, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
                // A terminal that cannot be written to shows no progress.
                let _ = write!(out, "{:.0}/s", state.per_sec());
            };
            bar.set_style(style.with_key("rate", rate));
        }
        Self { bar, vms: 0, report_interval, reports: 0 }
    }

    #[cfg(unix)]
    pub fn set(&mut self, count: u64) {
        self.bar.set_position(count);
    }

    #[cfg(unix)]
    pub fn show(&self, count: u64, message: &str) {
        self.bar.set_message(message.to_owned());
        self.bar.set_position(count);
    }

    /// Adds a finished scope with its number of VMs.
    pub fn add(&mut self, vms: u64) {
        self.vms += vms;
        self.bar.inc(1);
        let elapsed = self.bar.elapsed();
        match self.report_interval {
            // The bar itself limits how often it draws.
            _ if !self.bar.is_hidden() => self.bar.set_message(HumanCount(self.vms).to_string()),
            Some(every) if elapsed >= every * (self.reports + 1) => {
                self.reports = u32::try_from(elapsed.as_secs() / every.as_secs().max(1)).unwrap_or(u32::MAX);
                output::eprint(&self.in_words(elapsed));
            }
            Some(_) | None => {}
        }
    }

    fn in_words(&self, elapsed: Duration) -> String {
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        let left = elapsed.as_secs_f64() * (all - done) as f64 / done.max(1) as f64;
        let left = time::span(left as u64);
        format!("{done} of {all} scopes, {} VMs; {left} left", self.vms)
    }

    /// Hides the bar while `print` runs.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
