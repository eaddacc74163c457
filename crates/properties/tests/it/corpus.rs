//! Every input of a corpus keeps its property, and so do mutations of it: the same ones in every run. libFuzzer finds more,
//! because it sees which code an input runs; `./dev fuzz` lets it.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use notbefore_properties::mutate::{self, Mutation, Rng};
use notbefore_properties::{ALL, PLANTED_BUG, Property, named, plant};

/// Mutations of each property's inputs; `NOTBEFORE_MUTATIONS` overrides it.
const MUTATIONS: usize = 2_000;
/// Enough to find the planted bug of each property; the rarest takes a third of them.
const MUTATIONS_TO_PLANTED: usize = 100_000;
/// Longest input, as in `./dev fuzz`.
const BYTES_MAX: usize = 8_192;
/// Least share of mutations that pass the parser, as in `./dev fuzz`: otherwise the code behind it would not be tested.
const PASSING_PER_CENT_MIN: usize = 20;

fn corpus(property: Property) -> Vec<Vec<u8>> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(property.name);
    let mut files: Vec<_> = fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", place.display());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Whether an input passes the parser.
fn check(property: Property, input: &[u8]) -> bool {
    catch_unwind(|| (property.check)(input)).unwrap_or_else(|_| panic!("{}", broken(property, input)))
}

fn broken(property: Property, input: &[u8]) -> String {
    let (name, text) = (property.name, String::from_utf8_lossy(input));
    format!("{name}: this input breaks the property; add it to fuzz/corpus/{name} with the fix: {text:?}")
}

/// Mutations of a corpus, and of passing mutations.
struct Mutations {
    mutation: Mutation,
    inputs: Vec<Vec<u8>>,
    /// The first inputs are the corpus.
    of_corpus: usize,
    rng: Rng,
}

impl Mutations {
    fn of(property: Property) -> Self {
        let inputs = corpus(property);
        let mutation = property.mutation.unwrap_or(mutate::lines);
        Self { mutation, of_corpus: inputs.len(), inputs, rng: Rng::new(1) }
    }

    /// A mutation; None if its input lacks the structure.
    fn next(&mut self) -> Option<Vec<u8>> {
        let input = &self.inputs[self.rng.below(self.inputs.len())];
        (self.mutation)(input, &mut self.rng).filter(|mutated| mutated.len() <= BYTES_MAX)
    }

    /// Keeps few at a time, so that the corpus is mutated more often than mutations.
    fn keep(&mut self, passed: Vec<u8>) {
        if self.inputs.len() < 2 * self.of_corpus {
            self.inputs.push(passed);
        } else {
            let place = self.of_corpus + self.rng.below(self.of_corpus);
            self.inputs[place] = passed;
        }
    }
}

#[test]
fn inputs_of_the_corpora_keep_their_properties() {
    for property in ALL {
        let inputs = corpus(property);
        assert!(inputs.iter().filter(|input| check(property, input)).count() > 0, "{}", property.name);
    }
}

#[test]
fn mutations_of_the_corpora_keep_the_properties() {
    let count = std::env::var("NOTBEFORE_MUTATIONS").map_or(MUTATIONS, |text| text.parse().unwrap());
    for property in ALL {
        let (mut mutations, mut passed) = (Mutations::of(property), 0);
        for _ in 0..count {
            if let Some(mutated) = mutations.next()
                && check(property, &mutated)
            {
                passed += 1;
                mutations.keep(mutated);
            }
        }
        println!("{}: {passed} of {count} mutations pass the parser", property.name);
        assert!(
            passed * 100 >= count * PASSING_PER_CENT_MIN,
            "{}: {passed} of {count} passed",
            property.name
        );
    }
}

#[test]
fn every_corpus_has_a_property() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for directory in fs::read_dir(place).unwrap() {
        let name = directory.unwrap().file_name().into_string().unwrap();
        assert!(named(&name).is_some(), "fuzz/corpus/{name} is of no property");
    }
}

/// What a corpus triggers is no proof that mutations, or libFuzzer, find anything.
#[test]
fn no_input_of_the_corpora_triggers_a_planted_bug() {
    plant();
    for property in ALL {
        for input in corpus(property) {
            let is_found = catch_unwind(|| (property.check)(&input)).is_err();
            let (name, text) = (property.name, String::from_utf8_lossy(&input));
            assert!(
                !is_found,
                "this input of fuzz/corpus/{name} triggers its planted bug, or another: {text:?}"
            );
        }
    }
}

/// Otherwise mutations would not reach what a property checks.
#[test]
fn mutations_find_the_planted_bugs() {
    plant();
    for property in ALL {
        let mut mutations = Mutations::of(property);
        let is_found = (0..MUTATIONS_TO_PLANTED).any(|_| {
            let Some(mutated) = mutations.next() else { return false };
            match catch_unwind(|| (property.check)(&mutated)) {
                Ok(true) => mutations.keep(mutated),
                Ok(false) => {}
                Err(panic) if panic.downcast_ref() == Some(&PLANTED_BUG) => return true,
                Err(_) => panic!("{}", broken(property, &mutated)),
            }
            false
        });
        assert!(
            is_found,
            "{MUTATIONS_TO_PLANTED} mutations do not find the planted bug of {}",
            property.name
        );
    }
}
