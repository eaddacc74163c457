//! Progress of long commands: a line at a terminal, else lines if requested with `--progress`.

use std::cell::RefCell;
use std::time::Duration;

use notbefore_client::clock::Clock;

use crate::block::{self, Block};
use crate::{output, time};

/// Shortest time between two draws of a count.
const DRAW_INTERVAL: Duration = Duration::from_millis(125);
#[cfg(unix)]
const SPINNER: [char; 8] = ['⠁', '⠂', '⠄', '⡀', '⢀', '⠠', '⠐', '⠈'];

/// A line of progress on standard error, removed on drop.
pub struct Progress {
    block: RefCell<Option<Block>>,
    counts: RefCell<Counts>,
    clock: Clock,
    line: fn(&Counts, Duration) -> String,
    /// Interval of progress lines without a terminal.
    report_interval: Option<Duration>,
}

#[derive(Default)]
struct Counts {
    done: u64,
    total: u64,
    vms: u64,
    /// What is counted, or what is in progress.
    #[cfg(unix)]
    text: String,
    drawn_at: Duration,
    reports: u32,
}

impl Progress {
    /// Counts items of unknown total.
    #[cfg(unix)]
    pub fn counting(what: &str) -> Self {
        let line = |counts: &Counts, elapsed: Duration| {
            let turn = elapsed.as_millis() / DRAW_INTERVAL.as_millis() % SPINNER.len() as u128;
            let rate = counts.rate(elapsed);
            format!("{} {} {}, {rate}", SPINNER[turn as usize], digits(counts.done), counts.text)
        };
        Self::new(line, Counts { text: what.to_owned(), ..Counts::default() }, None)
    }

    /// Counts scopes, and the VMs in them.
    pub fn for_fleet(scopes: u64, report_interval: Option<Duration>) -> Self {
        let line = |counts: &Counts, elapsed: Duration| {
            let (done, total, vms) = (digits(counts.done), digits(counts.total), digits(counts.vms));
            let (bar, rate, left) =
                (block::bar(counts.done, counts.total), counts.rate(elapsed), counts.left(elapsed));
            format!("{bar} {done} of {total} scopes, {vms} VMs, {rate}, {left} left")
        };
        Self::new(line, Counts { total: scopes, ..Counts::default() }, report_interval)
    }

    /// Counts scenarios, and names those that are played now.
    #[cfg(unix)]
    pub fn for_scenarios(total: u64) -> Self {
        let line = |counts: &Counts, elapsed: Duration| {
            let elapsed = time::span(elapsed.as_secs());
            format!("{} of {} done, {elapsed}, playing {}", counts.done, counts.total, counts.text)
        };
        Self::new(line, Counts { total, ..Counts::default() }, None)
    }

    fn new(line: fn(&Counts, Duration) -> String, counts: Counts, report_interval: Option<Duration>) -> Self {
        let block = Block::at_terminal().into();
        Self { block, counts: counts.into(), clock: Clock::start(), line, report_interval }
    }

    #[cfg(unix)]
    pub fn set(&self, count: u64) {
        self.counts.borrow_mut().done = count;
        self.draw_if_due();
    }

    #[cfg(unix)]
    pub fn show(&self, count: u64, names: String) {
        let mut counts = self.counts.borrow_mut();
        (counts.done, counts.text) = (count, names);
        drop(counts);
        self.draw();
    }

    /// Adds a finished scope with its number of VMs.
    pub fn add(&self, vms: u64) {
        let mut counts = self.counts.borrow_mut();
        counts.done += 1;
        counts.vms += vms;
        if self.block.borrow().is_some() {
            drop(counts);
            return self.draw_if_due();
        }
        let elapsed = self.clock.now().tick;
        if let Some(every) = self.report_interval.filter(|every| elapsed >= *every * (counts.reports + 1)) {
            counts.reports = u32::try_from(elapsed.as_secs() / every.as_secs().max(1)).unwrap_or(u32::MAX);
            output::eprint(&counts.in_words(elapsed));
        }
    }

    fn draw_if_due(&self) {
        if self.clock.now().tick >= self.counts.borrow().drawn_at + DRAW_INTERVAL {
            self.draw();
        }
    }

    /// Draws the line, which may show the time.
    pub fn draw(&self) {
        if let Some(block) = &mut *self.block.borrow_mut() {
            let elapsed = self.clock.now().tick;
            self.counts.borrow_mut().drawn_at = elapsed;
            block.draw(&[(self.line)(&self.counts.borrow(), elapsed)]);
        }
    }

    /// Hides the line while `print` runs.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.clear();
        let printed = print();
        self.draw();
        printed
    }

    fn clear(&self) {
        if let Some(block) = &mut *self.block.borrow_mut() {
            block.draw(&[]);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Counts {
    fn rate(&self, elapsed: Duration) -> String {
        format!("{:.0}/s", self.done as f64 / elapsed.as_secs_f64().max(f64::EPSILON))
    }

    /// The time for the rest at the same rate.
    fn left(&self, elapsed: Duration) -> String {
        let rest = self.total.saturating_sub(self.done) as f64;
        time::span((elapsed.as_secs_f64() * rest / self.done.max(1) as f64) as u64)
    }

    fn in_words(&self, elapsed: Duration) -> String {
        let left = self.left(elapsed);
        format!("{} of {} scopes, {} VMs; {left} left", self.done, self.total, self.vms)
    }
}

/// A number with commas between thousands.
fn digits(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_counts_rate_and_time() {
        let shown = |progress: &Progress, counts: Counts| (progress.line)(&counts, Duration::from_secs(10));
        let fleet = Progress::for_fleet(0, None);
        let counts = || Counts { done: 1_000, total: 4_000, vms: 1_234_567, ..Counts::default() };
        let expected = "██████░░░░░░░░░░░░░░░░░░ 1,000 of 4,000 scopes, 1,234,567 VMs, 100/s, 30 s left";
        assert_eq!(shown(&fleet, counts()), expected);
        assert_eq!(counts().in_words(Duration::from_secs(10)), "1000 of 4000 scopes, 1234567 VMs; 30 s left");
        assert!(shown(&fleet, Counts::default()).starts_with(&"█".repeat(24)));
        #[cfg(unix)]
        {
            let records = Counts { text: "records".to_owned(), ..counts() };
            assert_eq!(shown(&Progress::counting("records"), records), "⠁ 1,000 records, 100/s");
            let scenarios = Counts { done: 1, total: 2, text: "one".to_owned(), ..Counts::default() };
            assert_eq!(shown(&Progress::for_scenarios(2), scenarios), "1 of 2 done, 10 s, playing one");
        }
    }
}
