//! The messages of etcd's API version 3 that this crate uses, written by hand.
//!
//! Fields that are not needed are left out: protobuf skips them. Numbers and types are those of etcd's `rpc.proto` and
//! `kv.proto`; tests compare them on the wire with `etcdctl`. Values of responses are vectors of their own, not slices of
//! the response: a record that is kept must not keep a page of 4 MiB in memory.

use bytes::Bytes;
use prost::Message;

/// A request, with the method that it calls.
pub(crate) trait Call: Message + Default + 'static {
    type Response: Message + Default + Headed + 'static;
    const PATH: &'static str;
    /// Whether a member without a leader must refuse the call at once.
    const NEEDS_LEADER: bool;
}

/// A response with etcd's header.
pub(crate) trait Headed {
    fn header(&self) -> Option<&ResponseHeader>;
}

macro_rules! calls {
    ($($request:ident => $response:ident, $path:literal, $needs_leader:literal;)*) => {
        $(impl Call for $request {
            type Response = $response;
            const PATH: &'static str = $path;
            const NEEDS_LEADER: bool = $needs_leader;
        }
        impl Headed for $response {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        })*
    };
}

calls! {
    RangeRequest => RangeResponse, "/etcdserverpb.KV/Range", true;
    TxnRequest => TxnResponse, "/etcdserverpb.KV/Txn", true;
    CompactionRequest => CompactionResponse, "/etcdserverpb.KV/Compact", true;
    AuthenticateRequest => AuthenticateResponse, "/etcdserverpb.Auth/Authenticate", true;
    StatusRequest => StatusResponse, "/etcdserverpb.Maintenance/Status", false;
    AlarmRequest => AlarmResponse, "/etcdserverpb.Maintenance/Alarm", true;
    MemberListRequest => MemberListResponse, "/etcdserverpb.Cluster/MemberList", false;
}

/// A stream of requests and of responses, so it is not a [`Call`].
pub(crate) const WATCH_PATH: &str = "/etcdserverpb.Watch/Watch";

impl Headed for WatchResponse {
    fn header(&self) -> Option<&ResponseHeader> {
        self.header.as_ref()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// Empty for one key.
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    /// 0 is no limit.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// 0 is the newest.
    #[prost(int64, tag = "4")]
    pub revision: i64,
    #[prost(bool, tag = "8")]
    pub keys_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub more: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub operation: Option<Operation>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    /// Responses to puts and deletes say nothing that is needed.
    #[prost(message, optional, tag = "1")]
    pub range: Option<RangeResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    /// 0 is equal.
    #[prost(int32, tag = "1")]
    pub result: i32,
    #[prost(int32, tag = "2")]
    pub target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub key: Bytes,
    /// Part of a union, so it is sent even if it is 0. A missing key has revision 0.
    #[prost(int64, optional, tag = "6")]
    pub mod_revision: Option<i64>,
}

/// [`Compare::target`] for the revision of the last put.
pub(crate) const COMPARE_MOD_REVISION: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub start_revision: i64,
    #[prost(bool, tag = "8")]
    pub fragment: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub created: bool,
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    /// Whether another part of the same response follows.
    #[prost(bool, tag = "7")]
    pub fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {
    /// 0 is a put.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    /// Of a delete: the key and the revision that deleted it.
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
}

/// [`Event::kind`] of a put.
pub(crate) const EVENT_PUT: i32 = 0;
/// [`Event::kind`] of a delete.
pub(crate) const EVENT_DELETE: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    #[prost(int64, tag = "9")]
    pub db_size_in_use: i64,
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
    /// Since 3.6.
    #[prost(int64, tag = "12")]
    pub db_size_quota: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MemberListRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MemberListResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<MemberEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MemberEntry {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// The defaults list all alarms of all members.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmEntry {
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    #[prost(int32, tag = "2")]
    pub kind: i32,
}

/// Its `Debug` would show the password, so it has none.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub token: String,
}

impl std::fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateResponse").field("header", &self.header).finish_non_exhaustive()
    }
}
