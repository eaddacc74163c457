//! `notbefore get --watch`: changes as they come, and troubles when they begin and when they are over.
//!
//! What this VM is called is asked beside that, until the platform says: an endpoint that is not there yet has no name for
//! it either. Until then it is taken for its host name, and an event that turns out to be its own is told again.

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

/// Tells changes until there were as many as were asked for.
pub async fn tell(client: Client, mut watch: Watch, get: &args::Get, output: Output) -> Result<()> {
    let name = match &get.platform.name {
        Some(name) => Name::Known(Identity::set(name)),
        None => Name::start_lookup(async move { Identity::from_metadata(&client).await }).await,
    };
    let (me, mut naming) = match name {
        Name::Known(me) => (me, nothing_awaited()),
        Name::Awaited(naming) => (Identity::of_host(&identity::host_name()), naming),
    };
    let mut teller = Teller { me, left: get.count.unwrap_or(u64::MAX), output };
    output::complain(&format!("waiting for something to happen to {}; end with Ctrl-C", teller.me.name()));
    let (mut tracker, mut outage) = (Tracker::default(), None::<Outage>);
    while teller.left > 0 {
        let update = tokio::select! {
            update = watch.next() => update,
            told = &mut naming => {
                naming = nothing_awaited();
                output::complain(&format!("notbefore: the platform calls this VM {}", told.name()));
                teller.is_called(told, tracker.events())?;
                continue;
            }
        };
        match &update {
            Update::Outage(new) if outage.as_ref().is_none_or(|old| old.kind != new.kind) => {
                output::complain(&format!("notbefore: {}", new.text));
            }
            Update::Document { .. } | Update::Unchanged { .. } if outage.is_some() => {
                output::complain("notbefore: it answers again");
            }
            Update::Outage(_) | Update::Document { .. } | Update::Unchanged { .. } => {}
        }
        outage = match update {
            Update::Outage(new) => Some(new),
            Update::Unchanged { .. } => None,
            Update::Document { document, served_at, version } => {
                let now = served_at.unwrap_or_else(time::now);
                for change in tracker.update(&document, version) {
                    teller.tell(&change, now)?;
                }
                None
            }
        };
    }
    Ok(())
}

/// For a name that is known.
fn nothing_awaited() -> NameFuture {
    Box::pin(pending())
}

struct Teller {
    me: Identity,
    /// How many changes are still wanted.
    left: u64,
    output: Output,
}

impl Teller {
    /// Takes the name that the platform gives. What it makes this VM's own is told again.
    fn is_called(&mut self, me: Identity, events: &[Event]) -> Result<()> {
        let turned = |event: &&Event| is_mine(event, &me) != is_mine(event, &self.me);
        let turned: Vec<&Event> = events.iter().filter(turned).collect();
        self.me = me;
        for event in turned {
            let change = Change::Changed { before: Box::new(event.clone()), event: event.clone() };
            self.tell(&change, time::now())?;
        }
        Ok(())
    }

    /// Tells one change, if any more are wanted.
    fn tell(&mut self, change: &Change, now: Timestamp) -> Result<()> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(()) };
        self.left = left;
        let (what, event) = match change {
            Change::Appeared(event) => ("appeared", event),
            Change::Started(event) => ("started", event),
            Change::Changed { event, .. } => ("changed", event),
            Change::Gone(event) => ("gone", event),
        };
        if self.output == Output::Json {
            return output::json_line(&json!({"at": now, "change": what, "event": in_json(event, &self.me)}));
        }
        let mine = if is_mine(event, &self.me) { "mine" } else { "others'" };
        let when = match (change, event.not_before) {
            (Change::Appeared(_) | Change::Changed { .. }, Some(at)) => {
                format!(", not before {at} ({})", time::relative(at, now))
            }
            (Change::Appeared(_) | Change::Changed { .. }, None)
            | (Change::Started(_) | Change::Gone(_), _) => String::new(),
        };
        output::line(&format!(
            "{now:.0}  {what:<8}  {} {} {mine}: {} is {}{when}",
            event.id,
            event.kind,
            event.resources.join(","),
            event.status.as_str()
        ))
    }
}
