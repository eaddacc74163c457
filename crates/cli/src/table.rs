//! Tables: fitted to the terminal's width, with short ids and colours.
//!
//! [`Layout`] holds everything that depends on the terminal. The rest is pure: the same items, columns and layout give
//! the same lines. In a pipe nothing is shortened or coloured.
//!
//! No line is wider than the terminal. Ids are short at every terminal. A table that is too wide is fitted in this order:
//!
//! 1. Texts and paths are shortened to [`TEXT_MIN`], the longest first.
//! 2. Optional columns are left out, the last first.
//! 3. Other columns are left out, the last first. The first column stays.
//! 4. The first column is shortened.

use std::collections::HashSet;
use std::io::{self, IsTerminal};

use notbefore_wire::text::printable;
use uuid::Uuid;

use crate::args::Output;

/// Fewest digits of a shortened id.
const ID_DIGITS_MIN: usize = 8;
/// Smallest width of a shortened text.
const TEXT_MIN: usize = 10;
/// Space between columns.
const GAP: usize = 2;

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The table has to fit into this width; none: nothing is shortened.
    pub width: Option<usize>,
    pub has_colours: bool,
    /// Whether columns that are only in wide tables are shown.
    pub is_wide: bool,
}

impl Layout {
    /// The layout for standard output.
    pub fn of_stdout(output: Output) -> Self {
        let no_colours = std::env::var_os("NO_COLOR").is_some()
            || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self::new(output, io::stdout().is_terminal(), columns, no_colours)
    }

    pub fn narrower(self, columns: usize) -> Self {
        Self { width: self.width.map(|width| width.saturating_sub(columns)), ..self }
    }

