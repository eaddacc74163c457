//! PowerShell samples, which cannot run here: checked with a grammar, and for the same names as the other samples.

use std::path::Path;
use std::process::{Command, Output};

use super::samples::example;

/// Addresses and fields of the guest API; the other samples use all of them.
const GUEST_WORDS: [&str; 14] = [
    "http://169.254.169.254",
    "/metadata/scheduledevents?api-version=",
    "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
    "2020-07-01",
    "2017-03-01",
    "Metadata",
    "DocumentIncarnation",
    "Events",
    "StartRequests",
    "EventId",
    "EventStatus",
    "EventType",
    "Resources",
    "NotBefore",
];
/// Addresses and fields of the operator API.
const OPERATOR_WORDS: [&str; 11] = [
    "http://127.0.0.1:9255",
    "/v1/vms/",
    "/v1/operations/",
    "Authorization",
    "Bearer",
    "Idempotency-Key",
    "targets",
    "not_before",
    "cancelled",
    "closed",
    "503",
];

fn read(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Errors of the grammar for some files.
fn parsed(files: &[&Path]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../target/tests-python/bin/python");
    assert!(python.exists(), "{} is missing: './dev test examples' makes it", python.display());
    Command::new(python).arg(root.join("tests/whole/examples/powershell.py")).args(files).output().unwrap()
}

#[test]
fn powershell_samples_parse() {
    let samples = ["powershell/Watch-Events.ps1", "operator/Restart-VM.ps1"].map(example);
    let output = parsed(&[&samples[0], &samples[1]]);
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );

    // The grammar must detect an error.
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken.ps1");
    std::fs::write(&broken, read("powershell/Watch-Events.ps1").replacen("{ throw", "throw", 1)).unwrap();
    let output = parsed(&[&broken]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("not PowerShell"), "{output:?}");
}

/// In PowerShell, `$id?` is a variable named `id?`, and `$id:` begins a variable of a scope named `id`, also in
/// strings. `${id}?` is correct. The grammar accepts both.
#[test]
fn sample_variables_are_delimited() {
    let swallowed = |text: &str| {
        let names = text.split('$').skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest.split_at(end)
        });
        let scope = |name: &str, rest: &str| rest.starts_with(':') && name != "env";
        let of =
            |(name, rest): (&str, &str)| !name.is_empty() && (rest.starts_with('?') || scope(name, rest));
        names.filter(|found| of(*found)).map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    for sample in ["powershell/Watch-Events.ps1", "operator/Restart-VM.ps1"] {
        assert_eq!(swallowed(&read(sample)), Vec::<String>::new(), "{sample}");
    }
    let careless = read("powershell/Watch-Events.ps1").replace("${id}", "$id");
    assert_eq!(swallowed(&careless), ["id", "id"]);
}

#[test]
fn powershell_samples_match_other_samples() {
    let guests = [
        "bash/watch-events.sh",
        "python3/watch_events.py",
        "csharp/WatchEvents.cs",
        "powershell/Watch-Events.ps1",
    ];
    let operators = ["operator/restart-vm.sh", "operator/Restart-VM.ps1"];
    for (files, words) in [(&guests[..], &GUEST_WORDS[..]), (&operators[..], &OPERATOR_WORDS[..])] {
        for (file, word) in files.iter().flat_map(|file| words.iter().map(move |word| (file, word))) {
            assert!(read(file).contains(word), "{file} does not speak of {word}");
        }
    }
}
