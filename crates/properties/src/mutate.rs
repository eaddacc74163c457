//! Structure-aware mutations, so that many inputs still pass the parser.

use serde_json::{Map, Value};

/// A mutation of an input; None if the input lacks the structure.
pub type Mutation = fn(&[u8], &mut Rng) -> Option<Vec<u8>>;

/// Strings at the limits of parsers.
const TEXTS: [&str; 24] = [
    "",
    " ",
    "0",
    "-1",
    "1",
    "a",
    "A",
    "_",
    "é",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\n",
    "\\",
    "\"",
    "null",
    "true",
    "2026-11-20T08:00:00Z",
    "Mon, 19 Sep 2016 18:29:47 GMT",
    "602d9444-d2cd-49c7-8624-8643e7171297",
    "10.0.0.4",
    "5m",
    "default/default/web",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// Random numbers of one mutation (SplitMix64). Written by hand, so that a seed stands for the same mutation forever.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A random number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below the bound; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % bound.max(1) as u64).unwrap_or_default()
    }

    /// True once in `n` times on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A random item; None if there is none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }
}

/// Number of changes per mutation: mostly one, because each change may invalidate the input.
fn changes(rng: &mut Rng) -> usize {
    match rng.below(8) {
        0 => 3,
        1 => 2,
        _ => 1,
    }
}

/// Mutates values of a JSON text.
pub fn json(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut value = serde_json::from_slice(bytes).ok()?;
    change(&mut value, rng);
    serde_json::to_vec(&value).ok()
}

/// Mutates JSON after a first line that stays.
pub fn json_behind_a_line(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    Some([&bytes[..end], &json(&bytes[end..], rng)?].concat())
}

/// Mutates parts of a value.
pub fn change(value: &mut Value, rng: &mut Rng) {
    for _ in 0..changes(rng) {
        let other = nth(value, &mut rng.below(count(value))).cloned().unwrap_or_default();
        let mut place = rng.below(count(value));
        // Leaves are far more frequent than lists and objects; numbers may change where words may not.
        let wanted: fn(&Value) -> bool = match rng.below(8) {
            0 => |node| node.is_array() || node.is_object(),
            1..4 => |node| node.is_number() || node.is_boolean(),
            _ => |_| true,
        };
        for _ in 0..16 {
            if nth(value, &mut { place }).is_some_and(wanted) {
                break;
            }
            place = rng.below(count(value));
        }
        if let Some(node) = nth_mut(value, &mut place) {
            change_node(node, other, rng);
        }
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Box::new(std::iter::empty()),
    }
}

fn count(value: &Value) -> usize {
    1 + children(value).map(count).sum::<usize>()
}

fn nth<'v>(value: &'v Value, place: &mut usize) -> Option<&'v Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    children(value).find_map(|child| nth(child, place))
}

fn nth_mut<'v>(value: &'v mut Value, place: &mut usize) -> Option<&'v mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|child| nth_mut(child, place)),
        Value::Object(fields) => fields.values_mut().find_map(|child| nth_mut(child, place)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn change_node(node: &mut Value, other: Value, rng: &mut Rng) {
    if rng.one_in(16) {
        *node = other;
        return;
    }
    match node {
        Value::Null => *node = if rng.one_in(2) { other } else { number(0, rng) },
        Value::Bool(bool) => *bool = !*bool,
        Value::Number(old) => *node = number(old.as_i64().unwrap_or_default(), rng),
        Value::String(text) => {
            *text = match other.as_str() {
                Some(other) if rng.one_in(8) => other.to_owned(),
                Some(_) | None => change_text(text, rng),
            }
        }
        Value::Array(items) => change_list(items, other, rng),
        Value::Object(fields) => change_fields(fields, other, rng),
    }
}

fn number(old: i64, rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => 0.into(),
        1 => old.wrapping_add(1).into(),
        2 => old.wrapping_sub(1).into(),
        3 => (1_i64 << rng.below(63)).into(),
        4 => rng.number().into(),
        // Most valid numbers are none of these.
        5 if rng.one_in(4) => old.wrapping_neg().into(),
        6 if rng.one_in(4) => (old as f64 / 4.0).into(),
        _ => rng.below(1_000).into(),
    }
}

