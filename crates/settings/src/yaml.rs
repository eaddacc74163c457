//! YAML files whose mistakes are all reported at once, with line and cure: the fleet file and scenarios.
//!
//! [`parse`] parses text into a [`Tree`] of values with their lines; the YAML parser is compiled for this type only. A
//! [`Mapping`] reads the keys of one mapping, records unknown keys and values of the wrong form as [`Mistakes`], and goes
//! on with defaults. [`Tree::read`] reads a type of the API.

use std::fmt;
use std::ops::Range;

use notbefore_wire::text::{printable, shorten};
use serde::de::value::{Error as ReadError, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value as Json;
use serde_saphyr::Spanned;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::NonFiniteFloatPolicy;

use crate::suggest::nearest;

/// Limit of the parser's message, which quotes the lines around an error.
const SHOWN_CHARACTERS_MAX: usize = 1_000;

/// Limit of mistakes in a message.
const MISTAKES_SHOWN_MAX: usize = 20;

/// Limit of mistakes in memory: each item of a large file may be one. More are counted.
const MISTAKES_KEPT_MAX: usize = 1_000;

/// Longest value in a message.
pub const VALUE_CHARS_MAX: usize = 60;

/// Node budget of a small file; larger files get one node per byte.
const NODES_ALWAYS: usize = 100_000;

/// Limit of nested lists and mappings. The parser reads them by recursion: 64 levels overflow the stack of a thread in a
/// debug build. Files need less than ten.
const DEPTH_MAX: usize = 16;

/// Cures of the parser that its callers could follow, and what an author of a file can do instead.
const FOR_PROGRAMMERS: [(&str, &str); 3] = [
    (", set DuplicateKeyPolicy in Options if acceptable", "; remove one of them"),
    ("; use from_str_multiple or from_str_multiple_with_options", "; write one, without a line ---"),
    ("recursion limit exceeded", "lists and mappings are nested too deep; write them flatter"),
];

/// A value with its line.
#[derive(Clone, Debug, Default)]
pub struct At<T> {
    pub value: T,
    /// From 1; 0 for a value that the file does not have.
    pub line: u64,
}

impl<'de> Deserialize<'de> for At<String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(At { value, line: referenced.line() })
    }
}

impl<'de> Deserialize<'de> for At<Tree> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { mut value, referenced, defined } = Spanned::deserialize(deserializer)?;
        if let Tree::Scalar(_, text) = &mut value {
            let span = defined.span();
            let start = span.byte_offset().unwrap_or_default() as usize;
            *text = ScalarText::Between(start..start + span.byte_len().unwrap_or_default() as usize);
        }
        Ok(At { value, line: referenced.line() })
    }
}

/// All mistakes of a file, so that they can be corrected at once.
#[derive(Debug, Default)]
pub struct Mistakes {
    kept: Vec<(u64, String)>,
    /// Beyond those that are kept.
    more: usize,
}

