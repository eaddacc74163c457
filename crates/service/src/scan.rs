//! Reads all records below a prefix, a page at a time.

use notbefore_store::{Key, Page, ReadError, Snapshot};

/// A scan and how far it has come.
pub(crate) struct Scan<'a> {
    snapshot: &'a dyn Snapshot,
    prefix: &'a str,
    /// Records in a page, at most.
    limit: usize,
    after: Option<Key>,
    more: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(snapshot: &'a dyn Snapshot, prefix: &'a str, limit: usize) -> Self {
        Self { snapshot, prefix, limit, after: None, more: true }
    }

    /// The next page; none after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, ReadError> {
        if !self.more {
            return Ok(None);
        }
        let page = self.snapshot.scan(self.prefix, self.after.as_deref(), self.limit).await?;
        self.after = page.records.last().map(|(key, _)| key.clone());
        self.more = page.more;
        Ok(Some(page))
    }
}
