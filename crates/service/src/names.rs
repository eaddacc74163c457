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
