//! Every setting of `serve`, and the only place to add one.
//!
//! ```text
//! /// What the section is about
//! "section" field: Struct {
//!     /// What the setting does: the flag's help, the sample file and the documentation say this
//!     name: Type = default, kind, flag;
//! }
//! ```
//!
//! From this come the key `section.name` of the file, the variable `NOTBEFORE_SECTION_NAME`, the flag, the help,
//! `--print-config`, `dist/notbefore.toml` and the table in `docs/reference/configuration.md` (a test says how to write these
//! two anew), and a field `settings.field.name` for `serve.rs` to use. Kinds are the kernel's, or in `kinds.rs`. A secret
//! is never a value here: the setting names the file that holds it, as a `FILE` that is `None` by default.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_core::{DriverKind, ExecSettings};
use notbefore_service::exec::ExecConfig;
use notbefore_service::guest::settings::{GuestSettings, Limits, Mode};
use notbefore_service::operator::change_rate::ChangeRateLimit;
use notbefore_service::operator::server::{HostName, OperatorServerLimits};
use notbefore_service::{AddressPrefix, GuestListener, GuestVm, ProxyAddress};
use notbefore_settings::Reader;
use notbefore_settings::kind::{FileName, Integer, List, OrNone, Span, Switch};
use notbefore_settings::schema::{Flag, Group, Key};

use super::kinds::*;
use super::table::settings;

