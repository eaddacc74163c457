//! Reads all records with a prefix, page by page. Each page begins after the one before it, so a scan ends.

use notbefore_store::{Key, Page, ReadError, Snapshot};

use crate::integrity::RECOVERY_HINT;

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
        self.more = page.more;
        if self.more {
            self.after = Some(self.end_of(&page)?);
        }
        Ok(Some(page))
    }

    /// The last key of a page that others follow; an error if it is not after those of the pages before.
    fn end_of(&self, page: &Page) -> Result<Key, ReadError> {
        let last = page.records.last().map(|(key, _)| key);
        last.filter(|last| self.after.as_ref() < Some(*last)).cloned().ok_or_else(|| {
            let after = self.after.as_deref().unwrap_or(self.prefix);
            ReadError::Unavailable(format!(
                "a page of records after {after} does not go on behind it; {RECOVERY_HINT}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use notbefore_store::{Revision, Versioned};

    use super::*;

    /// A store whose pages lead back: they all have the same keys.
    struct Circle(Vec<&'static str>);

    #[async_trait]
    impl Snapshot for Circle {
        fn revision(&self) -> Revision {
            Revision(1)
        }

        async fn get(&self, _key: &str) -> Result<Option<Versioned>, ReadError> {
            Ok(None)
        }

        async fn scan(&self, _prefix: &str, _after: Option<&str>, _limit: usize) -> Result<Page, ReadError> {
            let record = Versioned { revision: Revision(1), value: bytes::Bytes::new() };
            let records = self.0.iter().map(|key| (Key::from(*key), record.clone())).collect();
            Ok(Page { records, more: true, damaged: Vec::new() })
        }

        async fn scan_back(&self, _: &str, _: Option<&str>, _: usize) -> Result<Page, ReadError> {
            Ok(Page::default())
        }
    }

    #[tokio::test]
    async fn scan_of_pages_that_lead_back_ends() {
        for (keys, pages) in [(vec!["a/1", "a/2"], 1), (vec![], 0)] {
            let circle = Circle(keys);
            let mut scan = Scan::new(&circle, "a/", 2);
            for _ in 0..pages {
                assert!(scan.next().await.unwrap().is_some());
            }
            let why = scan.next().await.unwrap_err().to_string();
            assert!(why.contains("does not go on") && why.contains("notbefore check --data DIR"), "{why}");
        }
    }
}
