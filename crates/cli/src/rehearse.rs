//! `notbefore rehearse`: plays a scenario to a handler and prints the verdict. The work is in `notbefore_rehearse`.

mod schema;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use notbefore_rehearse::doctor::{DoctorNews, examine};
use notbefore_rehearse::handler::HandlerSpec;
use notbefore_rehearse::keeper::Keeper;
use notbefore_rehearse::library;
use notbefore_rehearse::namespace::{Namespace, NamespaceError, reexec_unprivileged};
use notbefore_rehearse::pace::Pace;
use notbefore_rehearse::recording::Marker;
use notbefore_rehearse::report::{Report, html, junit, text};
use notbefore_rehearse::scenario::{self, Scenario};
use notbefore_rehearse::stage::{Options, StageError, StageNews, Watcher, rehearse};
use notbefore_settings::suggest::nearest;
use notbefore_settings::yaml;
use notbefore_wire::json::Ordered;
use notbefore_wire::text::{counted, shorten};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::args::{Output, Play, Rehearse, RehearseVerb};
use crate::exit::UsageError;
use crate::output;
use crate::progress::Progress;
use crate::table::Column;

/// Width of the timeline without a terminal.
const WIDTH: usize = 100;

/// An expectation failed. The report says which, so the error has no further text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotPassed(String);

pub fn run(rehearse: Rehearse, output: Output) -> Result<()> {
    match rehearse.verb {
        Some(RehearseVerb::List) => list(output),
        Some(RehearseVerb::Show { scenario }) => show(&scenario, output),
        Some(RehearseVerb::Schema) => output.answer(&schema::schema(), output::json),
        Some(RehearseVerb::Report { files, html, output }) => merge(&files, html, output),
        Some(RehearseVerb::Doctor { only, side_by_side, play }) => {
            let scenarios = match only.is_empty() {
                true => library::all().map_err(UsageError)?,
                false => only.iter().map(|name| find(name)).collect::<Result<_>>()?,
            };
            doctor(scenarios, &play, side_by_side, output)
        }
        None => {
            let name = rehearse.scenario.context("a scenario is missing")?;
            one(find(&name)?, &rehearse.play, output)
        }
    }
}

/// A line of `rehearse list`.
#[derive(Serialize)]
struct Listed {
    name: String,
    summary: String,
}

fn list(output: Output) -> Result<()> {
    let scenarios = library::all().map_err(UsageError)?;
    let listed = |scenario: Scenario| Listed { name: scenario.name, summary: scenario.summary };
    let listed: Vec<Listed> = scenarios.into_iter().map(listed).collect();
    let columns = [
        Column::new("NAME", &|one: &Listed| one.name.clone()),
        Column::text("WHAT HAPPENS", &|one| one.summary.clone()),
    ];
    output::text(&output.list(&listed, &columns, "there are no scenarios")?)
}

/// The text of the file, which is YAML, or the same as JSON.
fn show(name: &str, output: Output) -> Result<()> {
    let known = library::ALL.iter().find(|(known, _)| *known == name);
    let (_, text) = known.ok_or_else(|| UsageError(unknown(name)))?;
    match output {
        Output::Json => output::json(&yaml::parse(text)?.value.json()),
        Output::Table | Output::Wide | Output::Yaml | Output::Name => output::text(text),
    }
}

/// A scenario of the library, or of a file.
fn find(name: &str) -> Result<Scenario> {
    if let Some(scenario) = library::find(name) {
        return Ok(scenario.map_err(UsageError)?);
    }
    let path = Path::new(name);
    let is_file = name.contains(['/', '.']) || path.exists();
    if !is_file {
        let cure = "a file needs a name with a dot or a slash";
        return Err(UsageError(format!("{}, and {cure}", unknown(name))).into());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let shown = output::file_name(path);
    let text = read_scenario(path).map_err(|error| {
        let is = |kind: ErrorKind| error.kind() == kind;
        let cure = if is(ErrorKind::NotFound) {
            match nearest_scenario(&stem) {
                Some(meant) => format!("; did you mean the scenario {meant}, without a suffix?"),
                None => "; 'notbefore rehearse list' lists the scenarios that need no file".to_owned(),
            }
        } else if is(ErrorKind::IsADirectory) {
            "; name a file in it".to_owned()
        } else if is(ErrorKind::PermissionDenied) {
            "; check the permissions of the file and of its directories".to_owned()
        } else {
            String::new()
        };
        UsageError(format!("cannot read the scenario {shown}: {error}{cure}"))
    })?;
    Ok(scenario::parse(&shown, &stem, &text).map_err(UsageError)?)
}

/// The text of a file; not much more than is allowed, so that the parser refuses a longer one.
fn read_scenario(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(scenario::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > scenario::FILE_BYTES_MAX {
        // The cut may be within a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        std::io::Error::new(
            ErrorKind::InvalidData,
            format!("line {line} is not UTF-8; save the file as UTF-8"),
        )
    })
}

