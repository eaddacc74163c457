//! `notbefore agent status`: events that the agent handles, from the running agent or its journal. It also works with a
//! broken configuration, and for users who may read neither configuration nor journal but can connect to the agent.

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use http_body_util::Full;
use hyper::Request;
use notbefore_agent::config::{self, RunningAgent};
use notbefore_agent::control::{self, Answer, AskError};
use notbefore_agent::journal;
use notbefore_agent::machine::tracked_event;
use notbefore_agent::overview::{self, Overview};
use notbefore_agent::signals::status::Events;

use super::{command, sources};
use crate::args::{Output, Settings, Status};
use crate::exit::{AgentState, Exit};
use crate::http::Http;
use crate::output::{self, or_dash, yes_no};
use crate::table::Column;
use crate::time;
use crate::trust::{self, Trust};

/// Timeout for the agent, which is on this machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// How explicitly the caller names a place, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    /// By the file or the default.
    Usual,
    Environment,
    Flag,
}

/// Where to ask. The place that the caller names more explicitly is the only one asked: another place may have another
/// agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The listener, then the socket in the state directory.
    Both,
    /// The listener.
    Listener,
    /// The socket in the state directory.
    Socket,
    /// The socket, and the listener if this user may not use the socket.
    SocketIfAllowed,
}

impl Asked {
    fn of(has_listener: bool, listen: Named, state: Named) -> Self {
        match listen.cmp(&state) {
            _ if !has_listener => Asked::Socket,
            Ordering::Greater => Asked::Listener,
            Ordering::Equal => Asked::Both,
            // Variables are set for all users, and only root and the agent's user may use the socket.
            Ordering::Less if state == Named::Environment => Asked::SocketIfAllowed,
            Ordering::Less => Asked::Socket,
        }
    }
}

pub fn run(status: &Status, output: Output) -> Result<()> {
    let Status { config, listen, state } = status.clone();
    let sources = sources(&Settings { config, listen, state, ..Settings::default() });
    let place = config::find_running_agent(&sources)?;
    if let Some(untrusted) = place.unread.as_ref().filter(|_| place.is_untrusted) {
        output::eprint(&format!("warning: the configuration is not read: {untrusted}"));
    }
    let named = |flag: &Option<String>, variable: &str| match flag {
        Some(_) => Named::Flag,
        None if sources.variable(variable).is_some() => Named::Environment,
        None => Named::Usual,
    };
    let asked = Asked::of(
        place.listen.is_some(),
        named(&status.listen, "NOTBEFORE_AGENT_LISTEN"),
        named(&status.state, "NOTBEFORE_AGENT_STATE"),
    );
    let denied = |error: &Error| {
        matches!(error.downcast_ref(), Some(AskError::Denied { .. } | AskError::Untrusted(_)))
    };
    let answer = match asked {
        Asked::Both => ask_listener(&place).or_else(|error| ask_socket(&place).map_err(|_| error)),
        Asked::Listener => ask_listener(&place),
        Asked::Socket => ask_socket(&place),
        Asked::SocketIfAllowed => {
            ask_socket(&place).or_else(|error| if denied(&error) { ask_listener(&place) } else { Err(error) })
        }
    };
    let error = match answer {
        Ok(events) => return report(&events, output),
        Err(error) => error,
    };
    if asked == Asked::Listener && ask_socket(&place).is_ok() {
        let state = place.state.display();
        let cure = format!("an agent with the state directory {state} runs: ask it with --state {state}");
        return Err(not_running(format!("{error:#}; {cure}")));
    }
    let text = match read_journal(&place) {
        Ok(events) => {
            output.answer(&events, |events| show(events, output))?;
            format!("{error:#}; start the agent")
        }
        Err(journal) => {
            let unread = place.unread.map(|unread| format!("; {unread} (use --listen and --state)"));
            format!("{error:#}{}: {journal:#}", unread.unwrap_or_default())
        }
    };
    match denied(&error) {
        // It may run.
        true => bail!("{text}"),
        false => Err(not_running(text)),
    }
}

fn not_running(text: String) -> Error {
    AgentState { exit: Exit::AgentNotRunning, text }.into()
}

fn ask_listener(place: &RunningAgent) -> Result<Events> {
    let address = place.listen.context("the agent's listen is \"none\"")?;
    ask(address).with_context(|| format!("no agent answers at {address}"))
}

