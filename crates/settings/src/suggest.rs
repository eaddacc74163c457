//! "Did you mean" suggestions by Damerau-Levenshtein distance.

/// Least similarity (1 is equal) for a suggestion. A transposed or missing letter in a short name passes, another word
/// does not.
const SIMILARITY_MIN: f64 = 0.7;

/// Similarity of two names, ignoring case; `-` and `_` are equal.
pub fn similarity(left: &str, right: &str) -> f64 {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    strsim::normalized_damerau_levenshtein(&plain(left), &plain(right))
}

/// The best candidate, if it is similar enough.
pub fn best(scored: impl Iterator<Item = (f64, String)>) -> Option<String> {
    let best = scored.max_by(|(left, _), (right, _)| left.total_cmp(right));
    best.filter(|(score, _)| *score >= SIMILARITY_MIN).map(|(_, name)| name)
}

/// The known name that was probably meant.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    best(known.into_iter().map(|name| (similarity(unknown, name), name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_suggested_and_other_words_not() {
        let known = ["timeout", "retries", "Reboot"];
        assert_eq!(nearest("timout", known).as_deref(), Some("timeout"));
        assert_eq!(nearest("REBOTO", known).as_deref(), Some("Reboot"));
        assert_eq!(nearest("colour", known), None);
    }
}
