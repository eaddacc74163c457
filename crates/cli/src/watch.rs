//! `--watch`: shows a result again and again.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;

use crate::args::WatchArgs;
use crate::client::Refused;
use crate::pause::pause;
use crate::{output, table};

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
        let size = terminal_size::terminal_size().filter(|_| is_terminal);
        let size = size.map(|(width, height)| (usize::from(width.0), usize::from(height.0)));
        output::text(&screen.draw(next, size))?;
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

    /// The text that replaces the last frame by the next one: at a terminal of this size (columns, rows) in place, cut to
    /// the size; elsewhere below it, if it differs.
    fn draw(&mut self, next: String, size: Option<(usize, usize)>) -> String {
        let last = self.last.replace(next.clone());
        let Some((columns, rows)) = size else {
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
                // A line with colours is of a table, which fits.
                true if columns == 0 || line.contains('\x1b') => text += line,
                true => text += &table::cut(line, columns),
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
        let mut draw = |frame: &str| screen.draw(frame.to_owned(), Some((10, 4)));
        assert_eq!(draw("a\nb\n"), "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(draw("a\n"), "\x1b[Ha\x1b[K\n\x1b[J");
        assert_eq!(draw("a line of 12\n"), "\x1b[Ha line of…\x1b[K\n\x1b[J");
        assert_eq!(draw("1\n2\n3\n"), "\x1b[H1\x1b[K\n2\x1b[K\n3\x1b[K\n\x1b[J");
        assert_eq!(draw("1\n2\n3\n4\n5\n"), "\x1b[H1\x1b[K\n2\x1b[K\n… 3 more lines\x1b[K\n\x1b[J");
    }
}
