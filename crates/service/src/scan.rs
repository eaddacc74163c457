//! Reads all records with a prefix, page by page.

use notbefore_store::{Key, Page, ReadError, Snapshot};

/// A scan and its position.
pub(crate) struct Scan<'a> {
    snapshot: &'a dyn Snapshot,
    prefix: &'a str,
    /// Most records in a page.
    limit: usize,
    after: Option<Key>,
    more: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(snapshot: &'a dyn Snapshot, prefix: &'a str, limit: usize) -> Self {
        Self { snapshot, prefix, limit, after: None, more: true }
    }

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
