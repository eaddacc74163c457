//! Lines on standard error that are drawn again in place, at a terminal.

use std::env;
use std::io::{self, IsTerminal, Write};

use notbefore_wire::text::printable;

use crate::table;

/// Cells of a bar.
const BAR_CELLS: u64 = 24;

#[derive(Debug, Default)]
pub struct Block {
    rows: usize,
}

impl Block {
    /// None if standard error is no terminal, or one that cannot move its cursor.
    pub fn at_terminal() -> Option<Self> {
        #[cfg(windows)]
        let _ = anstyle_query::windows::enable_ansi_colors();
        let moves_its_cursor = env::var_os("TERM").map_or(cfg!(windows), |terminal| terminal != "dumb");
        (moves_its_cursor && io::stderr().is_terminal()).then(Self::default)
    }

    /// Replaces the block. A line is cut at the terminal's width, the block at its height.
    pub fn draw(&mut self, lines: &[String]) {
        let size = terminal_size::terminal_size_of(io::stderr());
        let size = size.map(|(width, height)| (usize::from(width.0), usize::from(height.0)));
        write(&self.replaced_by(lines, size));
    }

    /// Leaves the block as it is; the cursor goes to the next line.
    pub fn keep(self) {
        if self.rows > 0 {
            write("\n");
        }
    }

    fn replaced_by(&mut self, lines: &[String], size: Option<(usize, usize)>) -> String {
        // A terminal of unknown size has 0 columns and rows.
        let (width, height) = size.filter(|size| size.0 > 0 && size.1 > 0).unwrap_or((80, 24));
        let mut text = "\r".to_owned();
        if self.rows > 1 {
            text += &format!("\x1b[{}A", self.rows - 1);
        }
        // Erased before, not behind each line: after its last column, a terminal would erase that column.
        text += "\x1b[J";
        let shown = lines.iter().take(height).map(|line| table::cut(&printable(line), width));
        text += &shown.collect::<Vec<_>>().join("\n");
        self.rows = lines.len().min(height);
        text
    }
}

/// A bar for `done` of `all`; full if there is nothing to do.
pub fn bar(done: u64, all: u64) -> String {
    let full = done.saturating_mul(BAR_CELLS).checked_div(all).unwrap_or(BAR_CELLS).min(BAR_CELLS);
    "█".repeat(full as usize) + &"░".repeat((BAR_CELLS - full) as usize)
}

/// A terminal that cannot be written to shows no progress.
fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_replaced_in_place() {
        let mut block = Block::default();
        let mut draw = |lines: &[&str], size| {
            block.replaced_by(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), size)
        };
        let size = Some((5, 3));
        assert_eq!(draw(&["one"], size), "\r\x1b[Jone");
        assert_eq!(draw(&["one", "two\x1b"], Some((80, 3))), "\r\x1b[Jone\ntwo\\u{1b}");
        assert_eq!(draw(&["longer", "2", "3", "4"], size), "\r\x1b[1A\x1b[Jlong…\n2\n3");
        assert_eq!(draw(&[], Some((0, 0))), "\r\x1b[2A\x1b[J");
        assert_eq!(draw(&["one"], None), "\r\x1b[Jone");
    }

    #[test]
    fn bar_fills_with_what_is_done() {
        assert_eq!(bar(3, 4), "██████████████████░░░░░░");
        let full = [(0, 4), (1, 100), (99, 100), (4, 4), (5, 4), (0, 0), (u64::MAX, 1)]
            .map(|(done, all)| bar(done, all).matches('█').count());
        assert_eq!(full, [0, 0, 23, 24, 24, 24, 24]);
    }
}
