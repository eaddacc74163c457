//! Reads a scenario from YAML. All mistakes are reported at once, with line and cure.

use std::collections::HashSet;
use std::time::Duration;

use notbefore_core::Name;
use notbefore_core::scope::MEMBERS_MAX;
use notbefore_settings::span;
use notbefore_settings::suggest::nearest;
use notbefore_settings::yaml::{self, At, Mapping, Mistakes, Tree, explain};
use notbefore_wire::operator::faults::{FaultError, NewFault};
use notbefore_wire::operator::{Cause, EventVerb, FaultKind, FaultRequests, ScopeKind};
use notbefore_wire::text::shorten;

use super::{Action, Announcement, Expectation, Moment, POLLS_EVERY, Scenario, Step, Vm, When};

/// Size limit of a scenario: far above any that is written by hand.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Limit of all moves of the clock: guests see shifted times, by a fault with a limit of a year, which also has to hold a
/// date seven days ahead.
const ADVANCE_MAX: Duration = Duration::from_secs(300 * 86_400);
/// Limit of steps; each takes seconds.
const STEPS_MAX: usize = 1_000;
/// Limit of reported names that do not exist; a message shows 20 mistakes.
const UNKNOWN_MAX: usize = 100;
/// Rest after the last event, before compression: enough for a handler to undo what it did.
const RESTS: Duration = Duration::from_secs(10 * 60);

/// Longest value of `TZ`: names of the database have 32 characters at most, rules with both changes of a year some 40.
const TIME_ZONE_MAX: usize = 64;

/// The newest api-version that a platform can have in a scenario.
const NEWEST_VERSIONS: [&str; 2] = ["2024-07-09", "2020-07-01"];

const FILE_KEYS: &[&str] = &[
    "summary",
    "kind",
    "vms",
    "steps",
    "expect",
    "polls_every",
    "keeps_running",
    "rests",
    "newest_version",
    "time_zone",
];
const VM_KEYS: &[&str] = &["name", "update_domain", "spot", "handler", "polled", "count"];
const EVENT_KEYS: &[&str] = &["event", "cause", "vms", "notice", "runs", "duration_seconds", "description"];
/// Keys of a step: `at`, and one action.
pub const STEP_KEYS: &[&str] = &[
    "at",
    "schedule",
    "approve",
    "start",
    "complete",
    "cancel",
    "fault",
    "clear_faults",
    "advance_clock",
    "stop_handlers",
    "start_handlers",
];
/// Keys of an expectation: one of them, and `within` for some.
pub const EXPECTATION_KEYS: &[&str] =
    &["approves", "does_not_approve", "drains", "does_not_drain", "restores", "exits", "within"];
const FAULT_KEYS: &[&str] =
    &["kind", "vm", "requests", "every", "count", "active_seconds", "seconds", "status", "by"];
/// Keys that may stand at the wrong place.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("of a scenario", FILE_KEYS),
    ("of a VM", VM_KEYS),
    ("of an event", EVENT_KEYS),
    ("of a step", STEP_KEYS),
    ("of an expectation", EXPECTATION_KEYS),
    ("of a fault", FAULT_KEYS),
];

/// Parses a scenario. `file` is used in messages, `name` is the scenario's.
pub fn parse(file: &str, name: &str, text: &str) -> Result<Scenario, String> {
    if text.len() > FILE_BYTES_MAX {
        return Err(format!("{file} exceeds the limit of {FILE_BYTES_MAX} bytes for a scenario; split it"));
    }
    let tree = yaml::parse(text).map_err(|error| format!("{file} is not YAML: {}", explain(&error)))?;
    let mut mistakes = Mistakes::default();
    let mut parser = Parser { mistakes: &mut mistakes, names: Names::default() };
    let scenario = parser.scenario(&tree, name);
    let names = parser.names;
    if scenario.is_some() {
        names.check(&mut mistakes);
    }
    // Whether a step can come is known only of a file that is right otherwise.
    if let Some(scenario) = scenario.as_ref().filter(|_| mistakes.is_empty()) {
        for (step, what) in super::reach::mistakes(scenario) {
            mistakes.add(names.step_lines.get(step).copied().unwrap_or(tree.line), what);
        }
    }
    match (mistakes.message(file), scenario) {
        (Some(message), _) => Err(message),
        (None, Some(scenario)) => Ok(scenario),
        (None, None) => Err(format!("{file} is not a scenario")),
    }
}

fn mapping<'t, 'm>(
    tree: &'t At<Tree>,
    what: &str,
    keys: &[&str],
    mistakes: &'m mut Mistakes,
) -> Option<Mapping<'t, 'm>> {
    Mapping::read(tree, what, keys, ELSEWHERE, mistakes)
}

/// Whether a text may be a value of `TZ`. Which zones a VM knows is not checked.
fn is_time_zone(text: &str) -> bool {
    let is_of_zone = |letter: u8| letter.is_ascii_alphanumeric() || b"+-_/:,.<>".contains(&letter);
    (1..=TIME_ZONE_MAX).contains(&text.len()) && text.bytes().all(is_of_zone)
}

struct Parser<'m> {
    mistakes: &'m mut Mistakes,
    names: Names,
}

