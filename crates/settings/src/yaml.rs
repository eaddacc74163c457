//! YAML files whose mistakes are all reported at once, with line and cure: the fleet file and scenarios.
//!
//! [`from_yaml`] parses text, also as a [`Tree`] of values with their lines. A [`Mapping`] reads the keys of one
//! mapping, records unknown keys and values of the wrong form as [`Mistakes`], and goes on with defaults.

use std::fmt;

use notbefore_wire::text::{printable, shorten};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use serde_saphyr::Spanned;
use serde_saphyr::budget::BudgetBreach;

use crate::suggest::nearest;

/// Limit of the parser's message, which quotes the lines around an error.
const SHOWN_CHARACTERS_MAX: usize = 1_000;

/// Limit of mistakes in a message.
const MISTAKES_SHOWN_MAX: usize = 20;

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

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(At { value, line: referenced.line() })
    }
}

/// All mistakes of a file, so that they can be corrected at once.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<(u64, String)>);

impl Mistakes {
    pub fn add(&mut self, line: u64, what: impl Into<String>) {
        self.0.push((line, what.into()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A message with all mistakes of the file `name`, sorted by line; none if there are none.
    pub fn message(mut self, name: &str) -> Option<String> {
        self.0.sort_by_key(|(line, _)| *line);
        let name = printable(name);
        let one = |(line, what): &(u64, String)| format!("{name}:{line}: {what}");
        let mut lines: Vec<String> = self.0.iter().take(MISTAKES_SHOWN_MAX).map(one).collect();
        match self.0.len() {
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
pub fn from_yaml<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
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
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Whether the file exceeds a limit of the parser, mostly because anchors and aliases expand.
pub fn is_of_budget(error: &serde_saphyr::Error) -> bool {
    breach(error).is_some()
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
    Scalar(Json),
    List(Vec<At<Tree>>),
    Map(Vec<(At<String>, At<Tree>)>),
}

impl Tree {
    pub fn json(&self) -> Json {
        match self {
            Tree::Scalar(value) => value.clone(),
            Tree::List(items) => items.iter().map(|item| item.value.json()).collect(),
            Tree::Map(entries) => {
                entries.iter().map(|(key, tree)| (key.value.clone(), tree.value.json())).collect()
            }
        }
    }

    /// The value in a message.
    pub fn shown(&self) -> String {
        match self {
            Tree::Scalar(Json::Null) => "nothing".to_owned(),
            Tree::Scalar(value) => shorten(&value.to_string(), VALUE_CHARS_MAX),
            Tree::List(_) => "a list".to_owned(),
            Tree::Map(_) => "a mapping".to_owned(),
        }
    }
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
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Json::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Json::Null))
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
        found.filter(|tree| !matches!(tree.value, Tree::Scalar(Json::Null)))
    }

    pub fn needs(&mut self, key: &str, expected: &str) {
        if self.value(key).is_none() {
            self.mistakes.add(self.line, format!("{key} is missing; expected {expected}"));
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
        let value = match &tree.value {
            Tree::Scalar(Json::String(text)) => text.clone(),
            // Also a number: `zone: 1`.
            Tree::Scalar(other) => other.to_string(),
            Tree::List(_) | Tree::Map(_) => {
                self.wrong(key, "text", tree);
                return None;
            }
        };
        Some(At { value, line: tree.line })
    }

    pub fn number(&mut self, key: &str) -> u32 {
        let Some(tree) = self.value(key) else { return 0 };
        let number = match &tree.value {
            Tree::Scalar(value) => value.as_u64().and_then(|number| u32::try_from(number).ok()),
            Tree::List(_) | Tree::Map(_) => None,
        };
        if number.is_none() {
            self.wrong(key, &format!("a whole number from 0 to {}", u32::MAX), tree);
        }
        number.unwrap_or_default()
    }

    pub fn switch(&mut self, key: &str) -> bool {
        match self.value(key) {
            None => false,
            Some(At { value: Tree::Scalar(Json::Bool(is_on)), .. }) => *is_on,
            Some(tree) => {
                self.wrong(key, "true or false", tree);
                false
            }
        }
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
