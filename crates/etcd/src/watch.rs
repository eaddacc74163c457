//! Watches: every commit after a revision, one whole revision at a time.
//!
//! Each watch has a connection of its own, to the next endpoint in turn. etcd sends several revisions in one response, or
//! one response in several fragments; [`Assembler`] makes one batch of each revision. A revision is complete when a
//! higher one follows or the response ends. Revisions that were seen are dropped: a watch never goes back.
//!
//! Compaction is checked before the watch is created, by a read at the revision that was seen. etcd itself accepts a
//! watch that starts at the compacted revision, whose deletes may be gone.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use notbefore_store::{Batch, Change, Revision, Watch, WatchError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::client::{CALL_TIMEOUT, Client, end_of, from_etcd, to_etcd};
use crate::connection::{Connection, WatchResponses};
use crate::errors::{CallError, classify};
use crate::identity::Freshness;
use crate::proto::{EVENT_DELETE, EVENT_PUT, Event, Headed, RangeRequest, WatchCreateRequest, WatchResponse};
use crate::snapshot::relative_key;

/// Limit on the bytes of one revision. etcd's limit for a request is 1.5 MiB, unless its operator raised it.
const REVISION_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(crate) struct EtcdWatch {
    client: Arc<Client>,
    responses: WatchResponses,
    assembler: Assembler,
    ready: VecDeque<Batch>,
    /// Why there is nothing after the batches that are ready.
    end: Option<WatchError>,
    _connection: Arc<Connection>,
    _permit: OwnedSemaphorePermit,
}

impl Client {
    pub(crate) async fn watch(self: &Arc<Self>, after: Revision) -> Result<EtcdWatch, WatchError> {
        let Ok(permit) = Arc::clone(&self.watches).try_acquire_owned() else {
            tracing::warn!("too many watches of etcd are open; close some");
            return Err(WatchError::Closed);
        };
        // A new etcd is at revision 1.
        let after = after.max(Revision(1));
        self.check_history(after).await?;
        let endpoint = self.watch_turns.advance(self.config.endpoints.len());
        let opening = timeout(CALL_TIMEOUT, self.open_watch(endpoint, after, permit));
        let error = match opening.await {
            Ok(Ok(watch)) => return Ok(watch),
            Ok(Err(OpenError::Watch(error))) => return Err(error),
            Ok(Err(OpenError::Call(error))) => error.to_string(),
            Err(_elapsed) => format!("no answer within {} s", CALL_TIMEOUT.as_secs()),
        };
        let name = self.config.endpoints.get(endpoint).map_or("", |endpoint| &*endpoint.text);
        self.log_watch(name, &error);
        Err(WatchError::Closed)
    }

    /// Fails if commits after the revision may have been compacted, or if the revision is not of this store.
    async fn check_history(&self, after: Revision) -> Result<(), WatchError> {
        let revision = to_etcd(after);
        let key = self.key("");
        let request = RangeRequest { key: key.clone(), revision, keys_only: true, ..RangeRequest::default() };
        match self.read(request).await {
            Ok(_) => Ok(()),
            Err(CallError::Compacted) => Err(WatchError::Compacted { oldest: self.oldest(after).await }),
            // Of another store, or of the time after a backup.
            Err(CallError::FutureRevision) => {
                tracing::error!(%after, "etcd has no such revision yet: the watch was not opened");
                Err(WatchError::Closed)
            }
            Err(error) => {
                self.log_watch("", &error.to_string());
                Err(WatchError::Closed)
            }
        }
    }

    /// A revision after which a watch can start. etcd says its compacted revision only to a watch that is too old.
    async fn oldest(&self, after: Revision) -> Revision {
        let request = RangeRequest { key: self.key(""), keys_only: true, ..RangeRequest::default() };
        let newest = self.read(request).await.ok().and_then(|response| response.header);
        newest.map_or(Revision(after.0 + 1), |header| from_etcd(header.revision))
    }

