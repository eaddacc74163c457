//! Runs a target's check, counts passing inputs, and plants a bug on request.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libfuzzer_sys::Corpus;

/// With this variable set, every target has a planted bug that the fuzzer must find.
const PLANTED: &str = "NOTBEFORE_FUZZ_PLANTED";

static IS_PLANTED: AtomicBool = AtomicBool::new(false);
static RUN: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn atexit(callback: extern "C" fn()) -> i32;
}

/// Prepares a target before its first input.
pub fn begin() {
    IS_PLANTED.store(std::env::var_os(PLANTED).is_some(), Ordering::Relaxed);
    // SAFETY: the callback touches atomics and standard error only.
    unsafe { atexit(report) };
}

/// `./dev fuzz` parses this line.
extern "C" fn report() {
    let (run, passed) = (RUN.load(Ordering::Relaxed), PASSED.load(Ordering::Relaxed));
    eprintln!("passed the parser: {} % ({passed} of {run})", passed * 100 / run.max(1));
}

/// Checks an input. Only passing inputs may join the corpus.
pub fn run(bytes: &[u8], check: fn(&[u8]) -> bool) -> Corpus {
    RUN.fetch_add(1, Ordering::Relaxed);
    match check(bytes) {
        true => {
            PASSED.fetch_add(1, Ordering::Relaxed);
            Corpus::Keep
        }
        false => Corpus::Reject,
    }
}

/// The planted bug: panics if enabled and the condition holds. The condition needs a passing input that is not in the
/// corpus.
pub fn planted_bug(condition: bool) {
    if condition && IS_PLANTED.load(Ordering::Relaxed) {
        panic!("the planted bug");
    }
}

/// Defines the fuzz target of a check and a mutation.
#[macro_export]
macro_rules! target {
    ($check:path, $mutation:path) => {
        libfuzzer_sys::fuzz_target!(
            init: $crate::target::begin(),
            |bytes: &[u8]| -> libfuzzer_sys::Corpus { $crate::target::run(bytes, $check) }
        );
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate::mutate(data, size, max_size, seed, $mutation)
        });
    };
}