    fn new(output: Output, is_terminal: bool, columns: Option<usize>, no_colours: bool) -> Self {
        let is_wide = output == Output::Wide;
        Self {
            // A terminal of unknown size has 0 columns.
            width: columns.filter(|columns| *columns > 0 && is_terminal && !is_wide),
            has_colours: is_terminal && !no_colours,
            is_wide,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Red,
    Yellow,
}

impl Colour {
    fn apply(self, text: &str) -> String {
        let code = match self {
            Self::Red => 31,
            Self::Yellow => 33,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// What happens to a column in a narrow terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// The column is left out if nothing else helps.
    Whole,
    /// An id is shortened at every terminal.
    Id,
    /// Text is shortened if the table does not fit.
    Text,
    /// A path is shortened like text, and keeps its end.
    Path,
    /// The column is left out before others.
    Optional,
    /// The column is in wide tables only.
    Wide,
}

/// A column: heading, cell of an item, and its colour.
pub struct Column<'a, T> {
    head: &'static str,
    fit: Fit,
    cell: &'a dyn Fn(&T) -> String,
    colour: &'a dyn Fn(&T) -> Option<Colour>,
}

impl<'a, T: 'a> Column<'a, T> {
    /// A column that is never shortened.
    pub fn new(head: &'static str, cell: &'a dyn Fn(&T) -> String) -> Self {
        Self { head, fit: Fit::Whole, cell, colour: &|_| None }
    }

    /// A column of ids. At a terminal they have as many digits as are unique in the table.
    pub fn id(head: &'static str, cell: &'a dyn Fn(&T) -> String) -> Self {
        Self { fit: Fit::Id, ..Self::new(head, cell) }
    }

    /// A column of text that may be shortened.
    pub fn text(head: &'static str, cell: &'a dyn Fn(&T) -> String) -> Self {
        Self { fit: Fit::Text, ..Self::new(head, cell) }
    }

    /// A column of paths that may be shortened at their beginning.
    pub fn path(head: &'static str, cell: &'a dyn Fn(&T) -> String) -> Self {
        Self { fit: Fit::Path, ..Self::new(head, cell) }
    }

    /// A column that is left out of a table that does not fit.
    pub fn optional(head: &'static str, cell: &'a dyn Fn(&T) -> String) -> Self {
        Self { fit: Fit::Optional, ..Self::new(head, cell) }
    }

    /// A column that only wide tables have.
    pub fn wide(head: &'static str, cell: &'a dyn Fn(&T) -> String) -> Self {
        Self { fit: Fit::Wide, ..Self::new(head, cell) }
    }

    pub fn coloured(self, colour: &'a dyn Fn(&T) -> Option<Colour>) -> Self {
        Self { colour, ..self }
    }
}

/// A column with its cells, the heading first.
struct Cells {
    fit: Fit,
    texts: Vec<String>,
    colours: Vec<Option<Colour>>,
    width: usize,
}

impl Cells {
    fn of<T>(column: &Column<'_, T>, items: &[T]) -> Self {
        let texts = items.iter().map(|item| printable(&(column.cell)(item)));
        let texts = std::iter::once(column.head.to_owned()).chain(texts).collect();
        let colours = std::iter::once(None).chain(items.iter().map(column.colour)).collect();
        let mut cells = Self { fit: column.fit, texts, colours, width: 0 };
        cells.measure();
        cells
    }

    fn measure(&mut self) {
        self.width = self.texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    }

    fn width_min(&self) -> usize {
        match self.fit {
            Fit::Text | Fit::Path => self.width.min(TEXT_MIN.max(self.texts[0].chars().count())),
            Fit::Whole | Fit::Id | Fit::Optional | Fit::Wide => self.width,
        }
    }

    /// Cuts ids at the beginning of cells to the digits that distinguish them.
    fn shorten_ids(&mut self) {
        let id = |text: &String| {
            text.split(' ')
                .next()
                .filter(|word| word.len() == 36 && Uuid::parse_str(word).is_ok())
                .map(str::to_owned)
        };
        let ids: HashSet<String> = self.texts.iter().filter_map(id).collect();
        let is_unique = |digits: &usize| {
            let short: HashSet<&str> = ids.iter().map(|id| &id[..*digits]).collect();
            short.len() == ids.len()
        };
        let Some(digits) = (ID_DIGITS_MIN..36).find(is_unique) else { return };
        for text in &mut self.texts {
            if let Some(id) = id(text) {
                *text = format!("{}{}", &id[..digits], &text[id.len()..]);
            }
        }
        self.measure();
    }

    /// One cell, as wide as the column.
    fn shown(&self, row: usize, has_colours: bool) -> String {
        let (text, length) = (&self.texts[row], self.texts[row].chars().count());
        let kept = self.width.saturating_sub(1);
        let text = match length > self.width && self.fit == Fit::Path {
            true => ['…'].into_iter().chain(text.chars().skip(length - kept)).collect(),
            false => cut(text, self.width),
        };
        let space = " ".repeat(self.width.saturating_sub(length));
        match self.colours[row].filter(|_| has_colours) {
            Some(colour) => colour.apply(&text) + &space,
            None => text + &space,
        }
    }
}

/// A line without colours, cut to the width.
pub fn cut(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// The lines of a table, the heading first.
pub fn lines<T>(items: &[T], columns: &[Column<'_, T>], layout: Layout) -> Vec<String> {
    let columns = columns.iter().filter(|column| layout.is_wide || column.fit != Fit::Wide);
    let mut columns: Vec<Cells> = columns.map(|column| Cells::of(column, items)).collect();
    if let Some(width) = layout.width {
        fit(&mut columns, width);
    }
    let line = |row: usize| {
        let cells = columns.iter().map(|column| column.shown(row, layout.has_colours));
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    (0..=items.len()).map(line).collect()
}

fn fit(columns: &mut Vec<Cells>, width: usize) {
    columns.iter_mut().filter(|column| column.fit == Fit::Id).for_each(Cells::shorten_ids);
    let gaps = |columns: &[Cells]| columns.len().saturating_sub(1) * GAP;
    while columns.len() > 1 && columns.iter().map(Cells::width_min).sum::<usize>() + gaps(columns) > width {
        let optional = columns.iter().rposition(|column| column.fit == Fit::Optional).filter(|at| *at > 0);
        columns.remove(optional.unwrap_or(columns.len() - 1));
    }
    if let [only] = columns.as_mut_slice() {
        only.width = only.width.min(width);
    }
    while columns.iter().map(|column| column.width).sum::<usize>() + gaps(columns) > width {
        let longest = columns.iter_mut().filter(|column| column.width > column.width_min());
        let Some(longest) = longest.max_by_key(|column| column.width) else { return };
        longest.width -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_depends_on_terminal_format_and_no_color() {
        let (table, wide) = (Output::Table, Output::Wide);
        let layout = |width, has_colours, is_wide| Layout { width, has_colours, is_wide };
        for (output, is_terminal, columns, no_colours, expected) in [
            (table, true, Some(80), false, layout(Some(80), true, false)),
            (table, true, Some(80), true, layout(Some(80), false, false)),
            (table, true, None, false, layout(None, true, false)),
            (table, true, Some(0), false, layout(None, true, false)),
            (table, false, Some(80), false, layout(None, false, false)),
            (wide, true, Some(80), false, layout(None, true, true)),
            (wide, false, None, false, layout(None, false, true)),
        ] {
            assert_eq!(Layout::new(output, is_terminal, columns, no_colours), expected);
        }
    }

    struct Item(&'static str, &'static str, bool);

    const ITEMS: [Item; 2] = [
        Item("11112222-0000-0000-0000-000000000000", "default/default/a-long-name", true),
        Item("11113333-0000-0000-0000-000000000000 and 2 more", "-", false),
    ];

    fn shown(layout: Layout) -> String {
        let columns = [
            Column::id("ID", &|item: &Item| item.0.to_owned()),
            Column::new("BAD", &|item: &Item| item.2.to_string())
                .coloured(&|item| item.2.then_some(Colour::Red)),
            Column::optional("SOURCE", &|_: &Item| "Platform".to_owned()),
            Column::text("SCOPE", &|item: &Item| item.1.to_owned()),
            Column::wide("HOST", &|_: &Item| "h1".to_owned()),
        ];
        lines(&ITEMS, &columns, layout).join("\n")
    }

    #[test]
    fn table_fits_the_width() {
        let layout = Layout { width: None, has_colours: false, is_wide: false };
        let table = |width| shown(Layout { width: Some(width), ..layout });
        assert_eq!(
            shown(layout),
            "ID                                               BAD    SOURCE    SCOPE\n\
             11112222-0000-0000-0000-000000000000             true   Platform  default/default/a-long-name\n\
             11113333-0000-0000-0000-000000000000 and 2 more  false  Platform  -"
        );
        assert_eq!(
            table(80),
            "ID                   BAD    SOURCE    SCOPE\n\
             11112222             true   Platform  default/default/a-long-name\n\
             11113333 and 2 more  false  Platform  -"
        );
        assert_eq!(
            table(50),
            "ID                   BAD    SOURCE    SCOPE\n\
             11112222             true   Platform  default/def…\n\
             11113333 and 2 more  false  Platform  -"
        );
        assert_eq!(
            table(40),
            "ID                   BAD    SCOPE\n\
             11112222             true   default/def…\n\
             11113333 and 2 more  false  -"
        );
        assert_eq!(
            table(37),
            "ID                   BAD\n11112222             true\n11113333 and 2 more  false"
        );
        assert_eq!(table(20), "ID\n11112222\n11113333 and 2 more");
        assert_eq!(table(9), "ID\n11112222\n11113333…");
        for width in 1..100 {
            let longest = table(width).lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}: {longest:?}");
        }
    }

    #[test]
    fn wide_table_has_all_columns_and_whole_ids() {
        let text = shown(Layout { width: None, has_colours: true, is_wide: true });
        assert!(text.contains("SCOPE                        HOST"), "{text}");
        assert!(text.contains("000000000000             \x1b[31mtrue\x1b[0m   Platform"), "{text}");
    }

    #[test]
    fn shortened_path_keeps_its_end() {
        let layout = Layout { width: Some(12), has_colours: false, is_wide: false };
        let column = Column::path("VM", &|path: &&str| (*path).to_owned());
        assert_eq!(lines(&["default/web/web-10", "a/b"], &[column], layout), ["VM", "…/web/web-10", "a/b"]);
    }

    #[test]
    fn similar_ids_keep_more_digits() {
        let ids = ["11112222-3333-0000-0000-000000000000", "11112222-3344-0000-0000-000000000000"];
        let layout = Layout { width: Some(80), has_colours: false, is_wide: false };
        let column = Column::id("ID", &|id: &&str| (*id).to_owned());
        assert_eq!(lines(&ids, &[column], layout), ["ID", "11112222-333", "11112222-334"]);
    }
}
