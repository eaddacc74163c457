//! Refused requests and uses of tokens: a follower reports them to the leader, which keeps the audit trail.
//!
//! A follower answers reads itself, so it alone knows which it refused and which tokens they used. It reports both once
//! a second, if there is something new; everything again to another leader. A report may be repeated: a batch has one
//! key in the store, and of uses the last counts.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::signature::Kind;
use super::{Deadline, ForwardError, Nodes};
use crate::lock;
use crate::refusals::NumberedBatch;

/// How long a follower waits for an answer. The leader stores a batch first, which takes milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The content of a report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AuditReport {
    pub refused: Option<NumberedBatch>,
    /// Last uses by the hash of the token. At most one for each token of the cluster.
    pub used: BTreeMap<String, Timestamp>,
}

/// What the leader knows of uses.
#[derive(Debug, Default)]
pub struct ReportedUses {
    /// As `name~epoch`.
    leader: Option<String>,
    used: BTreeMap<String, Timestamp>,
}

impl ReportedUses {
    /// The uses that this leader does not know.
    fn news(&self, leader: Option<&str>, used: &BTreeMap<String, Timestamp>) -> BTreeMap<String, Timestamp> {
        let is_news = |token: &str, at| self.leader.as_deref() != leader || self.used.get(token) != Some(at);
        let news = used.iter().filter(|(token, at)| is_news(token, at));
        news.map(|(token, at)| (token.clone(), *at)).collect()
    }
}

impl Nodes {
    /// Reports a batch, and uses of tokens that the leader does not know. An error means that the batch may not be
    /// stored.
    pub async fn report(&self, refused: Option<NumberedBatch>) -> Result<(), ForwardError> {
        let leader = self.standing().leader.map(|leader| leader.id());
        let used = self.views.newest().tokens.uses();
        let news = lock(&self.reported_uses).news(leader.as_deref(), &used);
        let report = AuditReport { refused, used: news };
        if report.refused.is_some() || !report.used.is_empty() {
            let content = serde_json::to_vec(&report).map_err(|_| ForwardError::TooLarge)?;
            self.exchange(Kind::Audit, Bytes::from(content), Deadline::new(ANSWER_TIMEOUT)).await?;
        }
        *lock(&self.reported_uses) = ReportedUses { leader, used };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_reported_once_to_each_leader() {
        let uses = |second| {
            let at = |second| Timestamp::from_second(second).unwrap();
            BTreeMap::from([("a".to_owned(), at(1)), ("b".to_owned(), at(second))])
        };
        let reported = ReportedUses { leader: Some("l~1".to_owned()), used: uses(2) };
        assert!(reported.news(Some("l~1"), &uses(2)).is_empty());
        assert_eq!(reported.news(Some("l~1"), &uses(3)).into_keys().collect::<Vec<_>>(), ["b"]);
        for other in [Some("l~2"), Some("m~1"), None] {
            assert_eq!(reported.news(other, &uses(2)), uses(2));
        }
    }
}