impl Parser<'_> {
    fn scenario(&mut self, tree: &At<Tree>, name: &str) -> Option<Scenario> {
        let mut file = mapping(tree, "a scenario", FILE_KEYS, self.mistakes)?;
        file.needs("vms", "a list of VMs");
        file.needs("steps", "a list of steps");
        file.needs("summary", "one line that says what happens");
        let summary = file.text("summary").unwrap_or_default().value;
        let kind = file.text("kind");
        let kind = kind
            .and_then(|kind| word(file.mistakes, "kind", kind, ScopeKind::ALL.iter().map(ScopeKind::as_str)));
        let polls_every = span_of(&mut file, "polls_every").unwrap_or(POLLS_EVERY);
        let rests = span_of(&mut file, "rests").unwrap_or(RESTS);
        let keeps_running = file.value("keeps_running").is_none() || file.switch("keeps_running");
        let serves_advice = match file.text("newest_version") {
            None => true,
            Some(version) if NEWEST_VERSIONS.contains(&version.value.as_str()) => {
                version.value == NEWEST_VERSIONS[0]
            }
            Some(version) => {
                let versions = NEWEST_VERSIONS.join(" or ");
                file.mistakes.add(version.line, format!("newest_version: expected {versions}"));
                true
            }
        };
        let time_zone = file.text("time_zone");
        let time_zone = time_zone.and_then(|zone| match is_time_zone(&zone.value) {
            true => Some(zone.value),
            false => {
                let expected = "a value of the variable TZ, such as JST-9 or Asia/Tokyo";
                file.mistakes.add(zone.line, format!("time_zone: expected {expected}"));
                None
            }
        });
        let (vms, mut steps, expect) = (file.list("vms"), file.list("steps"), file.list("expect"));
        for (key, list) in [("vms", vms), ("steps", steps)] {
            if let Some(tree) = file.value(key).filter(|tree| is_list(tree) && list.is_empty()) {
                file.mistakes.add(tree.line, format!("{key} is empty; a scenario needs at least one"));
            }
        }
        if let Some(step) = steps.get(STEPS_MAX) {
            file.mistakes.add(step.line, format!("more than {STEPS_MAX} steps; split the scenario"));
            steps = &steps[..STEPS_MAX];
        }
        let mut all_vms = Vec::new();
        for tree in vms {
            all_vms.extend(self.vm(tree));
            if all_vms.len() > MEMBERS_MAX {
                let cure = "leave some out";
                self.mistakes
                    .add(tree.line, format!("more than {MEMBERS_MAX} VMs, the limit of a scope; {cure}"));
                break;
            }
        }
        Some(Scenario {
            name: name.to_owned(),
            summary,
            kind: kind.unwrap_or(ScopeKind::AvailabilitySet),
            vms: all_vms,
            steps: steps.iter().filter_map(|tree| self.step(tree)).collect(),
            expectations: expect.iter().filter_map(|tree| self.expectation(tree)).collect(),
            polls_every,
            keeps_running,
            rests,
            serves_advice,
            time_zone,
        })
    }

    /// A VM, by its name alone or as a mapping. With `count: N`, N VMs whose names end in a number.
    fn vm(&mut self, tree: &At<Tree>) -> Vec<Vm> {
        let plain = |name: &str| Vm {
            name: name.to_owned(),
            update_domain: 0,
            is_spot: false,
            has_handler: true,
            is_polled: false,
        };
        if let Tree::Scalar(serde_json::Value::String(name), _) = &tree.value {
            self.names.add_vm(At { value: name.clone(), line: tree.line }, self.mistakes);
            return vec![plain(name)];
        }
        let Some(mut vm) = mapping(tree, "a VM", VM_KEYS, self.mistakes) else { return Vec::new() };
        vm.needs("name", "the VM's name");
        let name = vm.text("name").unwrap_or_default();
        let is_polled = vm.switch("polled");
        if let Some(polled) = vm.value("polled").filter(|_| is_polled && vm.switch("handler")) {
            vm.mistakes.add(polled.line, "a VM is polled by the rehearsal or by a handler; leave one out");
        }
        let one = Vm {
            update_domain: vm.number("update_domain"),
            is_spot: vm.switch("spot"),
            has_handler: !is_polled && (vm.value("handler").is_none() || vm.switch("handler")),
            is_polled,
            ..plain(&name.value)
        };
        let mut count = None;
        if let Some(tree) = vm.value("count") {
            let number = tree.value.json().as_u64().and_then(|number| usize::try_from(number).ok());
            count = number.filter(|number| (1..=MEMBERS_MAX).contains(number));
            if count.is_none() {
                vm.wrong("count", &format!("1 to {MEMBERS_MAX}, the limit of a scope"), tree);
            }
        }
        let vms: Vec<Vm> = match count {
            None => vec![one],
            Some(count) => {
                (0..count).map(|index| Vm { name: format!("{}{index}", one.name), ..one.clone() }).collect()
            }
        };
        // Without a name, its absence is the mistake.
        for vm in vms.iter().filter(|_| name.line > 0) {
            self.names.add_vm(At { value: vm.name.clone(), line: name.line }, self.mistakes);
        }
        vms
    }

    fn step(&mut self, tree: &At<Tree>) -> Option<Step> {
        let mut step = mapping(tree, "a step", STEP_KEYS, self.mistakes)?;
        let mut when = Some(When::At(Duration::ZERO));
        let mut line = tree.line;
        if let Some(at) = step.text("at") {
            line = at.line;
            when = match parse_when(&at.value) {
                Ok(when) => Some(when),
                Err(error) => {
                    step.mistakes.add(at.line, error);
                    None
                }
            };
            if let Some(When::After { event, .. }) = &when {
                self.names.event_uses.push(At { value: event.clone(), line: at.line });
            }
        }
        let Some(key) = one_of(&mut step, "a step", &STEP_KEYS[1..]) else {
            // For its mistakes, and for its name, which other steps use.
            if let Some(tree) = step.value("schedule") {
                self.announcement(tree);
            }
            return None;
        };
        let action = match key {
            "schedule" => {
                let tree = step.value(key)?;
                self.announcement(tree).map(Action::Schedule)
            }
            "fault" => {
                let tree = step.value(key)?;
                self.fault(tree).map(Action::AddFault)
            }
            "advance_clock" => span_of(&mut step, key).map(Action::AdvanceClock),
            "clear_faults" => switched_on(&mut step, key, Action::ClearFaults),
            "stop_handlers" => switched_on(&mut step, key, Action::StopHandlers),
            "start_handlers" => switched_on(&mut step, key, Action::StartHandlers),
            verb => {
                let event = step.text(key)?;
                self.names.event_uses.push(event.clone());
                let event = event.value;
                match EventVerb::from(verb.to_owned()) {
                    EventVerb::Approve => Some(Action::Approve(event)),
                    EventVerb::Start => Some(Action::Start(event)),
                    EventVerb::Complete => Some(Action::Complete(event)),
                    EventVerb::Cancel => Some(Action::Cancel(event)),
                    EventVerb::Retry | EventVerb::Unknown(_) => None,
                }
            }
        };
        let (when, action) = (when?, action?);
        if let Action::AdvanceClock(by) = action {
            self.names.advanced = self.names.advanced.saturating_add(by);
            if self.names.advanced > ADVANCE_MAX {
                let what = "advance_clock: a rehearsal may move the clock by 300 days in all; shorten it";
                self.mistakes.add(tree.line, what);
            }
        }
        self.names.step_lines.push(line);
        Some(Step { when, action })
    }

    fn announcement(&mut self, tree: &At<Tree>) -> Option<Announcement> {
        let mut event = mapping(tree, "an event", EVENT_KEYS, self.mistakes)?;
        event.needs("event", "a name for the event");
        event.needs("cause", &known_causes().join(", "));
        event.needs("vms", "a list of VMs");
        let name = event.text("event");
        let of = name.as_ref().map_or_else(String::new, |name| format!(" of event {}", name.value));
        if let Some(name) = &name {
            self.names.events.push(name.clone());
        }
        let list = event.list("vms");
        if let Some(tree) = event.value("vms").filter(|tree| is_list(tree) && list.is_empty()) {
            event.mistakes.add(tree.line, "vms is empty; name the VMs that the event affects");
        }
        let vms: Vec<At<String>> = list.iter().filter_map(|tree| event.text_of("vms", tree)).collect();
        self.names.vm_uses.extend(vms.iter().map(|vm| (vm.clone(), of.clone())));
        let cause = event.text("cause");
        let cause: Option<Cause> =
            cause.and_then(|cause| word(event.mistakes, "cause", cause, known_causes()));
        let duration_seconds = event.value("duration_seconds").map(|tree| {
            let number = tree.value.json().as_i64().and_then(|number| i32::try_from(number).ok());
            let number = number.filter(|seconds| *seconds >= -1);
            if number.is_none() {
                event.wrong("duration_seconds", "a number of seconds, or -1 for unknown", tree);
            }
            number
        });
        let notice = match event.text("notice") {
            Some(text) if text.value == "none" => Some(None),
            Some(_) => span_of(&mut event, "notice").map(Some),
            None => cause.as_ref().map(usual_notice),
        };
        let runs = match event.text("runs") {
            Some(text) if text.value == "until-completed" => Some(None),
            Some(_) => span_of(&mut event, "runs").map(Some),
            None => cause.as_ref().map(|cause| Some(usual_run(cause))),
        };
        let description = event.text("description").map(|text| text.value);
        let cause = cause?;
        Some(Announcement {
            event: name?.value,
            vms: vms.into_iter().map(|vm| vm.value).collect(),
            notice: notice?,
            runs: runs?,
            duration_seconds: duration_seconds.flatten(),
            description,
            cause,
        })
    }

    /// A fault as the operator API takes it, or its kind alone.
    fn fault(&mut self, tree: &At<Tree>) -> Option<NewFault> {
        let kinds = || FaultKind::ALL.iter().map(FaultKind::as_str);
        let entries = match &tree.value {
            Tree::Map(entries) => entries,
            Tree::Scalar(value, _) => {
                let kind = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                let kind = word(self.mistakes, "fault", At { value: kind, line: tree.line }, kinds())?;
                return self.checked(NewFault::new(kind), tree.line, &[]);
            }
            Tree::List(_) => {
                self.mistakes.add(tree.line, "fault: expected a kind, or a mapping with kind, not a list");
                return None;
            }
        };
        let mut fault = mapping(tree, "a fault", FAULT_KEYS, self.mistakes)?;
        fault.needs("kind", &kinds().collect::<Vec<_>>().join(", "));
        let kind: Option<FaultKind> =
            fault.text("kind").and_then(|kind| word(fault.mistakes, "kind", kind, kinds()));
        let requests = fault.text("requests").map(|requests| {
            let known = FaultRequests::ALL.iter().map(FaultRequests::as_str);
            word::<FaultRequests>(fault.mistakes, "requests", requests, known)
        });
        // One key at a time, so that a value of the wrong form is found by its line.
        let kind = kind?;
        let mut all = serde_json::json!({ "kind": kind });
        let mut is_right = requests != Some(None);
        for (key, value) in entries.iter().filter(|(key, _)| !["kind", "requests"].contains(&&*key.value)) {
            let mut one = serde_json::json!({ "kind": kind });
            one[&key.value] = value.value.json();
            let forms = "expected text for vm, and a whole number for the others";
            if serde_json::from_value::<NewFault>(one).is_err() {
                let found = value.value.shown();
                fault.mistakes.add(value.line, format!("{}: {forms}, not {found}", key.value));
                is_right = false;
            }
            all[&key.value] = value.value.json();
        }
        if let Some(vm) = fault.text("vm") {
            self.names.vm_uses.push((vm, " of a fault".to_owned()));
        }
        let mut fault: NewFault = serde_json::from_value(all).ok().filter(|_| is_right)?;
        fault.requests = requests.flatten();
        self.checked(fault, tree.line, entries)
    }

    fn checked(
        &mut self,
        fault: NewFault,
        line: u64,
        entries: &[(At<String>, At<Tree>)],
    ) -> Option<NewFault> {
        let Err(error) = fault.clone().check() else { return Some(fault) };
        let field = match &error {
            FaultError::OutOfRange { field, .. } | FaultError::NotTaken { field, .. } => Some(*field),
            FaultError::UnknownKind { .. } | FaultError::UnknownRequests(_) | FaultError::Missing { .. } => {
                None
            }
        };
        let entry = entries.iter().find(|(key, _)| Some(key.value.as_str()) == field);
        let line = entry.map_or(line, |(_, value)| value.line);
        self.mistakes.add(line, format!("fault: {}", shorten(&error.to_string(), 400)));
        None
    }

    fn expectation(&mut self, tree: &At<Tree>) -> Option<Expectation> {
        let mut expectation = mapping(tree, "an expectation", EXPECTATION_KEYS, self.mistakes)?;
        let within = span_of(&mut expectation, "within");
        let key = one_of(&mut expectation, "an expectation", &EXPECTATION_KEYS[..6])?;
        if let Some(within) = expectation.value("within").filter(|_| !["approves", "restores"].contains(&key))
        {
            let what = format!("within has no meaning for {key}; leave it out");
            expectation.mistakes.add(within.line, what);
        }
        if key == "exits" {
            let tree = expectation.value(key)?;
            let code = tree.value.json().as_u64().and_then(|code| u8::try_from(code).ok());
            if code.is_none() {
                expectation.wrong(key, "an exit code from 0 to 255", tree);
            }
            return Some(Expectation::Exits { code: code?.into() });
        }
        let event = expectation.text(key)?;
        self.names.event_uses.push(event.clone());
        let event = event.value;
        Some(match key {
            "approves" => Expectation::Approves { event, within },
            "does_not_approve" => Expectation::DoesNotApprove { event },
            "drains" => Expectation::Drains { event },
            "does_not_drain" => Expectation::DoesNotDrain { event },
            _ => Expectation::Restores { event, within },
        })
    }
}

