//! Facts: what has happened, in one form for the stream, an event's trail and the audit trail.
//!
//! ```json
//! {"id":"42.0","at":"…","type":"EventStarted","scope":"default/default/web","operation":"…","event":"…",
//!  "vms":["web-0"],"by":{"kind":"timer","name":"timer"},"detail":{"cause":"host-reboot","why":"NotBefore passed"}}
//! ```
//!
//! `type` says which `detail` there is. A reader keeps a type that it does not know, with its detail.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::openapi::schema::{Discriminator, Object, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::tokens::Grant;
use super::{ActorKind, Cause};

/// Where a fact stands among all: the revision of its commit, and a number within it. Ids rise in the order of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId {
    /// The commit.
    pub revision: u64,
    /// Which of the commit's facts it is; there may be gaps.
    pub n: u64,
}

/// A text that is no [`FactId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fact's id is a revision, a dot and a number, as in 42.0")]
pub struct BadFactId;

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.revision, self.n)
    }
}

impl FromStr for FactId {
    type Err = BadFactId;

    fn from_str(text: &str) -> Result<Self, BadFactId> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| BadFactId),
            false => Err(BadFactId),
        };
        let (revision, n) = text.split_once('.').ok_or(BadFactId)?;
        Ok(Self { revision: number(revision)?, n: number(n)? })
    }
}

impl Serialize for FactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// What kind of actor it is.
    pub kind: ActorKind,
    /// Its name: a token's, a VM's or a driver's; of other kinds the kind itself.
    pub name: String,
    /// Where a VM called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, address } = self;
        match kind {
            ActorKind::Timer | ActorKind::Service | ActorKind::Stranger => write!(f, "{kind}")?,
            ActorKind::Token | ActorKind::Vm | ActorKind::Driver | ActorKind::Unknown(_) => {
                write!(f, "{kind} {name}")?;
            }
        }
        address.map_or(Ok(()), |address| write!(f, " at {address}"))
    }
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Fact {
    /// Its id. In an event's trail it may be missing: the audit trail keeps facts for a limited time.
    pub id: Option<FactId>,
    /// When.
    pub at: Timestamp,
    /// What, with all that is particular to it.
    pub what: What,
    /// The scope's path, for what happened in one.
    pub scope: Option<String>,
    /// The operation that it happened to, or that its event is part of.
    pub operation: Option<Uuid>,
    /// The event that it happened to.
    pub event: Option<Uuid>,
    /// The VMs that it is about, by name.
    pub vms: Vec<String>,
    /// Who did it.
    pub by: Actor,
}

/// What has happened: the fact's `type` and `detail`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", content = "detail")]
pub enum What {
    /// An event was announced.
    EventScheduled {
        /// Why the event happens.
        cause: Cause,
        /// Not before when; none for a cause that gives no notice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
    },
    /// A VM that the event happens to was first sent a document that shows it; in the stream only.
    EventRead {
        /// At which api-version.
        api_version: String,
    },
    /// A guest or an operator approved the event.
    EventApproved {
        /// Why the event happens.
        cause: Cause,
    },
    /// All parts of the event's operation are approved or gone.
    EventReleased {
        /// Why the event happens.
        cause: Cause,
    },
    /// The event may begin, and waits to be started through the API.
    EventReady {
        /// Why the event happens.
        cause: Cause,
        /// What made it ready, in words.
        why: String,
    },
    /// The event began.
    EventStarted {
        /// Why the event happens.
        cause: Cause,
        /// What let it begin, in words.
        why: String,
    },
    /// The event was carried out.
    EventCompleted {
        /// Why the event happens.
        cause: Cause,
    },
    /// The event was called off.
    EventCancelled {
        /// Why the event happens.
        cause: Cause,
        /// Why it was called off, in words, if not because of a request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A process of the service went on with commands that another had begun to run.
    DriverTookOver {
        /// Why the event happens.
        cause: Cause,
        /// The process.
        owner: String,
        /// The fencing number of its commands.
        fence: u64,
    },
    /// A command failed and will be tried again.
    DriverAttemptFailed {
        /// Why the event happens.
        cause: Cause,
        /// The VM that it was run for.
        vm: String,
        /// Which attempt it was.
        attempt: u32,
        /// Why it failed.
        why: String,
    },
    /// A command has used up its attempts.
    DriverFailed {
        /// Why the event happens.
        cause: Cause,
        /// The VM that it was run for.
        vm: String,
        /// The last attempt.
        attempts: u32,
        /// Why that failed.
        why: String,
    },
    /// An operator let failed commands be tried again.
    DriverRetried {
        /// Why the event happens.
        cause: Cause,
        /// How many.
        commands: usize,
    },
    /// An operation was asked for.
    OperationRequested {
        /// Why.
        cause: Cause,
        /// How many parts it has: one for each scope and update domain, or each VM.
        targets: usize,
    },
    /// All live parts of a host's operation start.
    OperationStarted {
        /// What let it start, in words.
        why: String,
    },
    /// An operation was carried out as a whole.
    OperationCompleted,
    /// An operation was called off.
    OperationCancelled,
    /// A scope was made.
    ScopeCreated,
    /// A scope's policy was changed.
    PolicyChanged,
    /// A scope was removed.
    ScopeRemoved,
    /// A VM joined its scope.
    VmAdded,
    /// What is known of a VM changed.
    VmChanged,
    /// A VM left.
    VmRemoved,
    /// A VM moved to another host.
    VmMoved {
        /// The host that it is on now.
        host: String,
    },
    /// A spot VM was evicted.
    VmDeallocated,
    /// An evicted VM runs again.
    VmStarted,
    /// A token was made.
    TokenCreated {
        /// The token's name.
        name: String,
        /// What it may do.
        grants: Vec<Grant>,
    },
    /// A token was revoked.
    TokenRevoked {
        /// The token's name.
        name: String,
    },
    /// An operator trusts the clock although it has jumped.
    ClockAccepted,
    /// A request was refused; in the audit trail only.
    RequestRefused {
        /// Why: `not_permitted`, `hidden`, `token_refused`, `token_missing`.
        code: String,
        /// Its method and path.
        request: String,
    },
    /// Requests were refused that came too fast to be kept one by one; in the audit trail only.
    FurtherRefusals {
        /// How many.
        count: u64,
    },
    /// Something that this release does not know.
    #[serde(skip)]
    Unknown {
        /// Its type.
        kind: String,
        /// Its detail.
        detail: Option<Value>,
    },
}

impl What {
    /// Its type, and its detail as JSON.
    fn parts(self) -> (String, Option<Value>) {
        if let Self::Unknown { kind, detail } = self {
            return (kind, detail);
        }
        let mut json = serde_json::to_value(self).unwrap_or_default();
        let kind = json["type"].as_str().unwrap_or_default().to_owned();
        (kind, json.get_mut("detail").map(Value::take))
    }