fn unknown(name: &str) -> String {
    let meant = nearest_scenario(name);
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    format!("there is no scenario {name:?}; {meant}'notbefore rehearse list' lists them")
}

fn nearest_scenario(name: &str) -> Option<String> {
    nearest(name, library::ALL.iter().map(|(known, _)| *known))
}

fn options(play: &Play, watcher: Option<Watcher>) -> Result<Options> {
    let markers = [(Marker::Drained, &play.drained), (Marker::Restored, &play.restored)];
    let markers: BTreeMap<_, _> =
        markers.into_iter().filter_map(|(marker, source)| Some((marker, source.clone()?))).collect();
    if play.handler.is_empty() {
        for (flag, is_set) in [("--netns", play.netns), ("--repeat", play.repeat.is_some())] {
            if is_set {
                return Err(UsageError(format!("{flag} needs a handler; name it after --")).into());
            }
        }
        if !markers.is_empty() {
            return Err(
                UsageError("--drained and --restored need a handler; name it after --".to_owned()).into()
            );
        }
    }
    let floor = play.polls_every.map_or(play.floor, |every| play.floor.max(every * 2));
    let mut handler =
        HandlerSpec { command: play.handler.clone(), repeat: play.repeat, markers, keeper: None };
    if !play.handler.is_empty() {
        let keeper = Keeper::start().map_err(|error| {
            let cure = "see if processes (ulimit -u) or memory are used up";
            UsageError(format!(
                "cannot start the process that ends handlers of a killed rehearsal: {error}; {cure}"
            ))
        })?;
        handler.keeper = Some(keeper);
    }
    Ok(Options {
        pace: Pace { compress: play.compress, floor },
        polls_every: play.polls_every,
        handler: (!play.handler.is_empty()).then_some(handler),
        uses_namespaces: play.netns,
        watcher,
    })
}

/// Before anything is played, which takes minutes, and before threads exist: makes sure that the files can be written,
/// the handler can be run, and network namespaces can be created.
fn prepare(play: &Play) -> Result<()> {
    if let Some(first) = play.misplaced.first() {
        let words: Vec<_> =
            play.misplaced.iter().chain(&play.handler).map(|word| word.to_string_lossy()).collect();
        let (first, words) = (first.to_string_lossy(), shorten(&words.join(" "), 200));
        let cure = format!("write -- before the handler, after all flags: -- {words}");
        return Err(UsageError(format!("unexpected word {first:?}; {cure}")).into());
    }
    check_files(play)?;
    if !play.handler.is_empty() {
        let spec = HandlerSpec {
            command: play.handler.clone(),
            repeat: None,
            markers: BTreeMap::new(),
            keeper: None,
        };
        spec.check().map_err(|error| UsageError(error.to_string()))?;
    }
    if !play.netns || play.handler.is_empty() {
        return Ok(());
    }
    match Namespace::create() {
        Ok(_) => Ok(()),
        Err(NamespaceError::NotPermitted(_)) => Err(UsageError(reexec_unprivileged().to_string()).into()),
        Err(error) => Err(UsageError(error.to_string()).into()),
    }
}

fn one(scenario: Scenario, play: &Play, output: Output) -> Result<()> {
    prepare(play)?;
    let has_handler = !play.handler.is_empty();
    let watcher: Watcher = Arc::new(move |news| {
        if let (StageNews::Ready(endpoints), false) = (news, has_handler) {
            output::eprint("Waiting for handlers. Point one at each of these:");
            for (vm, url) in endpoints {
                output::eprint(&format!("  {vm}  {url}/metadata/scheduledevents?api-version=2020-07-01"));
            }
        }
    });
    let options = options(play, Some(watcher))?;
    let (recording, verdict) = in_runtime(|stop| rehearse(scenario, options, stop))?.map_err(cannot_run)?;
    let report = Report::new(recording, verdict);
    if output.is_text() {
        let (width, has_colours) = terminal();
        output::text(&text::timeline(&report.recording, &report.verdict, width, has_colours))?;
    } else {
        output.answer(&report, |_| Ok(()))?;
    }
    write_files(play, std::slice::from_ref(&report))?;
    conclude(&[report])
}