fn is_list(tree: &At<Tree>) -> bool {
    matches!(tree.value, Tree::List(_))
}

/// Names of a file with their lines, also those of steps with mistakes.
#[derive(Default)]
struct Names {
    vms: Vec<At<String>>,
    /// With what has the VM, for messages.
    vm_uses: Vec<(At<String>, String)>,
    /// Names that steps give to events.
    events: Vec<At<String>>,
    event_uses: Vec<At<String>>,
    /// Of the steps without mistakes.
    step_lines: Vec<u64>,
    /// Sum of the moves of the clock.
    advanced: Duration,
}

impl Names {
    fn add_vm(&mut self, name: At<String>, mistakes: &mut Mistakes) {
        if let Err(error) = name.value.parse::<Name>() {
            mistakes.add(name.line, shorten(&error.to_string(), 200));
        }
        self.vms.push(name);
    }

    /// Records names of VMs and events that occur twice, or that do not exist.
    fn check(&self, mistakes: &mut Mistakes) {
        let mut vms = HashSet::new();
        for vm in &self.vms {
            if !vms.insert(vm.value.to_ascii_lowercase()) {
                let name = shorten(&vm.value, 60);
                mistakes.add(vm.line, format!("VM {name} occurs twice; give each VM its own name"));
            }
        }
        let mut events = HashSet::new();
        for event in &self.events {
            if !events.insert(event.value.as_str()) {
                let name = shorten(&event.value, 60);
                mistakes.add(
                    event.line,
                    format!("event {name} is scheduled twice; give each event its own name"),
                );
            }
            if event.value.is_empty() || event.value.contains([' ', '+', '#']) {
                let name = shorten(&event.value, 60);
                let cure = "write it without spaces, + and #, which separate it from other words";
                mistakes.add(event.line, format!("event {name:?} has no name that a step can use; {cure}"));
            }
        }
        // Each unknown name costs a comparison with all others.
        let unknown = self.vm_uses.iter().filter(|(vm, _)| !vms.contains(&vm.value.to_ascii_lowercase()));
        for (vm, of) in unknown.take(UNKNOWN_MAX) {
            let name = shorten(&vm.value, 60);
            let meant = meant(&name, self.vms.iter().map(|vm| vm.value.as_str()));
            mistakes.add(vm.line, format!("VM {name}{of} is not in vms{meant}"));
        }
        let unknown = self.event_uses.iter().filter(|event| !events.contains(event.value.as_str()));
        for event in unknown.take(UNKNOWN_MAX) {
            let name = shorten(&event.value, 60);
            let meant = meant(&name, self.events.iter().map(|event| event.value.as_str()));
            mistakes.add(event.line, format!("no step schedules an event {name}{meant}"));
        }
    }
}

