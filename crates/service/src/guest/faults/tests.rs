use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_474_309_787 + second).unwrap()
}

const A: Uuid = Uuid::from_u128(0xa);
const B: Uuid = Uuid::from_u128(0xb);

fn table(faults: &[NewFault]) -> FaultTable {
    let mut table = FaultTable::default();
    faults.iter().for_each(|fault| add(&mut table, fault.clone(), None));
    table
}

fn add(table: &mut FaultTable, fault: NewFault, vm: Option<Uuid>) {
    let (fault, effect) = fault.check().unwrap();
    table.add(fault, effect, vm, at(0)).unwrap();
}

fn fault(kind: FaultKind) -> NewFault {
    let status = (kind == FaultKind::Status).then_some(500);
    let seconds = (kind == FaultKind::ClockSkew).then_some(-90);
    NewFault { status, seconds, ..NewFault::new(kind) }
}

/// A poll of a document with events; returns the shown incarnation with the decision.
fn poll(table: &mut FaultTable, vm: Uuid, incarnation: u64) -> (u64, After) {
    let answer = Answer::Document { incarnation, has_events: true, is_known: &|_| false };
    let after = table.after(vm, RequestClass::Poll, answer, at(1));
    (after.incarnation.unwrap_or(incarnation), after)
}

#[test]
fn each_kind_has_its_effect_on_polls_only() {
    for kind in FaultKind::ALL {
        let mut table = table(&[fault(kind.clone())]);
        let approval = table.before(A, RequestClass::Approval, false, at(1));
        let approved = table.after(A, RequestClass::Approval, Answer::Plain, at(1));
        assert_eq!((approval, approved), (Before::default(), After::default()), "{kind}");
        let before = table.before(A, RequestClass::Poll, false, at(1));
        let (shown, after) = poll(&mut table, A, 7);
        let kinds: Vec<_> = before.kinds.iter().chain(&after.kinds).collect();
        assert_eq!(kinds, [kind]);
        assert_eq!(table.list(at(1))[0].effects, 1, "{kind}");
        let late = Some(Duration::from_secs(120));
        assert_eq!(before.delay.longest(), late.filter(|_| *kind == FaultKind::LateFirstAnswer));
        let endings = [(FaultKind::Reset, Ending::Reset), (FaultKind::Status, Ending::Status(500))];
        let ending = endings.into_iter().find(|(ends, _)| ends == kind).map(|(_, ending)| ending);
        assert_eq!((before.ending, before.is_strict), (ending, *kind == FaultKind::StrictHeader));
        let others = [(FaultKind::ResetIncarnation, 1), (FaultKind::HideEvents, 8)];
        let expected = others.into_iter().find(|(shows, _)| shows == kind).map_or(7, |(_, shown)| shown);
        assert_eq!((shown, after.hides_events), (expected, *kind == FaultKind::HideEvents));
        assert_eq!(after.skew.as_secs(), if *kind == FaultKind::ClockSkew { -90 } else { 0 });
        assert_eq!(after.misses_events, *kind == FaultKind::MissingEvents);
        assert_eq!(after.has_raw_newlines, *kind == FaultKind::RawNewlines);
        assert_eq!(after.is_text, *kind == FaultKind::TextPlain);
        assert_eq!(after.is_empty, *kind == FaultKind::EmptyBody);
        assert_eq!(after.slow.longest().is_some(), *kind == FaultKind::SlowBody);
    }
}

#[test]
fn every_count_vm_and_time_limit_a_fault() {
    let selected = |table: &mut FaultTable, vm, second| {
        table.before(vm, RequestClass::Poll, true, at(second)).ending.is_some()
    };
    let mut third = table(&[NewFault { every: Some(3), ..fault(FaultKind::Reset) }]);
    let turns: Vec<bool> = (0..6).map(|_| selected(&mut third, A, 1)).collect();
    assert_eq!(turns, [false, false, true, false, false, true]);
    assert!(!selected(&mut third, B, 1), "each VM has its own turns");

    let mut twice = table(&[NewFault { count: Some(2), ..fault(FaultKind::Reset) }]);
    assert_eq!((0..4).map(|_| selected(&mut twice, A, 1)).collect::<Vec<_>>(), [true, true, false, false]);
    assert!(twice.list(at(1)).is_empty() && !twice.is_needed());

    let mut short = table(&[NewFault { active_seconds: Some(10), ..fault(FaultKind::Reset) }]);
    assert_eq!([9, 10, 11].map(|second| selected(&mut short, A, second)), [true, false, false]);

    let mut one = FaultTable::default();
    add(&mut one, fault(FaultKind::Reset), Some(B));
    assert_eq!([A, B].map(|vm| selected(&mut one, vm, 1)), [false, true]);
    assert_eq!((one.clear(Some(9), at(1)), one.clear(Some(1), at(1)), one.is_needed()), (0, 1, false));
}

#[test]
fn late_answer_and_reset_of_incarnation_happen_once_for_each_vm() {
    let mut table = table(&[fault(FaultKind::LateFirstAnswer), fault(FaultKind::ResetIncarnation)]);
    let delays =
        [A, A, B, A].map(|vm| table.before(vm, RequestClass::Poll, true, at(1)).delay.longest().is_some());
    assert_eq!(delays, [true, false, true, false]);
    let shown = [(A, 7), (A, 7), (A, 8), (B, 8), (A, 9)].map(|(vm, actual)| poll(&mut table, vm, actual).0);
    assert_eq!(shown, [1, 1, 2, 1, 3]);
}

