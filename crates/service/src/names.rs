//! Resolves names of VMs: an id, a full path, or the end of a path that matches one VM only.

use notbefore_core::VmId;
use uuid::Uuid;

use crate::view::{ScopeView, View};

/// Why a name does not resolve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("there is no VM {0}; 'notbefore vm list' lists the existing VMs")]
    Unknown(String),
    #[error("{name} could be any of {}; give more of the path", .candidates.join(", "))]
    Ambiguous { name: String, candidates: Vec<String> },
}

/// Most names compared with an unknown one, for suggestions. Limits the work to a few milliseconds.
const COMPARED_MAX: usize = 20_000;
/// Most suggestions.
const SUGGESTIONS_MAX: usize = 3;
/// Smallest similarity of a suggestion, from 0 to 1 (Jaro-Winkler).
const SIMILARITY_MIN: f64 = 0.75;

/// The known names that are most similar to an unknown one, ignoring case, the best first.
pub fn similar<K: AsRef<str>>(unknown: &str, known: impl Iterator<Item = K>) -> Vec<String> {
    let folded = unknown.to_lowercase();
    let mut like: Vec<(f64, K)> = known
        .take(COMPARED_MAX)
        .map(|known| (strsim::jaro_winkler(&folded, &known.as_ref().to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= SIMILARITY_MIN)
        .collect();
    like.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.as_ref().cmp(two.1.as_ref())));
    like.dedup_by(|one, two| one.1.as_ref() == two.1.as_ref());
    like.into_iter().take(SUGGESTIONS_MAX).map(|(_, known)| known.as_ref().to_owned()).collect()
}

/// A VM's full path.
pub fn path(scope: &ScopeView, vm: VmId) -> String {
    match scope.member(vm) {
        Some(member) => format!("{}/{}", scope.scope.path, member.name),
        None => format!("{}/{vm}", scope.scope.path),
    }
}

/// The first `most` names, and the number of the rest.
pub fn first_of(names: &[String], most: usize) -> String {
    let named = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

pub fn resolve(view: &View, text: &str) -> Result<VmId, NameError> {
    resolve_among(view, text, |_| true)
}

/// Resolves a name among the scopes that the caller sees. Others do not exist, not even as candidates.
pub fn resolve_among(view: &View, text: &str, sees: impl Fn(&ScopeView) -> bool) -> Result<VmId, NameError> {
    let scope_of = |vm| view.scope_of(vm).filter(|scope| sees(scope));
    if let Ok(id) = Uuid::parse_str(text) {
        let vm = VmId(id);
        return scope_of(vm).map(|_| vm).ok_or_else(|| NameError::Unknown(text.to_owned()));
    }
    let wanted = text.to_ascii_lowercase();
    let last = wanted.rsplit('/').next().unwrap_or_default();
    let fits = |vm: VmId| {
        let path = path(scope_of(vm)?, vm);
        let folded = path.to_ascii_lowercase();
        let ends = folded == wanted || folded.ends_with(&format!("/{wanted}"));
        ends.then_some((vm, path))
    };
    let mut found: Vec<(VmId, String)> = view.named(last).filter_map(fits).collect();
    match found.as_slice() {
        [] => Err(NameError::Unknown(text.to_owned())),
        [(vm, _)] => Ok(*vm),
        _ => {
            found.sort_by(|a, b| a.1.cmp(&b.1));
            let candidates = found.into_iter().map(|(_, path)| path).take(20).collect();
            Err(NameError::Ambiguous { name: text.to_owned(), candidates })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested_best_first_and_once() {
        let known = ["web-0", "db", "WEB-1", "web-10", "web-0", "batch_0"];
        assert_eq!(similar("wbe-0", known.iter()), ["web-0", "web-10", "WEB-1"]);
        assert_eq!(similar("Web-1", known.iter())[0], "WEB-1");
        assert!(similar("quux", known.iter()).is_empty());
        // Only the first names are compared.
        let many = std::iter::repeat_n("x", COMPARED_MAX).chain(["web-0"]);
        assert!(similar("web-0", many).is_empty());
    }
}
