//! `--watch`: shows a result again and again.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;

use crate::args::WatchArgs;
use crate::client::Refused;
use crate::output;
use crate::pause::pause;

const EVERY: Duration = Duration::from_secs(2);

/// Prints what `frame` returns: once, or with `--watch` every two seconds. A failure after the first time is shown, and
/// the next frame replaces it: the service may restart meanwhile.
pub fn show(watch: &WatchArgs, mut frame: impl FnMut() -> Result<String>) -> Result<()> {
    if !watch.watch {
        return output::text(&frame()?);
    }
    let mut screen = Screen::default();
    let mut left = watch.count.unwrap_or(usize::MAX);
    loop {
        let next = match frame() {
            Err(error) if !screen.is_empty() && !error.is::<Refused>() => format!("notbefore: {error:#}\n"),
            next => next?,
        };
        let is_terminal = io::stdout().is_terminal();
        let rows = terminal_size::terminal_size().map(|(_, height)| usize::from(height.0));
        output::text(&screen.draw(next, rows.filter(|_| is_terminal)))?;
        left -= 1;
        if left == 0 {
            return Ok(());
        }
        pause(EVERY, "the service is asked again");
    }
}

/// What was shown last.
#[derive(Default)]
struct Screen {
    last: Option<String>,
}

impl Screen {
    fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The text that replaces the last frame by the next one: at a terminal of so many rows in place, cut to the rows;
    /// elsewhere below it, if it differs.
    fn draw(&mut self, next: String, rows: Option<usize>) -> String {
        let last = self.last.replace(next.clone());
        let Some(rows) = rows else {
            return match last {
                None => next,
                Some(last) if last == next => String::new(),
                Some(_) => format!("\n{next}"),
            };
        };
        let lines: Vec<&str> = next.lines().collect();
        // The cursor takes the last row.
        let (shown, cut) = lines.split_at(lines.len().min(rows.saturating_sub(1).max(1)));
        let mut text = if last.is_none() { "\x1b[2J\x1b[H" } else { "\x1b[H" }.to_owned();
        for (row, line) in shown.iter().enumerate() {
            match cut.is_empty() || row + 1 < shown.len() {
                true => text += line,
                false => text += &format!("… {} more lines", cut.len() + 1),
            }
            text += "\x1b[K\n";
        }
        text + "\x1b[J"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_gets_frames_that_differ() {
        let mut screen = Screen::default();
        let drawn = ["a\n", "a\n", "b\n"].map(|frame| screen.draw(frame.to_owned(), None));
        assert_eq!(drawn, ["a\n", "", "\nb\n"]);
    }

    #[test]
    fn terminal_is_redrawn_in_place() {
        let mut screen = Screen::default();
        let mut draw = |frame: &str| screen.draw(frame.to_owned(), Some(4));
        assert_eq!(draw("a\nb\n"), "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(draw("a\n"), "\x1b[Ha\x1b[K\n\x1b[J");
        assert_eq!(draw("1\n2\n3\n"), "\x1b[H1\x1b[K\n2\x1b[K\n3\x1b[K\n\x1b[J");
        assert_eq!(draw("1\n2\n3\n4\n5\n"), "\x1b[H1\x1b[K\n2\x1b[K\n… 3 more lines\x1b[K\n\x1b[J");
    }
}