fn change_list(items: &mut Vec<Value>, other: Value, rng: &mut Rng) {
    let (at, with) = (rng.below(items.len()), rng.below(items.len()));
    match rng.below(5) {
        0 if !items.is_empty() => drop(items.remove(at)),
        1 if !items.is_empty() => items.swap(at, with),
        2 => items.push(other),
        // Items of a list usually have the same shape.
        _ if !items.is_empty() => {
            let mut twin = items[at].clone();
            let mut place = rng.below(count(&twin));
            if rng.one_in(2)
                && let Some(node) = nth_mut(&mut twin, &mut place)
            {
                change_node(node, other, rng);
            }
            items.insert(with, twin);
        }
        _ => items.push(other),
    }
}

fn change_fields(fields: &mut Map<String, Value>, other: Value, rng: &mut Rng) {
    let names: Vec<String> = fields.keys().cloned().collect();
    let Some(name) = rng.pick(&names) else { return drop(fields.insert("a".to_owned(), other)) };
    match rng.below(8) {
        0 => drop(fields.remove(name)),
        1 => {
            let value = fields.remove(name).unwrap_or_default();
            fields.insert(change_text(name, rng), value);
        }
        2 => drop(fields.insert(change_text(name, rng), other)),
        // Field values change more often than the set of fields.
        _ => {
            if let Some(value) = fields.get_mut(name) {
                change_node(value, other, rng);
            }
        }
    }
}

/// Adds, removes or replaces a character; or uses a string at the limits.
pub fn change_text(text: &str, rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = rng.below(chars.len());
    match rng.below(8) {
        0 if !chars.is_empty() => drop(chars.remove(at)),
        1 => return rng.pick(&TEXTS).map(|text| (*text).to_owned()).unwrap_or_default(),
        2 => chars.insert(at, char::from(rng.below(128) as u8)),
        3 => chars.extend_from_within(at..),
        4 if !chars.is_empty() => {
            chars[at] = if chars[at].is_uppercase() {
                chars[at].to_ascii_lowercase()
            } else {
                chars[at].to_ascii_uppercase()
            }
        }
        _ => return exchange_one(text, rng),
    }
    chars.into_iter().collect()
}

/// Replaces a digit by a digit or a letter by a letter, so that ids, times and names stay valid.
fn exchange_one(text: &str, rng: &mut Rng) -> String {
    let at = rng.below(text.chars().count());
    let mut other = |c: char| match c {
        '0'..='9' => char::from(b'0' + rng.below(10) as u8),
        'a'..='f' => char::from(b'a' + rng.below(6) as u8),
        'g'..='z' => char::from(b'a' + rng.below(26) as u8),
        other => other,
    };
    text.chars().enumerate().map(|(place, c)| if place == at { other(c) } else { c }).collect()
}

/// Mutates lines: remove, duplicate, swap, or change a word.
pub fn lines(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for _ in 0..changes(rng) {
        let (at, with) = (rng.below(lines.len()), rng.below(lines.len()));
        let line = lines.get(at)?.clone();
        match rng.below(16) {
            0 => drop(lines.remove(at)),
            1 | 2 => lines.insert(with, change_word(&line, text, rng)),
            3 => lines.swap(at, with),
            _ => lines[at] = change_word(&line, text, rng),
        }
    }
    Some(lines.concat().into_bytes())
}

/// Changes a word of a line, or inserts another word of the text: rarely a key, often one with a number.
fn change_word(line: &str, text: &str, rng: &mut Rng) -> String {
    let is_in_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    let starts = line.char_indices().filter(|(at, c)| is_in_word(*c) && !line[..*at].ends_with(is_in_word));
    let word_from = |start: usize| {
        let end = line[start..].find(|c| !is_in_word(c)).map_or(line.len(), |length| start + length);
        (start, end)
    };
    let mut spots: Vec<(usize, usize)> = starts.map(|(start, _)| word_from(start)).collect();
    if !rng.one_in(8) {
        spots.retain(|(_, end)| !line[*end..].starts_with([':', '=']));
    }
    if !rng.one_in(4) {
        spots.retain(|(start, end)| line[*start..*end].contains(|c: char| c.is_ascii_digit()));
    }
    let Some(&(start, end)) = rng.pick(&spots) else { return line.to_owned() };
    let words: Vec<&str> = text.split(|c| !is_in_word(c)).filter(|word| !word.is_empty()).collect();
    let word = match rng.below(4) {
        0 => rng.pick(&words).map(|word| (*word).to_owned()).unwrap_or_default(),
        1 => change_text(&line[start..end], rng),
        _ => exchange_one(&line[start..end], rng),
    };
    format!("{}{word}{}", &line[..start], &line[end..])
}
