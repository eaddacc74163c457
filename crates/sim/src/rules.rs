//! The model's tables: the properties of each cause and the arithmetic of notice. They are written from the design, not
//! from the code, so that a mistake in either shows.

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Cause, Policy};

use crate::history::Setup;

/// The notice of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// At least this many seconds.
    Seconds(i64),
    /// The scope's policy for deletions.
    Policy,
    Nothing,
    /// It never starts.
    Never,
}

/// The properties of a cause.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub cause: Cause,
    /// Whether the source is User; otherwise Platform.
    pub users: bool,
    pub notice: Notice,
    /// Whether it waits for other update domains.
    pub waits: bool,
    /// Whether an early start needs every part approved.
    pub together: bool,
    /// Whether each VM has its own event.
    pub per_vm: bool,
    /// In seconds; −1 if unknown.
    pub duration_s: i32,
}

const fn rule(cause: Cause, users: bool, notice: Notice, waits: bool, duration_s: i32) -> Rule {
    Rule { cause, users, notice, waits, together: false, per_vm: false, duration_s }
}

const fn together(rule: Rule) -> Rule {
    Rule { together: true, ..rule }
}

const fn per_vm(rule: Rule) -> Rule {
    Rule { per_vm: true, ..rule }
}

/// In the order of [`notbefore_core::cause::CAUSES`].
pub const RULES: [Rule; 11] = [
    together(rule(Cause::HostFreeze, false, Notice::Seconds(900), true, 9)),
    together(rule(Cause::HostReboot, false, Notice::Seconds(900), true, -1)),
    per_vm(rule(Cause::HostRedeploy, false, Notice::Seconds(600), true, -1)),
    rule(Cause::LiveMigration, false, Notice::Seconds(900), true, 5),
    per_vm(rule(Cause::PredictedFailure, false, Notice::Seconds(600), true, -1)),
    rule(Cause::HostFailure, false, Notice::Nothing, false, -1),
    per_vm(rule(Cause::Eviction, false, Notice::Seconds(30), false, -1)),
    together(per_vm(rule(Cause::Deletion, true, Notice::Policy, false, -1))),
    per_vm(rule(Cause::UserRestart, true, Notice::Seconds(900), false, -1)),
    per_vm(rule(Cause::UserRedeploy, true, Notice::Seconds(600), false, -1)),
    per_vm(rule(Cause::Rebalance, false, Notice::Never, false, -1)),
];

/// Default notice of a predicted failure.
const PREDICTED_AHEAD_S: i64 = 7 * 24 * 3600;
/// How long an event of unknown duration stays Started.
const UNKNOWN_DURATION_S: i64 = 60;
/// Extra notice of an operation with several parts, so that the last one opened gives the whole notice.
const SEVERAL_PARTS_S: i64 = 5;
/// How long an ended event is remembered.
pub const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long a poll keeps a scope enabled: a day and a minute.
pub const ENABLED_FOR: SignedDuration = SignedDuration::from_secs(86_460);
/// Extra time if the poll time comes from the store.
pub const STORED_EXTRA: SignedDuration = SignedDuration::from_hours(1);
/// Limit on remembered ended events.
pub const REMEMBERED_MAX: usize = 64;

pub fn of(cause: Cause) -> Rule {
    RULES.into_iter().find(|rule| rule.cause == cause).unwrap_or(RULES[0])
}

/// The first whole second at or after `at`.
pub fn whole_second(at: Timestamp) -> Timestamp {
    let nanos = at.as_nanosecond();
    let seconds = nanos.div_euclid(1_000_000_000) + i128::from(nanos.rem_euclid(1_000_000_000) != 0);
    i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok()).unwrap_or(Timestamp::MAX)
}

pub fn plus(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn scaled(seconds: i64, setup: &Setup) -> SignedDuration {
    let nanos = i128::from(seconds) * 1_000_000_000 * i128::from(setup.scale_permille) / 1_000;
    SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// The least notice of a cause under a policy; none without notice.
pub fn least_notice(cause: Cause, policy: &Policy, setup: &Setup) -> Option<SignedDuration> {
    let seconds = match of(cause).notice {
        Notice::Seconds(seconds) => seconds,
        Notice::Policy => i64::from(policy.terminate_notice_s?),
        Notice::Nothing | Notice::Never => return None,
    };
    Some(scaled(seconds, setup))
}

/// The default notice.
pub fn usual_notice(cause: Cause, policy: &Policy, setup: &Setup) -> Option<SignedDuration> {
    let least = least_notice(cause, policy, setup)?;
    match cause == Cause::PredictedFailure {
        true => Some(scaled(PREDICTED_AHEAD_S, setup)),
        false => Some(least),
    }
}

/// The start of the notice: later than now if several parts have to be opened.
pub fn counted_from(now: Timestamp, parts: usize, setup: &Setup) -> Timestamp {
    match parts {
        0 | 1 => now,
        _ => plus(now, scaled(SEVERAL_PARTS_S, setup)),
    }
}

/// When a simulated event that starts now ends.
pub fn ends_at(now: Timestamp, duration_s: i32) -> Timestamp {
    let seconds = if duration_s < 0 { UNKNOWN_DURATION_S } else { i64::from(duration_s) };
    plus(now, SignedDuration::from_secs(seconds))
}

/// When a command is retried after this many consecutive failures.
pub fn retry_at(now: Timestamp, failures: u32) -> Timestamp {
    const WAITS_S: [i64; 7] = [5, 10, 20, 40, 80, 160, 300];
    let nth = usize::try_from(failures).unwrap_or(usize::MAX).saturating_sub(1).min(WAITS_S.len() - 1);
    whole_second(plus(now, SignedDuration::from_secs(WAITS_S[nth])))
}

/// Whether the policy approves such events automatically.
pub fn needs_no_approval(cause: Cause, policy: &Policy) -> bool {
    (cause == Cause::UserRestart && policy.automatically_approve_reboot)
        || (cause == Cause::UserRedeploy && policy.automatically_approve_redeploy)
}