impl Mistakes {
    pub fn add(&mut self, line: u64, what: impl Into<String>) {
        match self.kept.len() < MISTAKES_KEPT_MAX {
            true => self.kept.push((line, what.into())),
            false => self.more += 1,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// A message with all mistakes of the file `name`, sorted by line; none if there are none.
    pub fn message(mut self, name: &str) -> Option<String> {
        self.kept.sort_by_key(|(line, _)| *line);
        let name = printable(name);
        let one = |(line, what): &(u64, String)| format!("{name}:{line}: {what}");
        let mut lines: Vec<String> = self.kept.iter().take(MISTAKES_SHOWN_MAX).map(one).collect();
        match self.kept.len() + self.more {
            0 => None,
            1 => Some(lines.concat()),
            many => {
                if many > lines.len() {
                    lines.push(format!("and {} more", many - lines.len()));
                }
                Some(format!("{name} has {many} mistakes:\n  {}", lines.join("\n  ")))
            }
        }
    }
}

/// Parses YAML.
pub fn parse(text: &str) -> Result<At<Tree>, serde_saphyr::Error> {
    // The parser's default limits are too small for a fleet. These grow with the file's size, so that anchors cannot
    // expand to more than a file of this size could contain.
    let nodes = text.len().max(NODES_ALWAYS);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: nodes,
            max_nodes: nodes,
            max_total_scalar_bytes: nodes,
            max_depth: DEPTH_MAX,
        },
        // Names such as 9e0412: see `keep_texts`.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    let mut tree: At<Tree> = serde_saphyr::from_str_with_options(text, options)?;
    tree.value.keep_texts(text);
    Ok(tree)
}

/// The limit that the file exceeds.
fn breach(error: &serde_saphyr::Error) -> Option<&BudgetBreach> {
    use serde_saphyr::Error;
    let mut cause = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    if let Error::Budget { breach, .. } = cause { Some(breach) } else { None }
}

/// The parser's message, shortened since it quotes keys and values in full. A budget error names the fix instead.
pub fn explain(error: &serde_saphyr::Error) -> String {
    match breach(error) {
        Some(BudgetBreach::Depth { .. }) => {
            format!("its lists and mappings are nested deeper than {DEPTH_MAX} levels; write them flatter")
        }
        Some(_) => "its anchors and aliases (&, *) expand to more than a file of this size may contain; write them out"
            .to_owned(),
        None => {
            let text = FOR_PROGRAMMERS.iter().fold(error.to_string(), |text, (said, cure)| text.replace(said, cure));
            shorten(&text, SHOWN_CHARACTERS_MAX)
        }
    }
}

/// A file as a tree of values with their lines.
#[derive(Debug)]
pub enum Tree {
    /// Neither an array nor an object.
    Scalar(Json, ScalarText),
    List(Vec<At<Tree>>),
    Map(Vec<(At<String>, At<Tree>)>),
}

/// How a scalar is written. Where text is expected, `1.10` is not `1.1`, and `yes` is not `true`.
#[derive(Debug)]
pub enum ScalarText {
    /// As its value is shown.
    OfValue,
    /// Bytes of the file, until [`parse`] is done.
    Between(Range<usize>),
    /// Differs from what its value shows.
    Own(Box<str>),
}

impl Tree {
    fn scalar(value: impl Into<Json>) -> Self {
        Tree::Scalar(value.into(), ScalarText::OfValue)
    }

    /// Copies from `file` how scalars are written that are no strings.
    fn keep_texts(&mut self, file: &str) {
        match self {
            Tree::Scalar(value, text) => {
                let written = match text {
                    ScalarText::Between(bytes) if !value.is_string() => {
                        file.get(bytes.clone()).map(str::trim)
                    }
                    ScalarText::Between(_) | ScalarText::OfValue | ScalarText::Own(_) => None,
                };
                // What JSON has no number for is text.
                if let Some(written) = written
                    && value.as_f64().is_some_and(|number| number.abs() >= f64::MAX)
                {
                    *value = written.into();
                }
                let of_value = value.to_string();
                let differs = written.filter(|written| !written.is_empty() && *written != of_value);
                *text = differs.map_or(ScalarText::OfValue, |written| ScalarText::Own(written.into()));
            }
            Tree::List(items) => items.iter_mut().for_each(|item| item.value.keep_texts(file)),
            Tree::Map(entries) => entries.iter_mut().for_each(|(_, tree)| tree.value.keep_texts(file)),
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Tree::Scalar(Json::Null, _))
    }

