//! Table of all settings of `serve`. Add a new setting only here.
//!
//! ```text
//! /// Section title
//! "section" field: Struct {
//!     /// Description, used in the flag's help, the sample file and the documentation
//!     name: Type = default, kind, flag;
//! }
//! ```
//!
//! The table generates the file's key `section.name`, the variable `NOTBEFORE_SECTION_NAME`, the flag, its help,
//! `--print-config`, and the field `settings.field.name` that `serve.rs` uses. It also generates `dist/notbefore.toml`
//! and the table in `docs/reference/configuration.md`; a failing test prints the command that rewrites both.
//! Kinds come from `notbefore_settings` or `kinds.rs`. A secret is never a value: the setting names the file that
//! contains it, as a `FILE` with default `None`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_core::{DriverKind, ExecSettings};
use notbefore_etcd::{DEFAULT_PREFIX, DEFAULT_QUOTA_BYTES};
use notbefore_service::cluster::join::ClusterConfig;
use notbefore_service::exec::ExecConfig;
use notbefore_service::guest::settings::{GuestSettings, Limits, Mode};
use notbefore_service::janitor::HistoryLimits;
use notbefore_service::nodes::NodesConfig;
use notbefore_service::operator::change_rate::ChangeRateLimit;
use notbefore_service::operator::server::{HostName, OperatorServerLimits};
use notbefore_service::{AddressPrefix, GuestListener, GuestVm, ProxyAddress};
use notbefore_settings::Reader;
use notbefore_settings::kind::{
    FileName, Integer, LOG_FORMAT, List, LogFilter, LogFormat, OrNone, Span, Switch,
};
use notbefore_settings::schema::{Flag, Group, Key};
use notbefore_wire::guest::version::EventsVersion;

use super::kinds::*;
use super::table::settings;

