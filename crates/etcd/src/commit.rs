//! Transactions in etcd's words, and outcomes in the store's.
//!
//! A transaction is one `Txn`: comparisons of `mod_revision`, puts and deletes if all hold, and otherwise a read of each
//! compared key, so that a conflict shows what there is at the same revision. Reads of keys whose revision was expected
//! leave out the value. A transaction that writes nothing reads in its success branch: with empty branches etcd
//! would answer from a member that may lag.

use notbefore_store::{Found, Outcome, Refusal, Txn};
use tokio::time::timeout;

use crate::client::{CALL_TIMEOUT, Client, from_etcd, to_etcd};
use crate::errors::CallError;
use crate::proto::{
    COMPARE_MOD_REVISION, Compare, DeleteRangeRequest, Operation, PutRequest, RangeRequest, RequestOp,
    TxnRequest, TxnResponse,
};

impl Client {
    pub(crate) async fn commit(&self, txn: Txn) -> Outcome {
        if let Err(refusal) = txn.check() {
            return Outcome::Refused(refusal);
        }
        let Ok(Ok(_permit)) = timeout(CALL_TIMEOUT, self.commits.acquire()).await else {
            let text = "too many transactions wait for etcd's answer".to_owned();
            return Outcome::Refused(Refusal::Unavailable(text));
        };
        let request = self.encode(&txn);
        match self.call(&self.writes, request).await {
            Ok(response) => decode(&txn, response),
            Err(error) => failed(error),
        }
    }

    fn encode(&self, txn: &Txn) -> TxnRequest {
        let range = |key: &str, keys_only| {
            operation(Operation::Range(RangeRequest {
                key: self.key(key),
                keys_only,
                ..RangeRequest::default()
            }))
        };
        let compare = txn.expect.iter().map(|expect| Compare {
            result: 0,
            target: COMPARE_MOD_REVISION,
            key: self.key(&expect.key),
            mod_revision: Some(expect.revision.map_or(0, to_etcd)),
        });
        let put = txn.put.iter().map(|(key, value)| {
            operation(Operation::Put(PutRequest { key: self.key(key), value: value.clone() }))
        });
        let delete = txn
            .delete
            .iter()
            .map(|key| operation(Operation::Delete(DeleteRangeRequest { key: self.key(key) })));
        let mut success: Vec<RequestOp> = put.chain(delete).collect();
        if success.is_empty() {
            success.push(range("", true));
        }
        let failure = txn.expect.iter().map(|expect| range(&expect.key, expect.revision.is_some()));
        TxnRequest { compare: compare.collect(), success, failure: failure.collect() }
    }
}

fn operation(operation: Operation) -> RequestOp {
    RequestOp { operation: Some(operation) }
}

fn decode(txn: &Txn, response: TxnResponse) -> Outcome {
    let TxnResponse { header, succeeded, responses } = response;
    if succeeded {
        return match header {
            Some(header) => Outcome::Committed(from_etcd(header.revision)),
            None => Outcome::Unknown("etcd's answer has no revision".to_owned()),
        };
    }
    if responses.len() != txn.expect.len() {
        return Outcome::Unknown("etcd's answer does not match the transaction".to_owned());
    }
    let found = txn.expect.iter().zip(responses).filter_map(|(expect, response)| {
        let record = response.range.and_then(|range| range.kvs.into_iter().next());
        let revision = record.as_ref().map(|record| from_etcd(record.mod_revision));
        let value = record.filter(|_| expect.revision.is_none()).map(|record| record.value.into());
        (revision != expect.revision).then(|| Found { key: expect.key.clone(), revision, value })
    });
    let found: Vec<Found> = found.collect();
    match found.is_empty() {
        // Its comparisons failed, so nothing was written.
        true => {
            Outcome::Refused(Refusal::Unavailable("etcd reports a conflict that it does not show".to_owned()))
        }
        false => Outcome::Conflict(found),
    }
}

fn failed(error: CallError) -> Outcome {
    let refused = |text| Outcome::Refused(Refusal::Unavailable(text));
    match error {
        CallError::NotSent(text) | CallError::Refused(text) => refused(text),
        error @ (CallError::Denied | CallError::Token(_)) => refused(error.to_string()),
        CallError::Unknown(text) => Outcome::Unknown(text),
        // The response that shows the change may be the answer to a write.
        error @ (CallError::Identity(_)
        | CallError::Compacted
        | CallError::FutureRevision
        | CallError::ResponseTooLarge(_)) => Outcome::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use notbefore_store::{Expect, Revision};

    use super::*;
    use crate::proto::{KeyValue, RangeResponse, ResponseHeader, ResponseOp};

    fn conflict(responses: Vec<ResponseOp>) -> TxnResponse {
        let header = ResponseHeader { cluster_id: 1, member_id: 1, revision: 9 };
        TxnResponse { header: Some(header), succeeded: false, responses }
    }

    fn shown(mod_revision: i64) -> ResponseOp {
        let kvs = vec![KeyValue { key: b"/nb/a".to_vec(), mod_revision, value: b"1".to_vec() }];
        ResponseOp { range: Some(RangeResponse { header: None, kvs, more: false }) }
    }

    #[test]
    fn responses_that_make_no_sense_are_not_commits() {
        let expect = vec![Expect { key: "a".into(), revision: Some(Revision(5)) }];
        let txn = Txn { expect, ..Txn::default() };
        let found = Found { key: "a".into(), revision: Some(Revision(7)), value: None };
        assert_eq!(decode(&txn, conflict(vec![shown(7)])), Outcome::Conflict(vec![found]));
        assert!(matches!(decode(&txn, conflict(vec![])), Outcome::Unknown(_)));
        assert!(matches!(decode(&txn, conflict(vec![shown(5)])), Outcome::Refused(_)));
        let bare = TxnResponse { succeeded: true, ..TxnResponse::default() };
        assert!(matches!(decode(&txn, bare), Outcome::Unknown(_)));
    }

    #[test]
    fn failures_before_the_proposal_are_refusals() {
        for error in [
            CallError::NotSent("x".into()),
            CallError::Refused("x".into()),
            CallError::Denied,
            CallError::Token("x".into()),
        ] {
            assert!(matches!(failed(error), Outcome::Refused(Refusal::Unavailable(_))));
        }
        for error in [CallError::Unknown("x".into()), CallError::Compacted, CallError::FutureRevision] {
            assert!(matches!(failed(error), Outcome::Unknown(_)));
        }
    }
}