    /// The text of a scalar, also of a number: `zone: 1`.
    pub fn text(&self) -> Option<String> {
        match self {
            Tree::Scalar(Json::Null, _) => None,
            Tree::Scalar(Json::String(text), _) => Some(text.clone()),
            Tree::Scalar(_, ScalarText::Own(text)) => Some(text.to_string()),
            Tree::Scalar(value, ScalarText::OfValue | ScalarText::Between(_)) => Some(value.to_string()),
            Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// A number, also one in quotes.
    fn number(&self) -> Option<u32> {
        match self {
            Tree::Scalar(Json::String(text), _) => quoted_number(text),
            Tree::Scalar(value, _) => value.as_u64().and_then(|number| number.try_into().ok()),
            Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// A switch, also one in quotes.
    fn switch(&self) -> Option<bool> {
        match self {
            Tree::Scalar(Json::Bool(is_on), _) => Some(*is_on),
            Tree::Scalar(Json::String(text), _) => quoted_switch(text),
            Tree::Scalar(..) | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// Reads a type of the API. Text may be written as a number, and a number as text.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        T::deserialize(self)
    }

    /// The items of the list at a key of a mapping; none if there is no such list.
    pub fn into_list(self, key: &str) -> impl Iterator<Item = At<Tree>> {
        let entries = if let Tree::Map(entries) = self { entries } else { Vec::new() };
        let found = entries.into_iter().find(|(known, _)| known.value == key);
        let items =
            if let Some((_, At { value: Tree::List(items), .. })) = found { items } else { Vec::new() };
        items.into_iter()
    }

    pub fn json(&self) -> Json {
        match self {
            Tree::Scalar(value, _) => value.clone(),
            Tree::List(items) => items.iter().map(|item| item.value.json()).collect(),
            Tree::Map(entries) => {
                entries.iter().map(|(key, tree)| (key.value.clone(), tree.value.json())).collect()
            }
        }
    }

    /// The value in a message.
    pub fn shown(&self) -> String {
        match self {
            Tree::Scalar(Json::Null, _) => "nothing".to_owned(),
            Tree::Scalar(value, _) => shorten(&value.to_string(), VALUE_CHARS_MAX),
            Tree::List(_) => "a list".to_owned(),
            Tree::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// What YAML 1.1 reads as a switch, in any case. Templates of other tools put quotes around everything.
const ON: [&str; 4] = ["true", "yes", "on", "y"];
const OFF: [&str; 4] = ["false", "no", "off", "n"];
/// What may stand around either. A block scalar ends with a line feed.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

fn quoted_switch(text: &str) -> Option<bool> {
    let text = text.trim_matches(BLANK);
    let is_among = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_among(ON) { Some(true) } else { is_among(OFF).then_some(false) }
}

/// A number as YAML has it without quotes: no zero before a decimal one, which other parsers read as octal.
fn quoted_number(text: &str) -> Option<u32> {
    let text = text.trim_matches(BLANK);
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        Some("0o" | "0O") => (&text[2..], 8),
        Some("0b" | "0B") => (&text[2..], 2),
        Some(_) | None => (text.strip_prefix('+').unwrap_or(text), 10),
    };
    // An underscore stands between two digits.
    let is_grouped = digits.split('_').all(|group| !group.is_empty() && !group.starts_with(['+', '-']));
    let has_zero_ahead = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    let number = u32::from_str_radix(&digits.replace('_', ""), radix).ok();
    number.filter(|_| is_grouped && !has_zero_ahead)
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        // JSON has no number for infinity.
        Ok(Tree::scalar(if value.is_finite() { value } else { f64::MAX }))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::scalar(value))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::scalar(Json::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::scalar(Json::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for &'de At<Tree> {
    type Deserializer = &'de Tree;

    fn into_deserializer(self) -> &'de Tree {
        &self.value
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for &'de At<String> {
    type Deserializer = StrDeserializer<'de, ReadError>;

    fn into_deserializer(self) -> Self::Deserializer {
        self.value.as_str().into_deserializer()
    }
}

impl<'de> Deserializer<'de> for &'de Tree {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Tree::Scalar(Json::Bool(is_on), _) => visitor.visit_bool(*is_on),
            Tree::Scalar(Json::Number(number), _) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Tree::Scalar(Json::String(text), _) => visitor.visit_str(text),
            // A scalar is neither an array nor an object.
            Tree::Scalar(Json::Null | Json::Array(_) | Json::Object(_), _) => visitor.visit_unit(),
            Tree::List(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Tree::Map(entries) => {
                visitor.visit_map(MapDeserializer::new(entries.iter().map(|(key, tree)| (key, tree))))
            }
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.text() {
            Some(text) => visitor.visit_string(text),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.number() {
            Some(number) => visitor.visit_u32(number),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        static EMPTY: Tree = Tree::List(Vec::new());
        if self.is_null() { &EMPTY } else { self }.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        static EMPTY: Tree = Tree::Map(Vec::new());
        if self.is_null() { &EMPTY } else { self }.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.text() {
            Some(word) => visitor.visit_enum(word.into_deserializer()),
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u64 f32 f64 char bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map identifier ignored_any
    }
}

/// A mapping whose keys are checked.
pub struct Mapping<'t, 'm> {
    pub line: u64,
    /// Whether it has a key that was reported as unknown.
    pub has_unknown_key: bool,
    entries: &'t [(At<String>, At<Tree>)],
    pub mistakes: &'m mut Mistakes,
}

impl<'t, 'm> Mapping<'t, 'm> {
    /// Checks the keys. `elsewhere` lists keys of other mappings, with a name for each, for the cure.
    pub fn read(
        tree: &'t At<Tree>,
        what: &str,
        keys: &[&str],
        elsewhere: &[(&str, &[&str])],
        mistakes: &'m mut Mistakes,
    ) -> Option<Self> {
        let Tree::Map(entries) = &tree.value else {
            let found = tree.value.shown();
            mistakes.add(tree.line, format!("expected {what} with {}, not {found}", keys.join(", ")));
            return None;
        };
        let mut has_unknown_key = false;
        for (key, _) in entries.iter().filter(|(key, _)| !keys.contains(&key.value.as_str())) {
            has_unknown_key = true;
            let shown = shorten(&key.value, VALUE_CHARS_MAX);
            mistakes
                .add(key.line, format!("unknown key {shown} of {what}; {}", hint(&shown, keys, elsewhere)));
        }
        Some(Self { line: tree.line, has_unknown_key, entries, mistakes })
    }

    /// The value of a key; none if it is missing or empty.
    pub fn value(&self, key: &str) -> Option<&'t At<Tree>> {
        let found = self.entries.iter().find(|(known, _)| known.value == key).map(|(_, tree)| tree);
        found.filter(|tree| !tree.value.is_null())
    }

    /// Whether the key is there, with a value or without.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(known, _)| known.value == key)
    }

    pub fn needs(&mut self, key: &str, expected: &str) {
        if self.value(key).is_none() {
            self.mistakes.add(self.line, format!("{key} is missing; expected {expected}"));
        }
    }

    /// Records which of the keys have no value.
    pub fn refuse_empty(&mut self, keys: &[&str]) {
        let is_empty = |(key, tree): &&(At<String>, At<Tree>)| {
            tree.value.is_null() && keys.contains(&key.value.as_str())
        };
        for (key, _) in self.entries.iter().filter(is_empty) {
            self.mistakes.add(key.line, format!("{} has no value; write one, or leave it out", key.value));
        }
    }

    pub fn wrong(&mut self, key: &str, expected: &str, tree: &At<Tree>) {
        let found = tree.value.shown();
        self.mistakes.add(tree.line, format!("{key}: expected {expected}, not {found}"));
    }

    pub fn text(&mut self, key: &str) -> Option<At<String>> {
        self.text_of(key, self.value(key)?)
    }

    pub fn text_of(&mut self, key: &str, tree: &At<Tree>) -> Option<At<String>> {
        let value = tree.value.text();
        if value.is_none() {
            self.wrong(key, "text", tree);
        }
        Some(At { value: value?, line: tree.line })
    }

    pub fn number(&mut self, key: &str) -> u32 {
        let Some(tree) = self.value(key) else { return 0 };
        let number = tree.value.number();
        if number.is_none() {
            self.wrong(key, &format!("a whole number from 0 to {}", u32::MAX), tree);
        }
        number.unwrap_or_default()
    }

    pub fn switch(&mut self, key: &str) -> bool {
        let Some(tree) = self.value(key) else { return false };
        let is_on = tree.value.switch();
        if is_on.is_none() {
            self.wrong(key, "true or false", tree);
        }
        is_on.unwrap_or_default()
    }

    pub fn list(&mut self, key: &str) -> &'t [At<Tree>] {
        match self.value(key) {
            None => &[],
            Some(At { value: Tree::List(items), .. }) => items,
            Some(tree) => {
                self.wrong(key, "a list", tree);
                &[]
            }
        }
    }
}

/// What to do about an unknown key.
fn hint(unknown: &str, keys: &[&str], elsewhere: &[(&str, &[&str])]) -> String {
    let elsewhere = elsewhere.iter().find(|(_, keys)| keys.contains(&unknown));
    match (nearest(unknown, keys.iter().copied()), elsewhere) {
        (_, Some((what, _))) => format!("it is a key {what}"),
        (Some(meant), None) => format!("did you mean {meant}?"),
        (None, None) => format!("there are {}", keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn scalars_keep_the_text_that_their_value_does_not_show() {
        let tree = parse("[ä, 1.10, yes, 0x10, &b 007 , *b, \"1.0\", 5, ~, # c\n 1_0]").unwrap();
        let Tree::List(items) = &tree.value else { panic!("{tree:?}") };
        let texts: Vec<_> = items.iter().map(|item| item.value.text()).collect();
        let expected = ["ä", "1.10", "yes", "0x10", "007", "007", "1.0", "5", "", "1_0"];
        let expected = expected.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
        assert_eq!(texts, expected);
        assert_eq!(tree.value.json(), serde_json::json!(["ä", 1.1, true, 16, 7.0, 7.0, "1.0", 5, null, 10]));
        assert_eq!(items[9].line, 2);
    }

    #[test]
    fn numbers_beyond_json_are_text() {
        let tree = parse("[9e0412, .inf, -.inf, .nan, 1e308]").unwrap();
        assert_eq!(tree.value.json(), serde_json::json!(["9e0412", ".inf", "-.inf", ".nan", 1e308]));
    }

    #[test]
    fn switches_and_numbers_may_be_quoted() {
        let tree = parse("['True', 'yes', \"off\", 'maybe', '0x10', '1_000', '-1', '']").unwrap();
        let Tree::List(items) = &tree.value else { panic!("{tree:?}") };
        let switches: Vec<_> = items.iter().map(|item| item.value.switch()).collect();
        let numbers: Vec<_> = items.iter().map(|item| item.value.number()).collect();
        assert_eq!(switches, [Some(true), Some(true), Some(false), None, None, None, None, None]);
        assert_eq!(numbers, [None, None, None, None, Some(16), Some(1_000), None, None]);
        for (text, switch, number) in [
            ("' true'", Some(true), None),
            ("|\n  3", None, Some(3)),
            ("'+7'", None, Some(7)),
            ("'0'", None, Some(0)),
            ("'010'", None, None),
            ("'1__0'", None, None),
            ("'1_'", None, None),
            ("'0x+1'", None, None),
            ("'++1'", None, None),
        ] {
            let tree = parse(text).unwrap().value;
            assert_eq!((tree.switch(), tree.number()), (switch, number), "{text}");
        }
    }

    #[test]
    fn mistakes_beyond_those_kept_are_counted() {
        let mut mistakes = Mistakes::default();
        (0..5_000).for_each(|line| mistakes.add(line, "wrong"));
        assert_eq!(mistakes.kept.len(), MISTAKES_KEPT_MAX);
        let message = mistakes.message("f").unwrap();
        assert!(message.starts_with("f has 5000 mistakes:\n  f:0: wrong\n"), "{message}");
        assert!(message.ends_with("and 4980 more"), "{message}");
    }

    #[test]
    fn types_are_read_from_the_tree() {
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Word {
            Yes,
        }
        #[derive(Debug, Default, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct All {
            text: String,
            number: Option<u32>,
            word: Option<Word>,
            pairs: Vec<(String, String)>,
            inner: Option<Box<All>>,
        }
        let read = |text: &str| parse(text).unwrap().value.read::<All>().map_err(|error| error.to_string());
        let inner = Some(Box::new(All { number: Some(3), ..All::default() }));
        let pairs = vec![("1".to_owned(), "2.0".to_owned())];
        let all = All { text: "1.10".to_owned(), number: Some(7), word: Some(Word::Yes), pairs, inner };
        let text = "{ text: 1.10, number: '7', word: yes, pairs: [[1, 2.0]], inner: { number: 3, pairs: } }";
        assert_eq!(read(text), Ok(all));
        assert_eq!(read("~"), Ok(All::default()));
        for (text, error) in [
            ("{ x: 1 }", "unknown field `x`, expected one of "),
            ("{ text: [] }", "invalid type: sequence, expected a string"),
            ("{ text: ~ }", "invalid type: unit value, expected a string"),
            ("{ number: -1 }", "invalid value: integer `-1`, expected u32"),
            ("{ pairs: [[a]] }", "invalid length 1, expected a tuple of size 2"),
            ("{ word: no }", "unknown variant `no`, expected `yes`"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(error), "{text}: {said}");
        }
    }
}
