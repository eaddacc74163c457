//! Replays serialized histories: the regressions in `regressions/`, and the file in `NOTBEFORE_REPLAY`.

use std::path::Path;

use notbefore_sim::{History, play};

fn replay(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let history = History::from_lines(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match play(&history) {
        Ok(stats) => println!("{}: {} steps, {stats:?}", path.display(), history.steps.len()),
        Err(violation) => panic!("{}: {violation}", path.display()),
    }
}

#[test]
fn replay_regressions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    assert!(!paths.is_empty(), "no histories in {}", folder.display());
    paths.iter().for_each(|path| replay(path));
}

/// What broke when several engines shared a store without a leader. Each history still breaks that way if the nodes act
/// as if they were alone, and passes with a leader.
#[test]
fn hazards_of_a_shared_store_need_a_leader() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hazards");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 9);
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.lines().find_map(|line| line.strip_prefix("# without a leader: ")).unwrap();
        let mut history = History::from_lines(&text).unwrap();
        if let Err(violation) = play(&history) {
            wrong.push(format!("{} with a leader: {violation}", path.display()));
        }
        history.setup.leaderless = true;
        match play(&history) {
            Err(violation) if violation.words == words => {}
            Err(violation) => wrong.push(format!("{} without: {violation}", path.display())),
            Ok(_) => wrong.push(format!("{} passes without a leader", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn replay_the_named_history() {
    match std::env::var_os("NOTBEFORE_REPLAY") {
        Some(path) => replay(Path::new(&path)),
        None => println!("NOTBEFORE_REPLAY is not set; only the regressions were replayed"),
    }
}

#[test]
fn a_history_is_written_as_it_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let history = History::from_lines(&text).unwrap();
        assert_eq!(History::from_lines(&history.to_lines()).unwrap(), history);
    }
}

/// `./dev sim --mutants` plants these mistakes; each must fit the code as it is.
#[test]
fn mutants_fit_the_code() {
    let sim = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(sim.join("mutants.txt")).unwrap();
    let mut mutants = 0;
    for mutant in text.split("\n== ").skip(1) {
        let lines: Vec<&str> = mutant.lines().skip(1).filter(|line| !line.is_empty()).collect();
        assert!(!lines.is_empty() && lines.len().is_multiple_of(3), "{mutant}");
        for change in lines.chunks(3) {
            let [file, old, new] = change else { panic!("{mutant}") };
            let code = std::fs::read_to_string(sim.join("..").join(file)).unwrap();
            let old = old.strip_prefix("- ").unwrap();
            assert!(new.starts_with("+ "), "{mutant}");
            assert_eq!(code.lines().filter(|line| line.trim() == old).count(), 1, "{file}: {old}");
        }
        mutants += 1;
    }
    assert!(mutants >= 10);
}