/// The one key of these that is present.
fn one_of<'k>(mapping: &mut Mapping<'_, '_>, what: &str, keys: &[&'k str]) -> Option<&'k str> {
    let present: Vec<&str> = keys.iter().copied().filter(|key| mapping.value(key).is_some()).collect();
    match present[..] {
        [key] => Some(key),
        // A misspelt key is reported already.
        [] if mapping.has_unknown_key => None,
        [] => {
            let line = mapping.line;
            mapping.mistakes.add(line, format!("{what} needs one of {}", keys.join(", ")));
            None
        }
        [first, second, ..] => {
            let line = mapping.value(second).map_or(mapping.line, |tree| tree.line);
            let cure = "write two of them";
            mapping.mistakes.add(line, format!("{what} has both {first} and {second}; {cure}"));
            None
        }
    }
}

/// A key whose only value is `true`.
fn switched_on(mapping: &mut Mapping<'_, '_>, key: &str, action: Action) -> Option<Action> {
    if mapping.switch(key) {
        return Some(action);
    }
    // Another value than true or false is reported already.
    if let Some(At { value: Tree::Scalar(serde_json::Value::Bool(_), _), line }) = mapping.value(key) {
        mapping.mistakes.add(*line, format!("{key}: write {key}: true, or leave the step out"));
    }
    None
}

