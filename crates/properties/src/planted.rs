//! Planted bugs: each property has one, to see that it is found.

use std::cell::Cell;

thread_local! {
    static IS_PLANTED: Cell<bool> = const { Cell::new(false) };
}

/// What a planted bug panics with; `./dev fuzz` looks for it, too.
pub const PLANTED_BUG: &str = "the planted bug";

/// Plants the bugs for this thread.
pub fn plant() {
    IS_PLANTED.set(true);
}

/// A planted bug: panics if the condition holds. The condition needs a passing input that is not in the corpus.
pub fn planted_bug(condition: bool) {
    if condition && IS_PLANTED.get() {
        std::panic::panic_any(PLANTED_BUG);
    }
}
