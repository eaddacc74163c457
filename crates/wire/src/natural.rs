//! Natural order of names: digits compare by value, so `host2` is before `host10`.

use std::cmp::Ordering;

/// A total order: names that differ in leading zeros only compare as text.
pub fn compare(one: &str, two: &str) -> Ordering {
    parts(one).cmp(parts(two)).then_with(|| one.cmp(two))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// A number without leading zeros: the longer one is larger.
    Number(usize, &'a str),
    Text(&'a str),
}

fn parts(mut text: &str) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        let is_number = text.bytes().next()?.is_ascii_digit();
        let end = text.bytes().position(|byte| byte.is_ascii_digit() != is_number).unwrap_or(text.len());
        let (part, rest) = text.split_at(end);
        text = rest;
        let digits = part.trim_start_matches('0');
        Some(if is_number { Part::Number(digits.len(), digits) } else { Part::Text(part) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        let sorted =
            ["", "2", "10", "host", "host02", "host2", "host3", "host10", "host10-a", "host10-b", "ä"];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
    }
}