    /// Its type: `EventScheduled`, …
    pub fn kind(&self) -> String {
        self.clone().parts().0
    }

    fn read(kind: String, detail: Option<Value>) -> Self {
        let mut json = serde_json::json!({ "type": kind });
        if let Some(detail) = &detail {
            json["detail"] = detail.clone();
        }
        serde_json::from_value(json).unwrap_or(Self::Unknown { kind, detail })
    }
}

/// A fact in the order of its fields.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
struct Written {
    /// Its id: the revision of its commit, a dot, and a number within that. It is always there in the stream and in the
    /// audit trail, and in an event's trail while the audit trail has the fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^[0-9]+\\.[0-9]+$", example = "42.0")]
    id: Option<FactId>,
    /// When.
    at: Timestamp,
    /// What.
    #[serde(rename = "type")]
    kind: String,
    /// The scope's path, for what happened in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// The operation that it happened to, or that its event is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Uuid>,
    /// The event that it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Uuid>,
    /// The VMs that it is about, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vms: Vec<String>,
    /// Who did it.
    by: Actor,
    /// What is particular to this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<Value>,
}

impl From<Fact> for Written {
    fn from(Fact { id, at, what, scope, operation, event, vms, by }: Fact) -> Self {
        let (kind, detail) = what.parts();
        Self { id, at, kind, scope, operation, event, vms, by, detail }
    }
}

impl From<Written> for Fact {
    fn from(Written { id, at, kind, scope, operation, event, vms, by, detail }: Written) -> Self {
        Self { id, at, what: What::read(kind, detail), scope, operation, event, vms, by }
    }
}

/// Each type of fact as a schema of its own: the common fields, and the detail of this type.
fn schemas() -> Vec<(String, Object)> {
    let (RefOr::T(Schema::OneOf(union)), RefOr::T(Schema::Object(common))) =
        (What::schema(), Written::schema())
    else {
        return Vec::new();
    };
    let mut schemas = Vec::new();
    for item in union.items {
        let RefOr::T(Schema::Object(own)) = item else { continue };
        let Some(RefOr::T(Schema::Object(tag))) = own.properties.get("type") else { continue };
        let Some(kind) = tag.enum_values.iter().flatten().find_map(Value::as_str).map(str::to_owned) else {
            continue;
        };
        let mut object = common.clone();
        object.description = own.description;
        object.properties.remove("detail");
        object.properties.extend(own.properties);
        let more = own.required.into_iter().filter(|name| !common.required.contains(name));
        object.required.extend(more);
        schemas.push((kind, object));
    }
    schemas
}

fn schema_name(kind: &str) -> String {
    format!("Fact{kind}")
}

impl PartialSchema for Fact {
    fn schema() -> RefOr<Schema> {
        let mut union =
            OneOfBuilder::new().description(Some("Something that has happened; `type` says what."));
        let mut mapping = BTreeMap::new();
        for (kind, _) in schemas() {
            let schema = Ref::from_schema_name(schema_name(&kind));
            mapping.insert(kind, schema.ref_location.clone());
            union = union.item(schema);
        }
        union.discriminator(Some(Discriminator::with_mapping("type", mapping))).into()
    }
}

impl ToSchema for Fact {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Fact")
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.extend(schemas().into_iter().map(|(kind, object)| (schema_name(&kind), object.into())));
        Written::schemas(all);
        What::schemas(all);
    }
}