/// Asks by the socket in the state directory, which only root and the agent's user may use.
fn ask_socket(place: &RunningAgent) -> Result<Events> {
    match command::ask(&place.state, &control::Request::Status) {
        Ok(Answer::Status(events)) => Ok(events),
        Ok(
            Answer::Reloaded(_)
            | Answer::Mistakes(_)
            | Answer::Retried(_)
            | Answer::Fact(_)
            | Answer::Outcome(_)
            | Answer::Refused(_),
        ) => bail!("{}", command::ANOTHER),
        Err(error) => match error.downcast_ref() {
            Some(AskError::NotRunning { state }) => bail!("no agent answers in {state}"),
            Some(
                AskError::Denied { .. }
                | AskError::Untrusted(_)
                | AskError::Unanswered(_)
                | AskError::Abandoned,
            )
            | None => Err(error),
        },
    }
}

/// Prints the state of a running agent; fails with the worst part of it.
fn report(events: &Events, output: Output) -> Result<()> {
    output.answer(events, |events| show(events, output))?;
    trouble(events).map_or(Ok(()), |state| Err(state.into()))
}

/// The worst state of a running agent, if it is not fine.
fn trouble(events: &Events) -> Option<AgentState> {
    let of_events = events.events.iter().filter_map(trouble_of).min_by_key(|state| state.exit.code());
    let not_ready = || {
        let why = events.not_ready.as_ref()?;
        Some(AgentState { exit: Exit::AgentNotReady, text: format!("not ready: {why}") })
    };
    of_events.or_else(not_ready)
}

/// The state of an event that needs attention, if it does.
pub fn trouble_of(event: &Overview) -> Option<AgentState> {
    let Overview { id, rule, step, approval, .. } = event;
    let [rule, step] = [rule, step].map(|name| name.as_deref().unwrap_or_default());
    let (exit, text) = if event.is_stranded() {
        let text = format!(
            "this VM is not restored after event {id}: step {step} of rule {rule} failed; fix the step and run 'notbefore \
             agent retry {id}'"
        );
        (Exit::Stranded, text)
    } else if event.is_withheld() {
        let why = approval.strip_prefix("none: ").unwrap_or(approval);
        let text = format!(
            "event {id} is not approved by rule {rule}: {why}; fix the step and run 'notbefore agent retry {id}'"
        );
        (Exit::Withheld, text)
    } else if approval == overview::NO_RULE {
        let text = format!("no rule matches event {id}; add a rule and run 'notbefore agent reload'");
        (Exit::Unmatched, text)
    } else {
        return None;
    };
    Some(AgentState { exit, text })
}

/// Queries the running agent.
pub fn ask(address: SocketAddr) -> Result<Events> {
    // An unspecified listen address is reachable on loopback.
    let host = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let url = format!("http://{}/events", SocketAddr::new(host, address.port()));
    let request = Request::get(&url).body(Full::default())?;
    let answer = Http::new(trust::tls(&Trust::Usual)?)?.exchange(request, ANSWER_WITHIN)?;
    if !answer.status().is_success() {
        bail!("it answers {}", answer.status());
    }
    serde_json::from_slice(answer.body()).with_context(|| format!("{url} is not an agent"))
}

/// The events in the journal of an agent that is not running.
fn read_journal(place: &RunningAgent) -> Result<Events> {
    let state = journal::read_state(&place.state)
        .with_context(|| format!("cannot read a journal in {}", place.state.display()))?;
    let events = overview::of(&state);
    Ok(Events {
        vm: None,
        endpoint: None,
        dry_run: false,
        draining: events.iter().any(|event| event.draining),
        not_ready: Some("the agent is not running; events are from its journal".to_owned()),
        events,
    })
}

fn show(events: &Events, output: Output) -> Result<()> {
    let vm = events.vm.as_deref().unwrap_or("this VM");
    let at = events.endpoint.as_ref().map(|endpoint| format!(", platform at {endpoint}")).unwrap_or_default();
    let is_stranded = events.events.iter().any(Overview::is_stranded);
    let service = match (is_stranded, events.draining) {
        (true, _) => tracked_event::STRANDED,
        (false, true) => "draining",
        (false, false) => "in service",
    };
    let dry = if events.dry_run { ", dry run" } else { "" };
    output::line(&format!("{vm}: {service}{at}{dry}"))?;
    if let Some(why) = &events.not_ready {
        output::line(&format!("not ready: {why}"))?;
    }
    let columns = [
        Column::id("EVENT", &|event: &Overview| event.id.clone()),
        Column::new("TYPE", &|event| event.r#type.clone()),
        Column::optional("STATUS", &|event| event.status.clone()),
        Column::new("NOT BEFORE", &|event| or_dash(event.not_before.map(time::from_now).as_deref())),
        Column::optional("MINE", &|event| yes_no(event.mine)),
        Column::text("RULE", &|event| or_dash(event.rule.as_deref())),
        Column::new("PHASE", &|event| event.phase.clone()),
        Column::text("STEP", &|event| or_dash(event.step.as_deref())),
        Column::text("APPROVAL", &|event| event.approval.clone()),
    ];
    output::text(&output.table(&events.events, &columns, "no events"))
}