    async fn open_watch(
        self: &Arc<Self>,
        endpoint: usize,
        after: Revision,
        permit: OwnedSemaphorePermit,
    ) -> Result<EtcdWatch, OpenError> {
        let connection = self.open_checked(endpoint).await?;
        let not_sent = |error: crate::client::AuthenticateError| CallError::NotSent(error.to_string());
        let token = self.token(&connection).await.map_err(not_sent)?;
        // The key that equals the prefix is the store's own.
        let create = WatchCreateRequest {
            key: Bytes::from([self.config.prefix.as_bytes(), &[0]].concat()),
            range_end: end_of(self.config.prefix.as_bytes()),
            start_revision: to_etcd(after).saturating_add(1),
            fragment: true,
        };
        let responses = connection.watch(create, token.clone()).await;
        let mut responses = responses.map_err(|status| classify(&status))?;
        let created = match responses.next().await {
            Ok(Some(response)) => response,
            Ok(None) => return Err(CallError::Unknown("etcd ended the watch".to_owned()).into()),
            Err(status) => return Err(classify(&status).into()),
        };
        self.identity.check(created.header(), Revision(0), Freshness::Local).map_err(CallError::from)?;
        if created.canceled {
            if created.cancel_reason.contains("auth token")
                || created.cancel_reason.contains("auth store is old")
            {
                self.forget_token(token.as_ref());
            }
            return Err(ended(&created).into());
        }
        Ok(EtcdWatch {
            client: Arc::clone(self),
            responses,
            assembler: Assembler::new(self.config.prefix.clone(), after),
            ready: VecDeque::new(),
            end: None,
            _connection: connection,
            _permit: permit,
        })
    }
}

enum OpenError {
    Watch(WatchError),
    Call(CallError),
}

impl From<WatchError> for OpenError {
    fn from(error: WatchError) -> Self {
        Self::Watch(error)
    }
}

impl From<CallError> for OpenError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// The error for a response that ends the watch.
fn ended(response: &WatchResponse) -> WatchError {
    match response.compact_revision {
        0 => {
            tracing::warn!(reason = response.cancel_reason, "etcd ended the watch");
            WatchError::Closed
        }
        revision => WatchError::Compacted { oldest: from_etcd(revision) },
    }
}

#[async_trait]
impl Watch for EtcdWatch {
    /// Cancel safe.
    async fn next(&mut self) -> Result<Batch, WatchError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(batch);
            }
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            let response = match self.responses.next().await {
                Ok(Some(response)) => response,
                Ok(None) => {
                    self.end = Some(WatchError::Closed);
                    continue;
                }
                Err(status) => {
                    tracing::warn!(error = %classify(&status), "the watch of etcd was lost");
                    self.end = Some(WatchError::Closed);
                    continue;
                }
            };
            if let Err(change) = self.client.identity.check(response.header(), Revision(0), Freshness::Local)
            {
                tracing::error!(%change, "the watch of etcd ends");
                self.end = Some(WatchError::Closed);
                continue;
            }
            if response.canceled || response.compact_revision != 0 {
                self.end = Some(ended(&response));
                continue;
            }
            if let Err(TooLarge { revision }) =
                self.assembler.push(response.events, response.fragment, &mut self.ready)
            {
                tracing::error!(%revision, "a revision of etcd has more than {REVISION_BYTES_MAX} bytes");
                self.end = Some(WatchError::Closed);
            }
            if let Some(batch) = self.ready.back() {
                self.client.identity.saw(batch.revision);
            }
        }
    }
}

/// Makes one batch of all events of a revision.
struct Assembler {
    prefix: String,
    /// All revisions up to this one are dropped.
    seen: Revision,
    /// The revision whose events are being collected, if any.
    open: Option<Open>,
}

struct Open {
    revision: Revision,
    changes: Vec<Change>,
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct TooLarge {
    revision: Revision,
}

impl Assembler {
    fn new(prefix: String, seen: Revision) -> Self {
        Self { prefix, seen, open: None }
    }

    /// Takes the events of one response. Whole revisions go to `ready`; the last one stays here if `has_more` fragments
    /// follow.
    fn push(
        &mut self,
        events: Vec<Event>,
        has_more: bool,
        ready: &mut VecDeque<Batch>,
    ) -> Result<(), TooLarge> {
        for event in events {
            let Some(kv) = event.kv else { continue };
            let revision = from_etcd(kv.mod_revision);
            if self.open.as_ref().is_some_and(|open| open.revision < revision) {
                self.close(ready);
            }
            // An open revision is higher than those seen, so a lower one that follows it is dropped, too.
            let is_old = self.open.as_ref().is_some_and(|open| revision < open.revision);
            if revision <= self.seen || is_old {
                continue;
            }
            let Some(key) = relative_key(&kv.key, &self.prefix) else {
                let key = String::from_utf8_lossy(&kv.key);
                tracing::warn!(%key, "a key in etcd is not text: ignored; another program writes below the prefix");
                continue;
            };
            let value = match event.kind {
                EVENT_PUT => Some(Bytes::from(kv.value)),
                EVENT_DELETE => None,
                _ => continue,
            };
            let open = self.open.get_or_insert_with(|| Open { revision, changes: Vec::new(), bytes: 0 });
            open.bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
            if open.bytes > REVISION_BYTES_MAX {
                return Err(TooLarge { revision });
            }
            open.changes.push(Change { key, value });
        }
        if !has_more {
            self.close(ready);
        }
        Ok(())
    }