settings! {
    /// The service as a whole
    "" general: General {
        /// Where the service keeps its data, its first token included; `$STATE_DIRECTORY` if systemd sets that
        data: PathBuf = "notbefore-data".into(), FileName, Flag::Everywhere("data");
        /// What is logged, to standard error: a level, or levels by module
        log: String = "info".to_owned(), LOG_FILTER, Flag::None;
    }

    /// Guests
    "guest" guest: Guest {
        /// Where guests call, from which network if not `default`, by which device if not any, and whether by TPROXY
        listen: Vec<GuestListener> = vec![GuestListener {
            network: "default".to_owned(),
            at: SocketAddr::from(([127, 0, 0, 1], 9254)).into(),
        }], List(LISTENER), Flag::Value("guest", "[NETWORK=]ADDR[%DEVICE][+tproxy]");
        /// A listener whose callers are all one VM, made if there is none of that name: a Spot VM whose deletion gives 5 minutes' notice
        vms: Vec<GuestVm> = Vec::new(), List(VM), Flag::Value("guest-vm", "NAME=ADDR");
        /// What is asked of requests: `strict` (exactly `Metadata: true` on every one, as Azure does today), `normal`,
        /// or `lenient` (approvals without `Metadata` at every version, and the paths of 2017)
        mode: Mode = Mode::Normal, MODE, Flag::Choices(&[
            ("strict", "strict", "Ask for exactly `Metadata: true` on every request, as Azure does today"),
            ("lenient", "lenient", "Take approvals without `Metadata` at every version, and the paths of 2017"),
        ]);
        /// Write NotBefore as RFC 1123 at 2017-03-01 too
        rfc1123_everywhere: bool = false, Switch, Flag::Switch("rfc1123-everywhere");
        /// Requests a second that a VM may make, a second's worth at once; 429 beyond (Azure: 5)
        rate_limit: Option<NonZeroU32> =
            Some(GuestSettings::RATE_LIMIT), OrNone(Integer::between(1, i64::MAX)), Flag::Value("rate-limit", "N");
        /// Threads that answer polls; one for each processor the service may use, four at most, if not set
        threads: Option<usize> = None, OrNone(Integer::between(1, 1_024)), Flag::None;
    }

    /// Limits of the guest listener
    "guest.limits" guest_limits: GuestLimits {
        /// Open connections of all listeners together, fewer where the limit of open files is lower; for one more,
        /// those of callers that are no VM go first, then those that have been idle longest
        connections_max: usize = Limits::default().connections_max, CONNECTIONS, Flag::None;
        /// Open connections of one source address; 127.0.0.1, ::1 and trusted proxies are exempt
        connections_per_source_max: Option<usize> =
            Limits::default().connections_per_source_max, OrNone(CONNECTIONS), Flag::None;
        /// How long a request's head may take from its first byte to its last
        head_timeout: Duration = Limits::default().head_timeout, TIMEOUT, Flag::None;
        /// How long a request's body may take
        body_timeout: Duration = Limits::default().body_timeout, TIMEOUT, Flag::None;
        /// How long a connection may stay open between requests
        idle_timeout: Duration = Limits::default().idle_timeout, TIMEOUT, Flag::None;
        /// How long a write may make no progress
        write_timeout: Duration = Limits::default().write_timeout, TIMEOUT, Flag::None;
        /// How long requests being served have to finish when the service stops
        shutdown_grace: Duration = Limits::default().shutdown_grace, TIMEOUT, Flag::None;
    }

    /// Proxies that speak for guests
    "proxy" proxy: Proxy {
        /// Where proxies call from that may say which VM they call for (`X-Instance-ID` and its signature)
        addresses: Vec<ProxyAddress> = Vec::new(), List(PROXY), Flag::Value("proxy", "[NETWORK=]ADDR[/BITS]");
        /// The file with the secret that they sign with; two lines while it is being changed. SIGHUP reads it again
        secret_file: Option<PathBuf> = None, FILE, Flag::Value("proxy-secret-file", "FILE");
    }

    /// Operators
    "operator" operator: Operator {
        /// Where operators call
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9255)), ADDRESS, Flag::Value("operator", "ADDR");
        /// The operator listener's certificate chain in PEM, its own first; read again on SIGHUP
        cert: Option<PathBuf> = None, FILE, Flag::Value("operator-cert", "FILE");
        /// The private key of the operator listener's certificate, in PEM
        key: Option<PathBuf> = None, FILE, Flag::Value("operator-key", "FILE");
        /// Let the operator listener listen beyond loopback although nothing is encrypted
        without_tls: bool = false, Switch, Flag::Switch("operator-without-tls");
        /// Changes that a token without operator rights everywhere may make at once; 429 beyond
        changes_at_once: usize = ChangeRateLimit::BURST, Integer::between(1, 1_000_000), Flag::None;
        /// Changes a second that such a token gets back
        changes_per_second: usize = ChangeRateLimit::PER_SECOND, Integer::between(1, 100_000), Flag::None;
        /// Reverse proxies before the operator listener: they call for many, so the limit of one source is not for them
        proxies: Vec<AddressPrefix> = Vec::new(), List(PREFIX), Flag::None;
        /// Names that the operator listener answers to on loopback, besides `localhost`, this machine's and its certificate's
        hosts: Vec<HostName> = Vec::new(), List(HOST), Flag::None;
    }

    /// Limits of the operator listener
    "operator.limits" operator_limits: OperatorLimits {
        /// Open connections of one token; 429 for one more. There are 512 in all, 16 of them for loopback
        connections_per_token_max: usize = OperatorServerLimits::default().connections_per_token_max, CONNECTIONS, Flag::None;
        /// Open streams of one token (`GET /v1/stream`); 429 for one more
        streams_per_token_max: usize = OperatorServerLimits::default().streams_per_token_max, CONNECTIONS, Flag::None;
        /// Open streams of all tokens together; for one more, the oldest of the token that has most ends
        streams_max: usize = OperatorServerLimits::default().streams_max, CONNECTIONS, Flag::None;
    }

    /// Events
    "events" events: Events {
        /// Multiply every notice by this, to try things out (0.01: fifteen minutes become nine seconds)
        notice: f64 = 1.0, Factor, Flag::Value("notice", "FACTOR");
        /// User operations that may be live in one scope
        user_operations_max: usize = 100, Integer::between(0, 1_000_000), Flag::Value("user-operations-max", "N");
        /// User operations that may be stored for one scope, those that have ended included; operators of everywhere pass
        stored_user_operations_max: usize = 10_000, Integer::between(1, 100_000_000), Flag::None;
        /// Give user operations their notice also where no guest has asked for a day
        always_give_notice: bool = false, Switch, Flag::Switch("always-give-notice");
        /// For how long ended events and facts are kept
        keep_history: Duration = Duration::from_secs(90 * 86_400), LONG_SPAN, Flag::Value("keep-history", "SPAN");
    }

    /// Who carries events out
    "driver" driver: DriverSettings {
        /// Who carries events out: `simulated` (nobody: an event stays Started for its duration and then ends),
        /// `manual` (somebody's automation, with `event start` and `event complete`) or `exec` (a command for each VM)
        kind: DriverKind = DriverKind::Simulated, DRIVER, Flag::Value("driver", "KIND");
        /// How long the simulated driver keeps an event Started when its duration is unknown
        simulated_duration: Duration = Duration::from_secs(60), LONG_SPAN, Flag::Value("simulated-duration", "SPAN");
    }

    /// The exec driver
    "driver.exec" exec: Exec {
        /// What it runs for each VM: an executable file, which finds the facts in its environment
        command: Option<PathBuf> = None, FILE, Flag::Value("exec", "FILE");
        /// How long the command may take; then it is ended and has failed
        timeout: Duration = ExecConfig::TIMEOUT, Span { min: 1, max: 7 * 86_400 }, Flag::Value("exec-timeout", "SPAN");
        /// How often the command is tried before the event waits for `event retry`
        attempts: usize = 5, Integer::between(1, 1_000_000), Flag::Value("exec-attempts", "N");
        /// How long a command waits after its first failure; twice as long after each further one, five minutes at most
        backoff: Duration =
            ExecSettings::default().backoff_first, Span { min: 0, max: 300 }, Flag::Value("exec-backoff", "SPAN");
        /// How many commands run at once; others wait their turn
        concurrency: usize = ExecConfig::CONCURRENCY, Integer::between(1, 1_000), Flag::Value("exec-concurrency", "N");
        /// Variables of the service's environment that the command gets too
        environment: Vec<String> = Vec::new(), List(VARIABLE), Flag::Value("exec-env", "NAME");
    }
}
