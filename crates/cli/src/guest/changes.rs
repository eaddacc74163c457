//! `notbefore get --watch`: prints changes, and the start and end of outages.
//!
//! The VM's name is looked up in parallel, since the endpoint may not answer yet. Until the platform provides it, the
//! host name is used. Events whose ownership changes with the new name are printed again.

use std::future::pending;

use anyhow::Result;
use jiff::Timestamp;
use notbefore_client::changes::{Change, Tracker};
use notbefore_client::client::Client;
use notbefore_client::document::Event;
use notbefore_client::identity::{self, Identity, Name, NameFuture};
use notbefore_client::watch::{Outage, Update, Watch};
use serde_json::json;

use super::{in_json, is_mine};
use crate::args::{self, Output};
use crate::{output, time};

/// Prints changes until `--count` is reached.
pub async fn watch_changes(client: Client, mut watch: Watch, get: &args::Get, output: Output) -> Result<()> {
    let name = match &get.platform.name {
        Some(name) => Name::Known(Identity::set(name)),
        None => Name::start_lookup(async move { Identity::from_metadata(&client).await }).await,
    };
    let (me, mut naming) = match name {
        Name::Known(me) => (me, never()),
        Name::Awaited(naming) => (Identity::of_host(&identity::host_name()), naming),
    };
    let mut printer = ChangePrinter { me, left: get.count.unwrap_or(usize::MAX), output };
    output::eprint(&format!("waiting for events of {}; stop with Ctrl-C", printer.me.name()));
    let (mut tracker, mut outage) = (Tracker::default(), None::<Outage>);
    while printer.left > 0 {
        let update = tokio::select! {
            update = watch.next() => update,
            identity = &mut naming => {
                naming = never();
                output::eprint(&format!("notbefore: the platform calls this VM {}", identity.name()));
                printer.set_identity(identity, tracker.events())?;
                continue;
            }
        };
        match &update {
            Update::Outage(new) if outage.as_ref().is_none_or(|old| old.kind != new.kind) => {
                output::eprint(&format!("notbefore: {}", new.text));
            }
            Update::Document { .. } | Update::Unchanged { .. } if outage.is_some() => {
                output::eprint("notbefore: the platform answers again");
            }
            Update::Outage(_) | Update::Document { .. } | Update::Unchanged { .. } => {}
        }
        outage = match update {
            Update::Outage(new) => Some(new),
            Update::Unchanged { .. } => None,
            Update::Document { document, served_at, version } => {
                let now = served_at.unwrap_or_else(time::now);
                for change in tracker.update(&document, version) {
                    printer.print(&change, now)?;
                }
                None
            }
        };
    }
    Ok(())
}

/// The lookup of a name that is already known: never completes.
fn never() -> NameFuture {
    Box::pin(pending())
}

struct ChangePrinter {
    me: Identity,
    /// Changes left until `--count`.
    left: usize,
    output: Output,
}

impl ChangePrinter {
    /// Sets the name from the platform. Events whose ownership changes are printed again.
    fn set_identity(&mut self, me: Identity, events: &[Event]) -> Result<()> {
        let turned = |event: &&Event| is_mine(event, &me) != is_mine(event, &self.me);
        let turned: Vec<&Event> = events.iter().filter(turned).collect();
        self.me = me;
        for event in turned {
            let change = Change::Changed { before: Box::new(event.clone()), event: event.clone() };
            self.print(&change, time::now())?;
        }
        Ok(())
    }

    /// Prints a change, if the count is not used up.
    fn print(&mut self, change: &Change, now: Timestamp) -> Result<()> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(()) };
        self.left = left;
        let (what, event) = match change {
            Change::Appeared(event) => ("appeared", event),
            Change::Started(event) => ("started", event),
            Change::Changed { event, .. } => ("changed", event),
            Change::Gone(event) => ("gone", event),
        };
        if self.output == Output::Name {
            return output::line(event.id.as_str());
        }
        if !self.output.is_text() {
            let change = json!({"at": now, "change": what, "event": in_json(event, &self.me)});
            return self.output.item(&change, |_| Ok(()));
        }
        let mine = if is_mine(event, &self.me) { "mine" } else { "others'" };
        let when = match (change, event.not_before) {
            (Change::Appeared(_) | Change::Changed { .. }, Some(at)) => {
                format!(", not before {}", time::and_from(at, now))
            }
            (Change::Appeared(_) | Change::Changed { .. }, None)
            | (Change::Started(_) | Change::Gone(_), _) => String::new(),
        };
        output::line(&format!(
            "{}  {what:<8}  {} {} {mine}: {} is {}{when}",
            time::seconds(now),
            event.id,
            event.kind,
            event.resources.join(","),
            event.status.as_str()
        ))
    }
}