    fn close(&mut self, ready: &mut VecDeque<Batch>) {
        let Some(Open { revision, changes, bytes: _ }) = self.open.take() else { return };
        self.seen = revision;
        ready.push_back(Batch { revision, changes: changes.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::KeyValue;

    fn put(key: &str, mod_revision: i64) -> Event {
        let kv = KeyValue { key: format!("/nb/{key}").into_bytes(), mod_revision, value: b"v".to_vec() };
        Event { kind: EVENT_PUT, kv: Some(kv) }
    }

    fn delete(key: &str, mod_revision: i64) -> Event {
        Event { kind: EVENT_DELETE, ..put(key, mod_revision) }
    }

    /// Pushes responses, each with its flag for more fragments, and lists the batches as `revision: keys`.
    fn batches(seen: u64, responses: Vec<(Vec<Event>, bool)>) -> Vec<String> {
        let mut assembler = Assembler::new("/nb/".to_owned(), Revision(seen));
        let mut ready = VecDeque::new();
        for (events, has_more) in responses {
            assembler.push(events, has_more, &mut ready).unwrap();
        }
        let shown = |change: &Change| match &change.value {
            Some(_) => format!(" {}", change.key),
            None => format!(" -{}", change.key),
        };
        ready
            .iter()
            .map(|batch| {
                format!("{}:{}", batch.revision, batch.changes.iter().map(shown).collect::<String>())
            })
            .collect()
    }

    #[test]
    fn a_batch_is_a_whole_revision() {
        let response = vec![put("a", 5), put("b", 5), delete("c", 5), put("a", 7)];
        assert_eq!(batches(4, vec![(response, false)]), ["5: a b -c", "7: a"]);
    }

    #[test]
    fn fragments_are_joined() {
        let fragments = vec![
            (vec![put("a", 5), put("b", 6)], true),
            (vec![put("c", 6)], true),
            (vec![put("d", 6), put("e", 7)], false),
        ];
        assert_eq!(batches(4, fragments), ["5: a", "6: b c d", "7: e"]);
        assert_eq!(batches(4, vec![(vec![put("a", 5), put("b", 6)], true)]), ["5: a"], "6 is not complete");
    }

    #[test]
    fn revisions_that_were_seen_are_dropped() {
        let responses = vec![
            (vec![put("a", 4), put("b", 5)], false),
            (vec![put("b", 5), put("c", 6)], false),
            (vec![put("d", 8), put("x", 7)], true),
            (vec![put("e", 8)], false),
        ];
        assert_eq!(batches(4, responses), ["5: b", "6: c", "8: d e"]);
    }

    #[test]
    fn events_of_other_kinds_and_keys_are_ignored() {
        let foreign =
            Event { kv: put("a", 5).kv.map(|kv| KeyValue { key: vec![0xff], ..kv }), kind: EVENT_PUT };
        let unknown = Event { kind: 9, ..put("z", 5) };
        let none = Event { kind: EVENT_PUT, kv: None };
        assert_eq!(batches(0, vec![(vec![foreign, unknown, none, put("a", 5)], false)]), ["5: a"]);
    }

    #[test]
    fn a_revision_without_end_is_an_error() {
        let mut assembler = Assembler::new("/nb/".to_owned(), Revision(0));
        let mut ready = VecDeque::new();
        let mut large = put("a", 5);
        if let Some(kv) = &mut large.kv {
            kv.value = vec![0; 1024 * 1024];
        }
        let error = loop {
            if let Err(error) = assembler.push(vec![large.clone()], true, &mut ready) {
                break error;
            }
        };
        assert_eq!((error, ready.len()), (TooLarge { revision: Revision(5) }, 0));
    }
}