#[test]
fn shown_incarnation_rises_with_each_change_and_never_goes_back() {
    let mut faults = table(&[NewFault { by: Some(5), ..fault(FaultKind::SkipIncarnations) }]);
    let shown = [7, 7, 8, 10].map(|actual| poll(&mut faults, A, actual).0);
    assert_eq!(shown, [7, 7, 12, 22]);
    faults.clear(None, at(1));
    assert!(faults.is_needed(), "the count goes on");
    assert_eq!([10, 11].map(|actual| poll(&mut faults, A, actual).0), [22, 23]);
    assert_eq!(poll(&mut faults, B, 11).0, 11, "another VM was never affected");
    assert_eq!(poll(&mut faults, A, 3).0, 3, "another scope");

    let mut hiding = table(&[NewFault { count: Some(2), ..fault(FaultKind::HideEvents) }]);
    let polls = [7, 7, 7, 7, 8].map(|actual| poll(&mut hiding, A, actual));
    assert_eq!(polls.clone().map(|(shown, _)| shown), [8, 8, 9, 9, 10]);
    assert_eq!(polls.map(|(_, after)| after.hides_events), [true, true, false, false, false]);
}

#[test]
fn body_faults_do_not_count_without_a_body() {
    let kinds = [FaultKind::EmptyBody, FaultKind::TextPlain, FaultKind::SlowBody, FaultKind::RawNewlines];
    let mut faults = table(&kinds.map(fault));
    let answer = Answer::Document { incarnation: 7, has_events: true, is_known: &|shown| shown == 7 };
    assert_eq!(faults.after(A, RequestClass::Poll, answer, at(1)), After::default());
    // Only an incarnation that is shown decides about a 304.
    add(&mut faults, fault(FaultKind::HideEvents), None);
    let after = faults.after(A, RequestClass::Poll, answer, at(1));
    assert_eq!(after.kinds, [FaultKind::HideEvents, FaultKind::TextPlain, FaultKind::EmptyBody]);
    let no_events = Answer::Document { incarnation: 7, has_events: false, is_known: &|_| false };
    let mut newlines = table(&[fault(FaultKind::RawNewlines), fault(FaultKind::HideEvents)]);
    assert_eq!(newlines.after(A, RequestClass::Poll, no_events, at(1)), After::default());
}

#[test]
fn faults_combine_in_one_order_however_they_were_added() {
    let kinds: Vec<NewFault> = FaultKind::ALL.iter().rev().cloned().map(fault).collect();
    let mut faults = table(&kinds);
    let before = faults.before(A, RequestClass::Poll, false, at(1));
    assert_eq!(before.kinds, [FaultKind::LateFirstAnswer, FaultKind::Reset]);
    let (shown, after) = poll(&mut faults, A, 7);
    // Hidden events have no strings to break, an empty body is not slow.
    let expected = [
        FaultKind::NotEnabled,
        FaultKind::ResetIncarnation,
        FaultKind::SkipIncarnations,
        FaultKind::HideEvents,
        FaultKind::ClockSkew,
        FaultKind::MissingEvents,
        FaultKind::TextPlain,
        FaultKind::EmptyBody,
    ];
    assert_eq!((shown, after.kinds), (1, expected.to_vec()));
    assert_eq!(
        faults.list(at(1)).iter().map(|fault| fault.id).collect::<Vec<_>>(),
        (1..=14).collect::<Vec<_>>()
    );
}

#[test]
fn number_of_faults_is_limited() {
    let mut faults = table(&vec![fault(FaultKind::Reset); FAULTS_MAX]);
    let (new, effect) = fault(FaultKind::Reset).check().unwrap();
    assert_eq!(faults.add(new, effect, None, at(1)), None);
}

#[test]
fn clear_releases_requests_that_wait() {
    let late =
        |seconds| NewFault { seconds: Some(seconds), count: Some(1), ..fault(FaultKind::LateFirstAnswer) };
    let slow = fault(FaultKind::SlowBody);
    let seconds = |waits: &Waits| waits.longest().map(|time| time.as_secs());
    let mut table = table(&[late(120), late(60), slow]);
    let before = table.before(A, RequestClass::Poll, true, at(1));
    let (_, after) = poll(&mut table, A, 7);
    assert_eq!((seconds(&before.delay), seconds(&after.slow)), (Some(120), Some(30)));
    // The count of the first two is reached: they are not listed, and the request still waits because of them.
    assert_eq!(table.list(at(2)).len(), 1);
    assert_eq!(table.clear(Some(1), at(2)), 1);
    assert_eq!((seconds(&before.delay), seconds(&after.slow)), (Some(60), Some(30)));
    assert_eq!(table.clear(Some(1), at(2)), 0, "it is cleared already");
    assert_eq!(table.clear(None, at(2)), 2);
    assert_eq!((seconds(&before.delay), seconds(&after.slow)), (None, None));
}

#[test]
fn fault_that_ended_is_forgotten_with_its_last_request() {
    let mut table = table(&[NewFault { count: Some(1), ..fault(FaultKind::LateFirstAnswer) }]);
    let before = table.before(A, RequestClass::Poll, true, at(1));
    assert!(before.delay.longest().is_some());
    drop(before);
    assert_eq!(table.clear(None, at(2)), 0);
}