fn span_of(mapping: &mut Mapping<'_, '_>, key: &str) -> Option<Duration> {
    let text = mapping.text(key)?;
    match span::parse(&text.value) {
        Ok(span) => Some(span),
        Err(error) => {
            mapping.mistakes.add(text.line, format!("{key}: {error}"));
            None
        }
    }
}

/// A word of the API.
fn word<'k, T: From<String>>(
    mistakes: &mut Mistakes,
    key: &str,
    text: At<String>,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<T> {
    let known: Vec<&str> = known.into_iter().collect();
    if known.contains(&text.value.as_str()) {
        return Some(text.value.into());
    }
    let value = shorten(&text.value, 60);
    let cure = match nearest(&value, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("there are {}", known.join(", ")),
    };
    mistakes.add(text.line, format!("{key}: {value:?} is unknown; {cure}"));
    None
}

fn known_causes() -> Vec<&'static str> {
    Cause::ALL.iter().map(Cause::as_str).collect()
}

/// The median notice of a real platform.
fn usual_notice(cause: &Cause) -> Option<Duration> {
    let minutes = |count: u64| Some(Duration::from_secs(count * 60));
    match cause {
        Cause::HostFailure | Cause::Rebalance | Cause::Unknown(_) => None,
        Cause::Eviction => Some(Duration::from_secs(30)),
        Cause::PredictedFailure => minutes(7 * 24 * 60),
        Cause::Deletion => minutes(5),
        Cause::HostFreeze
        | Cause::HostReboot
        | Cause::HostRedeploy
        | Cause::LiveMigration
        | Cause::UserRestart
        | Cause::UserRedeploy => minutes(15),
    }
}

/// How long a real platform shows the event as Started; the median.
fn usual_run(cause: &Cause) -> Duration {
    let minutes = match cause {
        Cause::LiveMigration => 5,
        Cause::Eviction | Cause::Deletion => 1,
        Cause::HostFreeze
        | Cause::HostReboot
        | Cause::HostRedeploy
        | Cause::PredictedFailure
        | Cause::HostFailure
        | Cause::UserRestart
        | Cause::UserRedeploy
        | Cause::Rebalance
        | Cause::Unknown(_) => 10,
    };
    Duration::from_secs(minutes * 60)
}

/// Parses `30s`, `started restart` or `gone restart + 5m`.
fn parse_when(text: &str) -> Result<When, String> {
    let wrong = || {
        format!(
            "at: {:?} is no time; write 30s since the beginning, or 'started EVENT + 30s' (scheduled, read, approved, started, gone)",
            shorten(text, 60)
        )
    };
    if let Ok(at) = span::parse(text) {
        return Ok(When::At(at));
    }
    let (condition, delay) = match text.split_once('+') {
        Some((condition, delay)) => (condition, span::parse(delay).map_err(|_| wrong())?),
        None => (text, Duration::ZERO),
    };
    let (moment, event) = condition.trim().split_once(' ').ok_or_else(wrong)?;
    let moment = Moment::ALL.into_iter().find(|known| known.as_str() == moment).ok_or_else(wrong)?;
    Ok(When::After { moment, event: event.trim().to_owned(), delay })
}