/// The report card of a handler, or several recordings in one.
#[derive(Serialize)]
struct Card {
    passed: usize,
    failed: usize,
    /// Scenarios that could not be played, with the reason.
    not_played: BTreeMap<String, String>,
    reports: Vec<Report>,
}

impl Card {
    fn new(reports: Vec<Report>, not_played: BTreeMap<String, String>) -> Self {
        let passed = reports.iter().filter(|report| report.verdict.is_passed()).count();
        Self { passed, failed: reports.len() - passed, not_played, reports }
    }
}

fn doctor(scenarios: Vec<Scenario>, play: &Play, side_by_side: usize, output: Output) -> Result<()> {
    if play.handler.is_empty() && play.misplaced.is_empty() {
        return Err(UsageError("doctor needs a handler; name it after --".to_owned()).into());
    }
    prepare(play)?;
    let options = options(play, None)?;
    let (total, mut done) = (scenarios.len(), 0);
    let progress = Progress::for_scenarios(total as u64);
    let mut playing: Vec<String> = Vec::new();
    let tell = |news: DoctorNews<'_>| {
        match news {
            DoctorNews::Begun(scenario) => playing.push(scenario.to_owned()),
            DoctorNews::Done(one) => {
                done += 1;
                playing.retain(|playing| *playing != one.scenario);
                let line = match &one.result {
                    Ok(report) => text::line(&report.verdict),
                    Err(error) => format!("{}: could not be played: {error}", one.scenario),
                };
                progress.suspend(|| output::eprint(&format!("[{done}/{total}] {line}")));
            }
        }
        progress.show(done, playing.join(", "));
    };
    // A scenario may take minutes.
    let ticks = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            progress.draw();
        }
    };
    let examined = in_runtime(|stop| async {
        tokio::select! {
            examined = examine(scenarios, &options, side_by_side, stop, tell) => examined,
            never = ticks => never,
        }
    })?;
    drop(progress);
    let (mut reports, mut not_played) = (Vec::new(), BTreeMap::new());
    for one in examined {
        match one.result {
            Ok(report) => reports.push(report),
            Err(error) => _ = not_played.insert(one.scenario, error.to_string()),
        }
    }
    let card = Card::new(reports, not_played);
    output.answer(&card, |card| output::text(&card_text(card)))?;
    write_files(play, &card.reports)?;
    if !card.not_played.is_empty() {
        let names: Vec<&str> = card.not_played.keys().map(String::as_str).collect();
        return Err(UsageError(format!("could not play {}", names.join(", "))).into());
    }
    conclude(&card.reports)
}

/// Failures with their cures and proofs, then the sum.
fn card_text(card: &Card) -> String {
    let mut shown = String::new();
    for report in card.reports.iter().filter(|report| !report.verdict.is_passed()) {
        shown += &(text::line(&report.verdict) + "\n");
        shown += &text::failures(&report.recording, &report.verdict);
    }
    let all = card.passed + card.failed;
    shown + &format!("{} of {} passed\n", card.passed, counted(all, "scenario"))
}

/// Limit of a file for `rehearse report`. All scenarios of a chatty handler take some megabytes.
const RECORDING_BYTES_MAX: u64 = 256 << 20;

/// One page of several recordings, or one card with `--output json`.
fn merge(files: &[PathBuf], page: Option<PathBuf>, output: Output) -> Result<()> {
    if let Some(format) = page.as_ref().and_then(|page| page.to_str()).filter(|page| is_format(page)) {
        let cure = format!("write --output {format} for the format, ./{format} for a file of this name");
        return Err(UsageError(format!("-o names the page, as --html does; {cure}")).into());
    }
    let read = |file: &PathBuf| {
        let name = output::file_name(file);
        let mut json = String::new();
        let read =
            File::open(file).and_then(|file| file.take(RECORDING_BYTES_MAX + 1).read_to_string(&mut json));
        match read {
            Ok(length) if length as u64 > RECORDING_BYTES_MAX => {
                let limit =
                    format!("{name} exceeds the limit of {RECORDING_BYTES_MAX} bytes for a recording");
                return Err(UsageError(limit));
            }
            Ok(_) => {}
            Err(error) => return Err(UsageError(format!("cannot read {name}: {error}"))),
        }
        // A file of `doctor --record` has several reports.
        read_reports(&json).map_err(|error| UsageError(format!("{name} {error}")))
    };
    let reports = files.iter().map(read).collect::<Result<Vec<_>, _>>()?.concat();
    let page = page.or_else(|| output.is_text().then(|| PathBuf::from("report.html")));
    if let Some(page) = &page {
        write(page, &html::page(&reports))?;
    }
    let card = Card::new(reports, BTreeMap::new());
    output.answer(&card, |card| {
        let page = page.as_deref().map(output::file_name).unwrap_or_default();
        output::line(&format!("{page}: {}", counted(card.reports.len(), "rehearsal")))
    })
}

