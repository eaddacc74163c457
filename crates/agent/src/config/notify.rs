//! `[notify]`: the administrator's webhook.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use notbefore_settings::kind::List;
use notbefore_settings::{Reader, Table};
use serde::Serialize;

use super::keys::NOTIFY;
use super::kinds::{Headers, NOTIFY_ON, SPAN, URL};

/// How long one request may take where nobody says.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Something that an administrator may want to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyOn {
    /// An event is there.
    Appeared,
    /// A step has failed for good, the platform refuses an approval, or there is trouble with the journal.
    Failed,
    /// An event is not approved.
    Withheld,
    /// The platform has taken an approval.
    Approved,
    /// An event has started.
    Started,
    /// An event was called off.
    Cancelled,
    /// An event is over.
    Ended,
    /// The VM is put back.
    Restored,
}

/// Whom to tell, and of what.
#[derive(Clone, PartialEq, Eq)]
pub struct Notify {
    /// Where a POST goes.
    pub url: String,
    /// Further headers, which may be secret.
    pub headers: BTreeMap<String, String>,
    /// Of what.
    pub on: Vec<NotifyOn>,
    /// How long one request may take.
    pub timeout: Duration,
}

/// Headers and the URL's path may hold secrets.
impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").field("on", &self.on).finish_non_exhaustive()
    }
}

/// Reads the table, if it is there.
pub fn read(reader: &mut Reader<'_>, top: &Table<'_, '_>) -> Option<Notify> {
    let table = reader.inner(top, "notify", &NOTIFY)?;
    let headers = reader.value(&table, "headers", &Headers).unwrap_or_default();
    let on = reader.value(&table, "on", &List(NOTIFY_ON));
    let on = on.unwrap_or_else(|| vec![NotifyOn::Appeared, NotifyOn::Withheld, NotifyOn::Failed]);
    let timeout = reader.value(&table, "timeout", &SPAN).unwrap_or(TIMEOUT);
    let url = reader.needed(&table, "url", &URL)?;
    Some(Notify { url, headers, on, timeout })
}