/// The suggestion for a name.
fn meant<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> String {
    nearest(name, known).map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse("mine.yaml", "mine", text).unwrap_err()
    }

    const RESTART: &str = "summary: a restart\nvms: [web-0]\nsteps:\n  - { at: 30s, schedule: { event: restart, cause: user-restart, vms: [web-0] } }\n";

    #[test]
    fn scenario_parses_with_the_times_of_a_real_platform() {
        let scenario =
            parse("f", "restart", &format!("{RESTART}expect:\n  - approves: restart\n    within: 5m\n"))
                .unwrap();
        let announcement = scenario.announcement("restart").unwrap();
        assert_eq!(announcement.notice, Some(Duration::from_secs(900)));
        assert_eq!(announcement.runs, Some(Duration::from_secs(600)));
        assert_eq!(scenario.steps[0].when, When::At(Duration::from_secs(30)));
        let within = Some(Duration::from_secs(300));
        assert_eq!(scenario.expectations, [Expectation::Approves { event: "restart".into(), within }]);
        assert_eq!(scenario.handled_vms().count(), 1);
        let at_once = RESTART.replace("vms: [web-0] }", "vms: [web-0], notice: none }");
        let at_once = parse("f", "at-once", &at_once).unwrap();
        assert_eq!(at_once.announcement("restart").unwrap().notice, None);
    }

    #[test]
    fn conditions_parse_with_and_without_a_delay() {
        let after = |delay| When::After {
            moment: Moment::Gone,
            event: "e".into(),
            delay: Duration::from_secs(delay),
        };
        assert_eq!(parse_when("gone e"), Ok(after(0)));
        assert_eq!(parse_when("gone e + 2m"), Ok(after(120)));
        for text in ["later", "gone", "ended e", "gone e + soon", "-5s"] {
            assert!(parse_when(text).unwrap_err().contains("is no time"), "{text}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_with_line_and_cure() {
        let text = "sumary: x\nvms: [web-0, web-0]\nsteps:\n  - { at: soon, cancel: restart }\n  - { at: 5s, schedule: { event: a, cause: user-restrat, vms: [web-0] } }\n  - { at: 6s, schedule: { event: b, cause: eviction, vms: [web-1] }, cancel: b }\n  - { at: 7s }\nexpect:\n  - { approves: a, within: 5 parsecs }\n  - { exits: 0, within: 5s }\n";
        let said = refusal(text);
        for expected in [
            "mine.yaml has",
            "mine.yaml:1: unknown key sumary of a scenario; did you mean summary?",
            "mine.yaml:1: summary is missing",
            "VM web-0 occurs twice",
            "mine.yaml:4: at: \"soon\" is no time",
            "mine.yaml:5: cause: \"user-restrat\" is unknown; did you mean user-restart?",
            "mine.yaml:6: a step has both schedule and cancel",
            "mine.yaml:7: a step needs one of schedule,",
            "mine.yaml:9: within: \"5 parsecs\" is not a time span",
            "mine.yaml:10: within has no meaning for exits",
        ] {
            assert!(said.contains(expected), "{expected}\n{said}");
        }
    }

    #[test]
    fn names_that_do_not_exist_are_reported() {
        let said = refusal(&format!(
            "{RESTART}  - {{ at: started restrat, cancel: restart }}\nexpect:\n  - approves: reboot\n"
        ));
        assert!(
            said.contains("mine.yaml:5: no step schedules an event restrat; did you mean restart?"),
            "{said}"
        );
        assert!(said.contains("mine.yaml:7: no step schedules an event reboot"), "{said}");
        let said = refusal(&RESTART.replace("vms: [web-0] }", "vms: [web-9] }"));
        assert!(
            said.contains("mine.yaml:4: VM web-9 of event restart is not in vms; did you mean web-0?"),
            "{said}"
        );
    }

    /// A file of the lines that every scenario needs, with the lines of one mistake from line 10 on.
    fn file(vms: &str, steps: &str, rest: &str) -> String {
        format!(
            "summary: x\nvms:\n  - web-0\n{vms}steps:\n  - at: 30s\n    schedule:\n      event: e\n      cause: user-restart\n      vms: [web-0]\n{steps}{rest}"
        )
    }

    #[test]
    fn each_mistake_has_its_line_and_cure() {
        let step = |lines: &str| file("", lines, "");
        let expect = |lines: &str| file("", "", &format!("expect:\n{lines}"));
        let schedule = |lines: &str| {
            step(&format!(
                "  - at: 31s\n    schedule:\n      event: f\n      cause: host-reboot\n      vms:\n        - web-0\n{lines}"
            ))
        };
        for (text, line, said) in [
            // The file.
            (
                file("", "", "kind: availability-sets\n"),
                10,
                "kind: \"availability-sets\" is unknown; did you mean availability-set?",
            ),
            (
                file("", "", "polls_every: often\n"),
                10,
                "polls_every: \"often\" is not a time span; write 30s",
            ),
            (file("", "", "rests: 200000d\n"), 10, "rests: \"200000d\" is longer than a hundred years"),
            (
                file("", "", "keeps_running: perhaps\n"),
                10,
                "keeps_running: expected true or false, not \"perhaps\"",
            ),
            (
                file("", "", "time_zone: 'Asia/Tokyo; date'\n"),
                10,
                "time_zone: expected a value of the variable TZ, such as JST-9 or Asia/Tokyo",
            ),
            (
                file("", "", "newest_version: 2019-01-01\n"),
                10,
                "newest_version: expected 2024-07-09 or 2020-07-01",
            ),
            (
                file("", "", "polls_evry: 5s\n"),
                10,
                "unknown key polls_evry of a scenario; did you mean polls_every?",
            ),
            (file("", "", "event: e\n"), 10, "unknown key event of a scenario; it is a key of an event"),
            (file("", "", "expect: e\n"), 10, "expect: expected a list, not \"e\""),
            // VMs.
            (file("  - web-0\n", "", ""), 4, "VM web-0 occurs twice; give each VM its own name"),
            (
                file("  - name: w\n    count: 0\n", "", ""),
                5,
                "count: expected 1 to 1000, the limit of a scope, not 0",
            ),
            (file("  - name: w\n    count: 99999999999999\n", "", ""), 5, "count: expected 1 to 1000"),
            (file("  - name: w\n    count: 1000\n", "", ""), 4, "more than 1000 VMs, the limit of a scope"),
            (file("  - name: w\n    spot: 1\n", "", ""), 5, "spot: expected true or false, not 1"),
            (
                file("  - name: w\n    update_domain: -1\n", "", ""),
                5,
                "update_domain: expected a whole number from 0",
            ),
            (file("  - spot: true\n", "", ""), 4, "name is missing; expected the VM's name"),
            (file("  - name: w\n    handler: true\n    polled: true\n", "", ""), 6, "leave one out"),
            (file("  - a/b\n", "", ""), 4, "a/b"),
            // Steps. The first step takes lines 5 to 9.
            (step("  - at: soon\n    cancel: e\n"), 10, "at: \"soon\" is no time"),
            (step("  - at: -5s\n    cancel: e\n"), 10, "at: \"-5s\" is no time"),
            (step("  - at: gone f\n    cancel: e\n"), 10, "no step schedules an event f"),
            (step("  - at: gone e\n    cancel: f\n"), 11, "no step schedules an event f"),
            (step("  - at: 31s\n    clear_faults: false\n"), 11, "clear_faults: write clear_faults: true"),
            (
                step("  - at: 31s\n    stop_handlers: yes please\n"),
                11,
                "stop_handlers: expected true or false",
            ),
            (
                step("  - at: 31s\n    advance_clock: 301d\n"),
                10,
                "a rehearsal may move the clock by 300 days in all; shorten it",
            ),
            (step("  - at: 31s\n    cancle: e\n"), 11, "unknown key cancle of a step; did you mean cancel?"),
            (
                step("  - at: 31s\n    start: e\n    cancel: e\n"),
                12,
                "a step has both start and cancel; write two of them",
            ),
            (step("  - at: 31s\n"), 10, "a step needs one of schedule,"),
            (step("  - cancel\n"), 10, "expected a step with at, schedule,"),
            (
                step("  - at: 10s\n    cancel: e\n"),
                10,
                "at: e is scheduled after this step; write at: 'scheduled e + 30s'",
            ),
            // Events.
            (schedule("        - web-9\n"), 16, "VM web-9 of event f is not in vms; did you mean web-0?"),
            (schedule("      notice: soon\n"), 16, "notice: \"soon\" is not a time span"),
            (schedule("      runs: [1]\n"), 16, "runs: expected text, not a list"),
            (
                schedule("      duration_seconds: -2\n"),
                16,
                "duration_seconds: expected a number of seconds, or -1 for unknown, not -2",
            ),
            (schedule("      duration_seconds: 99999999999\n"), 16, "duration_seconds: expected a number"),
            (schedule("      causes: eviction\n"), 16, "unknown key causes of an event; did you mean cause?"),
            (
                schedule("").replace("event: f", "event: e"),
                12,
                "event e is scheduled twice; give each event its own name",
            ),
            (schedule("").replace("event: f", "event: e + 5m"), 12, "write it without spaces, + and #"),
            (
                schedule("").replace("host-reboot", "host-rebot"),
                13,
                "cause: \"host-rebot\" is unknown; did you mean host-reboot?",
            ),
            (schedule("").replace("vms:\n        - web-0", "vms: []"), 14, "vms is empty; name the VMs"),
            // Faults.
            (step("  - at: 31s\n    fault: rest\n"), 11, "fault: \"rest\" is unknown; did you mean reset?"),
            (
                step("  - at: 31s\n    fault: [reset]\n"),
                11,
                "fault: expected a kind, or a mapping with kind, not a list",
            ),
            (
                step("  - at: 31s\n    fault:\n      kind: reset\n      cont: 5\n"),
                13,
                "unknown key cont of a fault; did you mean count?",
            ),
            (
                step("  - at: 31s\n    fault:\n      kind: reset\n      count: many\n"),
                13,
                "count: expected text for vm, and a whole number for the others, not \"many\"",
            ),
            (
                step("  - at: 31s\n    fault:\n      kind: status\n      status: 200\n"),
                13,
                "fault: status is 200; for a fault of kind status it must be",
            ),
            (
                step("  - at: 31s\n    fault:\n      kind: reset\n      status: 500\n"),
                13,
                "takes no status: leave it out",
            ),
            (step("  - at: 31s\n    fault:\n      kind: status\n"), 12, "needs status"),
            (
                step("  - at: 31s\n    fault:\n      kind: reset\n      requests: pols\n"),
                13,
                "requests: \"pols\" is unknown; did you mean polls?",
            ),
            (
                step("  - at: 31s\n    fault:\n      kind: reset\n      vm: web-1\n"),
                13,
                "VM web-1 of a fault is not in vms; did you mean web-0?",
            ),
            (
                step("  - at: 31s\n    fault:\n      count: 2\n"),
                12,
                "kind is missing; expected late-first-answer,",
            ),
            // Expectations.
            (expect("  - approves: f\n"), 11, "no step schedules an event f"),
            (
                expect("  - approves: e\n    within: 5 parsecs\n"),
                12,
                "within: \"5 parsecs\" is not a time span",
            ),
            (expect("  - drains: e\n    within: 5s\n"), 12, "within has no meaning for drains; leave it out"),
            (expect("  - exits: 300\n"), 11, "exits: expected an exit code from 0 to 255, not 300"),
            (expect("  - approves: e\n    drains: e\n"), 12, "an expectation has both approves and drains"),
            (expect("  - aproves: e\n"), 11, "unknown key aproves of an expectation; did you mean approves?"),
        ] {
            let found = refusal(&text);
            assert!(found.starts_with(&format!("mine.yaml:{line}: ")), "line {line}: {found}\n{text}");
            assert!(found.contains(said), "{said}\n{found}");
        }
    }

    #[test]
    fn mistake_does_not_move_the_line_of_the_next() {
        let text = file("", "  - at: soon\n    cancel: e\n  - at: gone f\n    cancel: g\n", "");
        let said = refusal(&text);
        for expected in [
            "mine.yaml:10: at: \"soon\"",
            "mine.yaml:12: no step schedules an event f",
            "mine.yaml:13: no step schedules an event g",
        ] {
            assert!(said.contains(expected), "{expected}\n{said}");
        }
    }

    #[test]
    fn step_that_can_never_come_is_a_mistake() {
        let until = "  - at: 31s\n    schedule: { event: u, cause: host-reboot, vms: [web-0], runs: until-completed }\n";
        let advice = "  - at: 31s\n    schedule: { event: a, cause: rebalance, vms: [web-0] }\n";
        for (steps, rest, line, said) in [
            (format!("{until}  - at: gone u\n    clear_faults: true\n"), "", 10, "event u runs until-completed, and no step completes it; add a step { at: started u + 5m, complete: u }"),
            (format!("{until}  - at: gone u\n    complete: u\n"), "", 10, "no step completes it"),
            (format!("{advice}  - at: started a\n    cancel: a\n"), "", 12, "at: 'started a' never comes: advice is not approved and does not start; wait for scheduled, read or gone"),
            (format!("{advice}  - at: 40s\n    cancel: a\n  - at: approved a\n    clear_faults: true\n"), "", 14, "at: 'approved a' never comes"),
            (format!("{advice}  - at: gone a\n    clear_faults: true\n"), "", 12, "advice stays until it is cancelled; add a step with cancel: a"),
            (format!("{advice}  - at: read a\n    cancel: a\n"), "newest_version: 2020-07-01\n", 12, "does not show advice; leave newest_version out"),
            (
                "  - at: gone b\n    schedule: { event: a, cause: eviction, vms: [web-0] }\n  - at: gone a\n    schedule: { event: b, cause: eviction, vms: [web-0] }\n".to_owned(),
                "",
                10,
                "it waits for a step that waits for this one; give one of them a time",
            ),
        ] {
            let found = refusal(&file("", &steps, rest));
            assert!(found.contains(&format!("mine.yaml:{line}: ")) && found.contains(said), "{line}: {said}\n{found}");
        }
        for right in [
            format!("{until}  - at: read u\n    complete: u\n"),
            format!(
                "{advice}  - at: 60s\n    schedule: {{ event: p, cause: eviction, vms: [WEB-0] }}\n  - at: gone a\n    clear_faults: true\n"
            ),
        ] {
            parse("f", "f", &file("", &right, "")).unwrap();
        }
        let silent = file("", "  - at: read e\n    cancel: e\n", "")
            .replace("- web-0\nsteps", "- { name: web-0, handler: false }\nsteps");
        parse("f", "f", &silent).expect("the event is gone at last");
    }

    #[test]
    fn hostile_files_are_refused() {
        let anchors = (1..10).fold("a0: &a0 [x, x, x]\n".to_owned(), |text, level| {
            let before = format!("*a{}, ", level - 1);
            format!("{text}a{level}: &a{level} [{}]\n", before.repeat(9).trim_end_matches(", "))
        });
        let many_vms =
            format!("summary: x\nsteps: []\nvms:\n{}", "  - { name: w, count: 1000 }\n".repeat(10_000));
        let many_steps = format!(
            "summary: x\nvms: [a]\nsteps:\n{}",
            "  - { at: 1s, clear_faults: true }\n".repeat(10_000)
        );
        for (text, said) in [
            ("", "expected a scenario with summary,"),
            ("# only a comment\n", "expected a scenario with summary,"),
            ("summary: a\n\tvms: [a]\n", "found a tab"),
            ("summary: a\nsummary: b\n", "duplicate mapping key: summary; remove one of them"),
            (
                "summary: a\n---\nsummary: b\n",
                "multiple YAML documents detected; write one, without a line ---",
            ),
            (&"[".repeat(500_000), "write them flatter"),
            (&format!("summary: {}{}", "[".repeat(100), "]".repeat(100)), "write them flatter"),
            (&anchors, "anchors and aliases"),
            (&" ".repeat(FILE_BYTES_MAX + 1), "exceeds the limit of 1048576 bytes"),
            (&many_vms, "more than 1000 VMs"),
            (&many_steps, "more than 1000 steps"),
        ] {
            let found = refusal(text);
            assert!(found.contains(said) && found.len() < 10_000, "{said}\n{}", shorten(&found, 2_000));
        }
    }

    #[test]
    fn count_creates_vms() {
        let scenario = parse(
            "f",
            "f",
            &RESTART.replace("[web-0]\nsteps", "[web-0, { name: w, count: 999, handler: false }]\nsteps"),
        )
        .unwrap();
        assert_eq!(scenario.vms.len(), 1_000);
        assert_eq!(scenario.vms[999].name, "w998");
        assert!(
            refusal(&RESTART.replace("[web-0]\nsteps", "[{ name: w, count: 1001 }]\nsteps"))
                .contains("1 to 1000")
        );
    }
}