/// Whether a text is a value of `--output`.
fn is_format(text: &str) -> bool {
    <Output as clap::ValueEnum>::from_str(text, false).is_ok()
}

fn read_reports(text: &str) -> Result<Vec<Report>, notbefore_rehearse::report::ReadError> {
    match serde_json::from_slice::<Vec<serde_json::Value>>(text.as_bytes()) {
        Ok(many) => many.iter().map(|one| Report::from_json(&one.to_string())).collect(),
        Err(_) => Ok(vec![Report::from_json(text)?]),
    }
}

/// Refuses files that cannot be written.
fn check_files(play: &Play) -> Result<()> {
    let files = [("--record", &play.record), ("--junit", &play.junit), ("--html", &play.html)];
    let files: Vec<(&str, &PathBuf)> =
        files.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?))).collect();
    for (index, (flag, file)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..index].iter().find(|(_, other)| other == file) {
            let name = output::file_name(file);
            return Err(UsageError(format!(
                "{other} and {flag} name the same file {name}; give each its own"
            ))
            .into());
        }
        check_writable(file).map_err(|error| {
            let cures = [
                (ErrorKind::NotFound, "; create its directory first"),
                (ErrorKind::IsADirectory, "; name a file in it"),
            ];
            let cure = cures.iter().find(|(kind, _)| *kind == error.kind()).map_or("", |(_, cure)| cure);
            UsageError(format!("{flag}: cannot write {}: {error}{cure}", output::file_name(file)))
        })?;
    }
    Ok(())
}

/// Opens a file as for writing. An existing one keeps its content, a new one is removed again.
fn check_writable(file: &Path) -> std::io::Result<()> {
    match std::fs::OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => std::fs::remove_file(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Not a device or a pipe, which opening may change.
            match std::fs::metadata(file)?.is_file() || file.is_dir() {
                true => std::fs::OpenOptions::new().append(true).open(file).map(drop),
                false => Ok(()),
            }
        }
        Err(error) => Err(error),
    }
}

fn write_files(play: &Play, reports: &[Report]) -> Result<()> {
    if let Some(file) = &play.record {
        let text = match reports {
            [one] => one.to_json()?,
            many => Ordered::of(many)?.pretty()? + "\n",
        };
        write(file, &text)?;
    }
    if let Some(file) = &play.junit {
        write(file, &junit::document(reports))?;
    }
    if let Some(file) = &play.html {
        write(file, &html::page(reports))?;
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text)
        .map_err(|error| UsageError(format!("cannot write {}: {error}", output::file_name(file))).into())
}

/// The error of reports with failures.
fn conclude(reports: &[Report]) -> Result<()> {
    let failed = reports.iter().filter(|report| !report.verdict.is_passed()).count();
    match failed {
        0 => Ok(()),
        1 if reports.len() == 1 => {
            Err(NotPassed("the handler does not do what the scenario expects".to_owned()).into())
        }
        many => {
            Err(NotPassed(format!("the handler fails {} of {}", many, counted(reports.len(), "scenario")))
                .into())
        }
    }
}

fn cannot_run(error: StageError) -> UsageError {
    UsageError(error.to_string())
}

/// Width and colours of standard output.
fn terminal() -> (usize, bool) {
    let is_terminal = std::io::stdout().is_terminal();
    let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
    let has_colours = is_terminal && std::env::var_os("NO_COLOR").is_none();
    (if is_terminal { width } else { WIDTH }, has_colours)
}

/// Runs until the work is done. Ctrl-C and SIGTERM stop it in order, so that no handler is left behind.
fn in_runtime<T, F: Future<Output = T>>(work: impl FnOnce(watch::Receiver<bool>) -> F) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
            }
            let _ = stop.send(true);
            // Keep the sender: a dropped one never stops anything.
            std::future::pending::<()>().await;
        });
        Ok(work(stopped).await)
    })
}