settings! {
    /// General
    "" general: General {
        /// Data directory, with the first token (`$STATE_DIRECTORY` if systemd sets it)
        data: PathBuf = "notbefore-data".into(), FileName, Flag::Everywhere("data");
        /// Log filter, for standard error: a level, or levels per module
        log: String = "info".to_owned(), LogFilter, Flag::None;
        /// Log format: `text`, or `json` for one object per line
        log_format: LogFormat = LogFormat::Text, LOG_FORMAT, Flag::Value("log-format", "FORMAT");
        /// File with the first token, 20 characters or more, read when that token is created; `none`: a random token
        root_token_file: Option<PathBuf> = None, FILE, Flag::Value("root-token-file", "FILE");
        /// Fleet file to apply at every start, before guests are answered. It adds and changes, and removes nothing
        fleet_file: Option<PathBuf> = None, FILE, Flag::Value("fleet", "FILE");
        /// File to write when the service is ready, with its listeners as JSON; removed when the service stops
        ready_file: Option<PathBuf> = None, FILE, Flag::Value("ready-file", "FILE");
    }

    /// Guests
    "guest" guest: Guest {
        /// Listen address for guests, with optional network (`default` if omitted), network device and TPROXY
        listen: Vec<GuestListener> = vec![GuestListener {
            network: "default".to_owned(),
            at: SocketAddr::from(([127, 0, 0, 1], 9254)).into(),
        }], List(LISTENER), Flag::Value("guest", "[NETWORK=]ADDR[%DEVICE][+tproxy]");
        /// Listener for one VM: every request comes from that VM. A missing VM is created as a Spot VM with 5 minutes'
        /// terminate notification
        vms: Vec<GuestVm> = Vec::new(), List(VM), Flag::Value("guest-vm", "NAME=ADDR");
        /// How requests are checked: `strict` (require exactly `Metadata: true`, as Azure does today), `normal`, or
        /// `lenient` (accept approvals without `Metadata` at every version, and the paths of 2017)
        mode: Mode = Mode::Normal, MODE, Flag::Choices(&[
            ("strict", "strict", "Require exactly `Metadata: true` on every request, as Azure does today"),
            ("lenient", "lenient", "Accept approvals without `Metadata` at every version, and the paths of 2017"),
        ]);
        /// Newest api-version of scheduled events: `2024-07-09`, or `2020-07-01` for a platform without advisories, which
        /// answers newer ones with 404
        newest_version: EventsVersion =
            EventsVersion::NEWEST, NEWEST_VERSION, Flag::Value("newest-version", "DATE");
        /// Write NotBefore in RFC 1123 format at api-version 2017-03-01 too
        rfc1123_everywhere: bool = false, Switch, Flag::Switch("rfc1123-everywhere");
        /// Requests per second for each VM, with a burst of the same size; 429 above it (Azure: 5)
        rate_limit: Option<NonZeroU32> =
            Some(GuestSettings::RATE_LIMIT), OrNone(Integer::between(1, i64::MAX)), Flag::Value("rate-limit", "N");
        /// Allow operators to add faults: wrong, late or no answers, for tests of handlers; not in a cluster
        faults: bool = false, Switch, Flag::Switch("faults");
        /// Threads that answer polls; `none`: one per available processor, 4 at most
        threads: Option<usize> = None, OrNone(Integer::between(1, 1_024)), Flag::None;
    }

    /// Limits of the guest listener
    "guest.limits" guest_limits: GuestLimits {
        /// Open connections of all guest listeners, fewer if the open file limit is lower. At the limit, connections
        /// of callers that are not VMs are closed first, then those idle longest
        connections_max: usize = Limits::default().connections_max, CONNECTIONS, Flag::None;
        /// Open connections per source address; 127.0.0.1, ::1 and trusted proxies are exempt
        connections_per_source_max: Option<usize> =
            Limits::default().connections_per_source_max, OrNone(CONNECTIONS), Flag::None;
        /// Timeout for a request's head, from first to last byte
        head_timeout: Duration = Limits::default().head_timeout, TIMEOUT, Flag::None;
        /// Timeout for a request's body
        body_timeout: Duration = Limits::default().body_timeout, TIMEOUT, Flag::None;
        /// Idle timeout of a connection between requests
        idle_timeout: Duration = Limits::default().idle_timeout, TIMEOUT, Flag::None;
        /// Timeout for a write without progress
        write_timeout: Duration = Limits::default().write_timeout, TIMEOUT, Flag::None;
        /// Grace period for requests in progress when the service stops
        shutdown_grace: Duration = Limits::default().shutdown_grace, TIMEOUT, Flag::None;
    }

    /// Guest proxies
    "proxy" proxy: Proxy {
        /// Source addresses of trusted proxies, which name the VM they forward for (`X-Instance-ID` and its signature)
        addresses: Vec<ProxyAddress> = Vec::new(), List(PROXY), Flag::Value("proxy", "[NETWORK=]ADDR[/BITS]");
        /// File with the secret for the signature; two lines during rotation. Reloaded on SIGHUP
        secret_file: Option<PathBuf> = None, FILE, Flag::Value("proxy-secret-file", "FILE");
    }

    /// Operators
    "operator" operator: Operator {
        /// Listen address for operators
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9255)), ADDRESS, Flag::Value("operator", "ADDR");
        /// Certificate chain of the operator listener (PEM, leaf first). Reloaded on SIGHUP
        cert: Option<PathBuf> = None, FILE, Flag::Value("operator-cert", "FILE");
        /// Private key of the operator listener's certificate (PEM)
        key: Option<PathBuf> = None, FILE, Flag::Value("operator-key", "FILE");
        /// Allow the operator listener on a non-loopback address without TLS
        without_tls: bool = false, Switch, Flag::Switch("operator-without-tls");
        /// Burst of changes for a token that is not operator on `/`; 429 above it
        changes_at_once: usize = ChangeRateLimit::BURST, Integer::between(1, 1_000_000), Flag::None;
        /// Changes per second for such a token
        changes_per_second: usize = ChangeRateLimit::PER_SECOND, Integer::between(1, 100_000), Flag::None;
        /// Show names of hosts to tenants too: to tokens that are operator nowhere and have no role on `/`
        hosts_shown: bool = false, Switch, Flag::None;
        /// Reverse proxies in front of the operator listener, exempt from the limit per source address
        proxies: Vec<AddressPrefix> = Vec::new(), List(PREFIX), Flag::None;
        /// Host names accepted on loopback, besides `localhost`, this machine's name and the certificate's names
        hosts: Vec<HostName> = Vec::new(), List(HOST), Flag::None;
    }

    /// Limits of the operator listener
    "operator.limits" operator_limits: OperatorLimits {
        /// Open connections per token; 429 above it. The total is 512, 16 of them reserved for loopback
        connections_per_token_max: usize = OperatorServerLimits::default().connections_per_token_max, CONNECTIONS, Flag::None;
        /// Open streams per token (`GET /v1/stream`); 429 above it
        streams_per_token_max: usize = OperatorServerLimits::default().streams_per_token_max, CONNECTIONS, Flag::None;
        /// Open streams of all tokens. At the limit, the oldest stream of the token with the most streams is closed
        streams_max: usize = OperatorServerLimits::default().streams_max, CONNECTIONS, Flag::None;
    }

    /// etcd, for several nodes
    "etcd" etcd: Etcd {
        /// Client URLs of etcd's members. The fleet is then in etcd, and several nodes can serve it; all with `http`, or
        /// all with `https`
        endpoints: Vec<String> = Vec::new(), List(ETCD_URL), Flag::Value("etcd", "URL");
        /// Name of this node in its cluster, unique among the running nodes; `none`: the machine's host name
        node: Option<String> = None, OrNone(NODE_NAME), Flag::Value("node", "NAME");
        /// Key in etcd below which everything is stored
        prefix: String = DEFAULT_PREFIX.to_owned(), ETCD_PREFIX, Flag::Value("etcd-prefix", "PREFIX");
        /// Certificates of the authority of etcd's certificates (PEM), for `https`. Renewed files are used for new connections
        ca: Option<PathBuf> = None, FILE, Flag::Value("etcd-ca", "FILE");
        /// Client certificate for etcd (PEM, leaf first)
        cert: Option<PathBuf> = None, FILE, Flag::Value("etcd-cert", "FILE");
        /// Private key of the client certificate (PEM)
        key: Option<PathBuf> = None, FILE, Flag::Value("etcd-key", "FILE");
        /// User of etcd
        user: Option<String> = None, OrNone(ETCD_USER), Flag::Value("etcd-user", "NAME");
        /// File with the user's password
        password_file: Option<PathBuf> = None, FILE, Flag::Value("etcd-password-file", "FILE");
        /// Quota of etcd's members, for warnings before it is reached. It must equal their `--quota-backend-bytes`; members
        /// of etcd 3.6 and later report it themselves. `none`: they have no quota
        quota: Option<u64> =
            Some(DEFAULT_QUOTA_BYTES), OrNone(ETCD_QUOTA), Flag::Value("etcd-quota", "SIZE");
        /// Compact etcd's history every ten minutes, in agreement with the other nodes. Turn it off if something else does
        compact: bool = true, Switch, Flag::None;
    }

    /// Nodes of a cluster
    "node" node: Node {
        /// How long guests are answered while etcd is away. Later they get 503: their address may be another VM's by then
        trust_addresses_for: Duration =
            ClusterConfig::TRUST_ADDRESSES_FOR, Span { min: 5, max: 7 * 86_400 }, Flag::None;
        /// Newest format level of records that this node writes. A lower one than the release's keeps the way back to the
        /// release before open (unused with one node)
        format_level: u32 = ClusterConfig::FORMAT_LEVEL, FORMAT_LEVEL, Flag::Value("format-level", "N");
        /// Listen address for the other nodes of a cluster, which forward changes to the leader (unused with one node).
        /// Port 0: any free port. Beyond loopback it needs `node.cert`, `node.key` and `node.ca`
        listen: SocketAddr = NodesConfig::LISTEN, ADDRESS, Flag::Value("node-listen", "ADDR");
        /// Certificate chain of this node, for mutual TLS (PEM, leaf first; unused with one node). It must name the
        /// address of `node.listen`. Reloaded on SIGHUP
        cert: Option<PathBuf> = None, FILE, Flag::Value("node-cert", "FILE");
        /// Private key of this node's certificate (PEM; unused with one node)
        key: Option<PathBuf> = None, FILE, Flag::Value("node-key", "FILE");
        /// Certificates of the authority that has signed the certificates of all nodes (PEM; unused with one node)
        ca: Option<PathBuf> = None, FILE, Flag::Value("node-ca", "FILE");
    }

    /// Events
    "events" events: Events {
        /// Factor for all notice periods, for testing (0.01: 15 minutes become 9 seconds)
        notice: f64 = 1.0, Factor, Flag::Value("notice", "FACTOR");
        /// Live user operations per scope
        user_operations_max: usize = 100, Integer::between(0, 1_000_000), Flag::Value("user-operations-max", "N");
        /// Stored user operations per scope, ended ones included; operators on `/` are exempt
        stored_user_operations_max: usize = 10_000, Integer::between(1, 100_000_000), Flag::None;
        /// Give user operations their notice even if no guest of the scope has polled for a day
        always_give_notice: bool = false, Switch, Flag::Switch("always-give-notice");
        /// Retention of ended events and facts
        keep_history: Duration = Duration::from_secs(90 * 86_400), LONG_SPAN, Flag::Value("keep-history", "SPAN");
        /// Size of ended events and facts, for example `512MiB`; above it the oldest are removed before their retention.
        /// With `--etcd` the default is `512MiB`
        keep_history_bytes: Option<u64> =
            Some(HistoryLimits::BYTES_MAX), OrNone(HISTORY_SIZE), Flag::Value("keep-history-bytes", "SIZE");
    }

    /// Driver
    "driver" driver: DriverSettings {
        /// How events are carried out: `simulated` (not at all: an event stays Started for its duration, then
        /// completes), `manual` (by external automation, with `event start` and `event complete`) or `exec` (one
        /// command per VM)
        kind: DriverKind = DriverKind::Simulated, DRIVER, Flag::Value("driver", "KIND");
        /// Time that the simulated driver keeps an event Started if its duration is unknown
        simulated_duration: Duration = Duration::from_secs(60), LONG_SPAN, Flag::Value("simulated-duration", "SPAN");
    }

    /// Exec driver
    "driver.exec" exec: Exec {
        /// Executable to run for each VM; it receives the event in environment variables
        command: Option<PathBuf> = None, FILE, Flag::Value("exec", "FILE");
        /// Executable to run once for a host that reboots or freezes, after the commands of its VMs and before their
        /// events end
        host_command: Option<PathBuf> = None, FILE, Flag::Value("exec-host", "FILE");
        /// Timeout of the command; then it is killed and counts as failed
        timeout: Duration = ExecConfig::TIMEOUT, Span { min: 1, max: 7 * 86_400 }, Flag::Value("exec-timeout", "SPAN");
        /// The same for the command of a host
        host_timeout: Duration =
            ExecConfig::HOST_TIMEOUT, Span { min: 1, max: 7 * 86_400 }, Flag::Value("exec-host-timeout", "SPAN");
        /// Attempts before the event waits for `event retry`, or the operation for `operation retry`
        attempts: usize = 5, Integer::between(1, 1_000_000), Flag::Value("exec-attempts", "N");
        /// Back-off after the first failure; doubles with each further failure, 5 minutes at most
        backoff: Duration =
            ExecSettings::default().backoff_first, Span { min: 0, max: 300 }, Flag::Value("exec-backoff", "SPAN");
        /// Commands that run at once; others are queued
        concurrency: usize = ExecConfig::CONCURRENCY, Integer::between(1, 1_000), Flag::Value("exec-concurrency", "N");
        /// Environment variables of the service that are passed to the command
        environment: Vec<String> = Vec::new(), List(VARIABLE), Flag::Value("exec-env", "NAME");
    }
}
