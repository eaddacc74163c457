//! Reads at one revision.
//!
//! etcd limits a page by records, not by bytes, so the number of records in a request is guessed from those before. The
//! first request asks for few enough that the largest records fit into a response. A guess that is too high costs a repeated
//! request. No sort order is asked for: keys come in order, and with any order etcd reads the whole range.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use async_trait::async_trait;
use bytes::Bytes;
use notbefore_store::{Key, PAGE_BYTES_MAX, Page, ReadError, Revision, Snapshot, Versioned};

use crate::client::{Client, end_of, from_etcd, to_etcd};
use crate::errors::CallError;
use crate::proto::{KeyValue, RangeRequest, RangeResponse};

/// Records in a request if nothing is known of their size. With 512 KiB each they fit into a response.
const SAFE_RECORDS: usize = 100;

/// Keys of other programs that one page lists. Each is an error for the caller.
const FOREIGN_KEYS_MAX: usize = 10;

pub(crate) struct EtcdSnapshot {
    client: Arc<Client>,
    revision: Revision,
    /// Average size of the records of the last response; 0 before the first.
    record_bytes: AtomicUsize,
}

impl Client {
    pub(crate) async fn snapshot(self: &Arc<Self>) -> Result<EtcdSnapshot, ReadError> {
        let request = RangeRequest { key: self.key(""), keys_only: true, ..RangeRequest::default() };
        let response = self.read(request).await.map_err(read_error)?;
        let header = response.header.ok_or_else(|| ReadError::Unavailable("no revision".to_owned()))?;
        let revision = from_etcd(header.revision);
        Ok(EtcdSnapshot { client: Arc::clone(self), revision, record_bytes: AtomicUsize::new(0) })
    }
}

impl EtcdSnapshot {
    /// Records from `start` to `end`, as many as the guess allows.
    async fn range(&self, start: &Bytes, end: &Bytes, limit: usize) -> Result<RangeResponse, ReadError> {
        let mut limit = limit.min(match self.record_bytes.load(Relaxed) {
            0 => SAFE_RECORDS,
            bytes => (PAGE_BYTES_MAX / bytes).max(1),
        });
        loop {
            let request = RangeRequest {
                key: start.clone(),
                range_end: end.clone(),
                limit: i64::try_from(limit).unwrap_or(i64::MAX),
                revision: to_etcd(self.revision),
                keys_only: false,
            };
            match self.client.read(request).await {
                Ok(response) => {
                    let bytes: usize = response.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
                    if let Some(average) = bytes.checked_div(response.kvs.len()) {
                        self.record_bytes.store(average.max(1), Relaxed);
                    }
                    return Ok(response);
                }
                Err(CallError::ResponseTooLarge(_)) if limit > 1 => limit = SAFE_RECORDS.min(limit / 2),
                Err(error) => return Err(read_error(error)),
            }
        }
    }

    fn range_of(&self, prefix: &str) -> (Bytes, Bytes) {
        let mut start = self.client.key(prefix);
        let end = end_of(&start);
        // The key that equals the store's prefix is the store's own.
        if prefix.is_empty() {
            start = just_after(&start);
        }
        (start, end)
    }
}

/// The first key after a key.
fn just_after(key: &[u8]) -> Bytes {
    Bytes::from([key, &[0]].concat())
}

#[async_trait]
impl Snapshot for EtcdSnapshot {
    fn revision(&self) -> Revision {
        self.revision
    }

    fn has_costly_ranges(&self) -> bool {
        true
    }

    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
        let revision = to_etcd(self.revision);
        let request = RangeRequest { key: self.client.key(key), revision, ..RangeRequest::default() };
        let response = self.client.read(request).await.map_err(read_error)?;
        Ok(response.kvs.into_iter().next().map(versioned))
    }

    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        let (mut start, end) = self.range_of(prefix);
        if let Some(after) = after {
            start = start.max(just_after(&self.client.key(after)));
        }
        let (mut page, mut bytes) = (Page::default(), 0);
        while start < end {
            let room = limit - page.records.len();
            // A page that is full still has to say whether there are more.
            let response = self.range(&start, &end, room.max(1)).await?;
            let Some(last) = response.kvs.last() else { return Ok(page) };
            start = just_after(&last.key);
            for kv in response.kvs {
                let Some(key) = relative_key(&kv.key, &self.client.config.prefix) else {
                    page.damaged.push(String::from_utf8_lossy(&kv.key).into());
                    continue;
                };
                let is_full = page.records.len() >= limit || bytes >= PAGE_BYTES_MAX;
                if is_full || page.damaged.len() >= FOREIGN_KEYS_MAX {
                    page.more = true;
                    return Ok(page);
                }
                bytes += key.len() + kv.value.len();
                page.records.push((key, versioned(kv)));
            }
            if !response.more {
                return Ok(page);
            }
            if page.records.len() >= limit
                || bytes >= PAGE_BYTES_MAX
                || page.damaged.len() >= FOREIGN_KEYS_MAX
            {
                page.more = true;
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// Reads everything before `before`, and keeps the end.
    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        let (mut start, mut end) = self.range_of(prefix);
        if let Some(before) = before {
            end = end.min(self.client.key(before));
        }
        let (mut kept, mut bytes, mut page) = (VecDeque::<(Key, Versioned)>::new(), 0, Page::default());
        while start < end {
            let response = self.range(&start, &end, usize::MAX).await?;
            let Some(last) = response.kvs.last() else { break };
            start = just_after(&last.key);
            for kv in response.kvs {
                let Some(key) = relative_key(&kv.key, &self.client.config.prefix) else {
                    page.damaged.push(String::from_utf8_lossy(&kv.key).into());
                    page.damaged.truncate(FOREIGN_KEYS_MAX);
                    continue;
                };
                bytes += key.len() + kv.value.len();
                kept.push_back((key, versioned(kv)));
                // The front is dropped if the records behind it fill the page.
                while let Some((key, record)) = kept.front() {
                    let size = key.len() + record.value.len();
                    if kept.len() <= limit && bytes - size < PAGE_BYTES_MAX {
                        break;
                    }
                    bytes -= size;
                    kept.pop_front();
                    page.more = true;
                }
            }
            if !response.more {
                break;
            }
        }
        page.records = kept.into_iter().rev().collect();
        Ok(page)
    }
}

/// A key without the store's prefix; none if it is not text, and so not one of the store.
pub(crate) fn relative_key(key: &[u8], prefix: &str) -> Option<Key> {
    std::str::from_utf8(key.strip_prefix(prefix.as_bytes())?).ok().map(Key::from)
}

fn versioned(kv: KeyValue) -> Versioned {
    Versioned { revision: from_etcd(kv.mod_revision), value: kv.value.into() }
}

fn read_error(error: CallError) -> ReadError {
    match error {
        CallError::Compacted => ReadError::Compacted,
        error @ (CallError::NotSent(_)
        | CallError::Refused(_)
        | CallError::Denied
        | CallError::Token(_)
        | CallError::FutureRevision
        | CallError::ResponseTooLarge(_)
        | CallError::Unknown(_)
        | CallError::Identity(_)) => ReadError::Unavailable(error.to_string()),
    }
}
