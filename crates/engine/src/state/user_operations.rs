//! Counters of stored user operations per scope: open ones, and ended ones that are kept as history. Closed operations
//! leave memory, so their scopes are kept here until their records are removed.

use std::collections::HashMap;

use notbefore_core::{Operation, OperationId, ScopeId, Source};

#[derive(Debug, Default)]
pub struct UserOperations {
    scopes_of: HashMap<OperationId, Box<[ScopeId]>>,
    by_scope: HashMap<ScopeId, usize>,
}

impl UserOperations {
    pub fn stored(&self, scope: &ScopeId) -> usize {
        self.by_scope.get(scope).copied().unwrap_or_default()
    }

    pub fn ids(&self) -> impl Iterator<Item = OperationId> {
        self.scopes_of.keys().copied()
    }

    /// An operation's record was written or removed.
    pub fn follow(&mut self, id: OperationId, operation: Option<&Operation>) {
        match operation {
            // Its scopes never change.
            Some(operation) if operation.cause.source() == Source::User => {
                if self.scopes_of.contains_key(&id) {
                    return;
                }
                let mut scopes: Vec<ScopeId> =
                    operation.targets.iter().map(|target| target.scope.clone()).collect();
                scopes.dedup();
                for scope in &scopes {
                    *self.by_scope.entry(scope.clone()).or_default() += 1;
                }
                self.scopes_of.insert(id, scopes.into());
            }
            Some(_) => {}
            None => {
                for scope in self.scopes_of.remove(&id).into_iter().flatten() {
                    if let Some(count) = self.by_scope.get_mut(&scope) {
                        *count -= 1;
                        if *count == 0 {
                            self.by_scope.remove(&scope);
                        }
                    }
                }
            }
        }
    }
}
