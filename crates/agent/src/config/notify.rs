//! `[notify]`: the administrator's webhook.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use notbefore_settings::kind::List;
use notbefore_settings::{Reader, Table};
use serde::Serialize;

use super::keys::NOTIFY;
use super::kinds::{Headers, NOTIFY_ON, SPAN, URL};

/// Default timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Facts that can notify the administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyOn {
    Appeared,
    /// No rule matches an event of this VM.
    Unmatched,
    /// A step failed for good, the platform refused an approval, or the journal has a problem.
    Failed,
    /// An event is not approved.
    Withheld,
    /// The VM is not restored after an event.
    Stranded,
    /// The platform accepted an approval.
    Approved,
    Started,
    Cancelled,
    Ended,
    Restored,
}

/// The administrator's webhook and the facts it gets.
#[derive(Clone, PartialEq, Eq)]
pub struct Notify {
    /// Gets a POST for each fact in `on`.
    pub url: String,
    /// Extra headers; may be secret.
    pub headers: BTreeMap<String, String>,
    pub on: Vec<NotifyOn>,
    /// Timeout of one request.
    pub timeout: Duration,
}

/// Omits headers and the URL's path, which may be secret.
impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").field("on", &self.on).finish_non_exhaustive()
    }
}

impl NotifyOn {
    /// What needs an administrator, and the first sight of an event.
    const USUAL: [NotifyOn; 5] =
        [NotifyOn::Appeared, NotifyOn::Unmatched, NotifyOn::Withheld, NotifyOn::Stranded, NotifyOn::Failed];
}

/// Reads the table, if present.
pub fn read(reader: &mut Reader<'_>, top: &Table<'_, '_>) -> Option<Notify> {
    let table = reader.inner(top, "notify", &NOTIFY)?;
    let headers = reader.value(&table, "headers", &Headers).unwrap_or_default();
    let on = reader.value(&table, "on", &List(NOTIFY_ON));
    let on = on.unwrap_or_else(|| NotifyOn::USUAL.to_vec());
    let timeout = reader.value(&table, "timeout", &SPAN).unwrap_or(TIMEOUT);
    let url = reader.needed(&table, "url", &URL)?;
    Some(Notify { url, headers, on, timeout })
}
