//! Runs a property of `crates/properties` as a fuzz target: counts passing inputs, and plants the property's bug on request.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::{Corpus, fuzzer_mutate};
use notbefore_properties::mutate::Rng;
use notbefore_properties::{Property, named, plant};

/// With this variable set, every target has a planted bug that the fuzzer must find.
const PLANTED: &str = "NOTBEFORE_FUZZ_PLANTED";
/// One in this many mutations is libFuzzer's own, on bytes.
const BYTES_ONE_IN: usize = 8;

static RUN: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn atexit(callback: extern "C" fn()) -> i32;
}

/// A fuzz target.
pub struct Target {
    name: &'static str,
    property: OnceLock<Property>,
}

impl Target {
    pub const fn new(name: &'static str) -> Self {
        Self { name, property: OnceLock::new() }
    }

    fn property(&self) -> &Property {
        self.property.get_or_init(|| named(self.name).expect("a target has the name of a property"))
    }

    /// Prepares the target before its first input.
    pub fn begin(&self) {
        if std::env::var_os(PLANTED).is_some() {
            plant();
        }
        // SAFETY: the callback touches atomics and standard error only.
        unsafe { atexit(report) };
    }

    /// Checks an input. Only passing inputs may join the corpus.
    pub fn run(&self, bytes: &[u8]) -> Corpus {
        RUN.fetch_add(1, Ordering::Relaxed);
        if !(self.property().check)(bytes) {
            return Corpus::Reject;
        }
        PASSED.fetch_add(1, Ordering::Relaxed);
        Corpus::Keep
    }

    /// Called by libFuzzer; changes the input in place.
    pub fn mutate(&self, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
        let mut rng = Rng::new(seed.into());
        if let Some(mutation) = self.property().mutation
            && !rng.one_in(BYTES_ONE_IN)
            && let Some(mutated) = mutation(&data[..size], &mut rng)
            && !mutated.is_empty()
            && mutated.len() <= max_size
        {
            data[..mutated.len()].copy_from_slice(&mutated);
            return mutated.len();
        }
        fuzzer_mutate(data, size, max_size)
    }
}

/// `./dev fuzz` parses this line.
extern "C" fn report() {
    let (run, passed) = (RUN.load(Ordering::Relaxed), PASSED.load(Ordering::Relaxed));
    eprintln!("passed the parser: {} % ({passed} of {run})", passed * 100 / run.max(1));
}

/// Defines the fuzz target of a property.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        static TARGET: $crate::Target = $crate::Target::new($name);
        libfuzzer_sys::fuzz_target!(
            init: TARGET.begin(),
            |bytes: &[u8]| -> libfuzzer_sys::Corpus { TARGET.run(bytes) }
        );
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            TARGET.mutate(data, size, max_size, seed)
        });
    };
}
