//! Driver tests: inputs in, effects out, with local sockets where the agent connects to a server.

use notbefore_client::document::{Document, EventsVersion};
use notbefore_client::failure::FailureKind;
use tokio::io::AsyncReadExt;

use super::*;
use crate::hooks::variables::tests::run_of;
use crate::rules::StepAction;

#[tokio::test]
async fn refused_approval_notifies_once_per_event() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let text = format!("name = 'web-0'\n[notify]\nurl = '{url}'\non = ['failed']\n[[rule]]\nname = 'all'\n");
    let config = config::read("a.toml".as_ref(), &text, &Sources::default()).unwrap();
    let clock = Clock::start();
    let (mut agent, _ends, _answers) =
        Agent::new(config, Sources::default(), clock, StatusBoard::new(clock, false));
    let event = run_of(StepAction::Wait { time: Duration::ZERO }, Duration::ZERO).event;
    let id = event.id.clone();
    let document = Document { incarnation: "1".to_owned(), events: vec![event] };
    agent.handle_input(Input::Document { document, served_at: None, version: EventsVersion::NEWEST }).await;
    for reason in ["first", "second"] {
        let answer = ApprovalAnswer::Refused { reason: reason.to_owned() };
        agent.answered(id.clone(), answer).await;
    }
    agent.notify_problem("third".to_owned(), None);
    let mut heard = Vec::new();
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut seen, mut chunk) = (String::new(), [0; 4_096]);
        while !seen.ends_with('}') {
            let length = stream.read(&mut chunk).await.unwrap();
            seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
        }
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        let (_, body) = seen.split_once("\r\n\r\n").unwrap();
        let word: serde_json::Value = serde_json::from_str(body).unwrap();
        heard.push((word["text"].as_str().unwrap().to_owned(), word["event"]["EventId"].clone()));
    }
    assert_eq!(
        heard,
        [
            (
                "the platform refuses the approval: first; the agent sends it again".to_owned(),
                id.as_str().into()
            ),
            ("third".to_owned(), serde_json::Value::Null)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn silent_endpoint_is_rediscovered_unless_configured() {
    let troubled = |kind: FailureKind, clock: &Clock| {
        let text = "no answer".to_owned();
        Update::Outage(Outage { kind, text, since: clock.now(), tries: 2 })
    };
    let trouble = |clock: &Clock| troubled(FailureKind::Unreachable, clock);
    for (endpoint, looks) in [("", true), ("endpoint = 'http://127.0.0.1:1'\n", false)] {
        let text = format!("{endpoint}name = 'web-0'\n[[rule]]\nname = 'all'\n");
        let config = config::read("a.toml".as_ref(), &text, &Sources::default()).unwrap();
        let clock = Clock::start();
        let (mut agent, _ends, _answers) =
            Agent::new(config, Sources::default(), clock, StatusBoard::new(clock, false));
        agent.update(trouble(&clock)).await;
        assert!(!agent.should_rediscover(), "one failure is not enough");
        tokio::time::advance(REDISCOVER_AFTER).await;
        agent.update(trouble(&clock)).await;
        assert_eq!(agent.should_rediscover(), looks);
        agent.update(Update::Unchanged { served_at: None }).await;
        assert!(!agent.should_rediscover(), "it answers again");
        for kind in [FailureKind::Status(503), FailureKind::Status(403), FailureKind::Unreadable] {
            agent.update(troubled(kind, &clock)).await;
            tokio::time::advance(REDISCOVER_AFTER).await;
            agent.update(troubled(kind, &clock)).await;
            assert!(!agent.should_rediscover(), "the endpoint answers: {kind:?}");
        }
    }
}

/// An agent with a confirmed name and this rule, and without a platform.
fn agent(rule: &str) -> (Agent, mpsc::Receiver<Ended>, Answers) {
    let text = format!("name = 'web-0'\n[[rule]]\nname = 'all'\n{rule}");
    let config = config::read("a.toml".as_ref(), &text, &Sources::default()).unwrap();
    let clock = Clock::start();
    Agent::new(config, Sources::default(), clock, StatusBoard::new(clock, false))
}

/// A document with an event at eight.
fn document() -> Document {
    let event = run_of(StepAction::Wait { time: Duration::ZERO }, Duration::ZERO).event;
    Document { incarnation: "1".to_owned(), events: vec![event] }
}

/// Reads a document of the newest version.
async fn read(agent: &mut Agent, document: Document) {
    agent.handle_input(Input::Document { document, served_at: None, version: EventsVersion::NEWEST }).await;
}

/// Ends the only running attempt.
async fn end(agent: &mut Agent, outcome: StepOutcome) {
    let run = *agent.begun.keys().next().expect("a step runs");
    agent.ended(Ended { run, outcome }).await;
}

fn failed() -> StepOutcome {
    StepOutcome::Failed { reason: "exit code 3".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn failed_step_after_an_event_strands_the_vm_until_it_is_retried() {
    for (drain, is_cancelled) in [("", false), ("drain = false\n", true)] {
        let steps =
            "[[rule.before]]\nname = 'stop'\nwait = '1h'\n[[rule.after]]\nname = 'start'\nwait = '1h'\n";
        let (mut agent, _ends, _answers) = agent(&format!("{drain}{steps}"));
        agent.board.answered("document");
        agent.board.named("web-0", true);
        let mut document = document();
        if is_cancelled {
            // The event is gone before its time.
            document.events[0].not_before = Some(agent.clock.now().wall + Duration::from_secs(900));
        }
        read(&mut agent, document).await;
        let gone = Document { incarnation: "2".to_owned(), events: Vec::new() };
        match is_cancelled {
            true => {
                read(&mut agent, gone).await;
                end(&mut agent, StepOutcome::Done).await;
            }
            false => {
                end(&mut agent, StepOutcome::Done).await;
                read(&mut agent, gone).await;
            }
        }
        let stranded = |agent: &Agent| {
            let page = agent.board.metrics();
            page.lines().find_map(|line| line.strip_prefix("notbefore_agent_stranded ")).map(str::to_owned)
        };
        assert_eq!((agent.board.ready(), stranded(&agent).as_deref()), (Ok("ready".to_owned()), Some("0")));
        end(&mut agent, failed()).await;
        let why = agent.board.in_service().unwrap_err();
        assert!(why.starts_with("stranded: Reboot A123 (stranded"), "{why}");
        assert_eq!(
            agent.board.ready().unwrap_err(),
            "this VM is not restored after the Reboot A123: rule all, step start after has failed; fix the cause and \
             run 'notbefore agent retry A123'"
        );
        assert_eq!(stranded(&agent).as_deref(), Some("1"));
        let events = agent.board.events();
        assert!(events.draining);
        let [event] = events.events.as_slice() else { panic!("{events:?}") };
        let (status, approval) = match is_cancelled {
            true => ("Cancelled", "none: the event was cancelled"),
            false => ("Ended", "sent"),
        };
        let shown = (event.status.as_str(), event.not_before, event.approval.as_str());
        assert_eq!(shown, (status, None, approval));
        // It goes on polling.
        agent.update(Update::Unchanged { served_at: None }).await;
        assert!(agent.board.in_service().is_err() && agent.begun.is_empty());

        agent.handle_input(Input::Retry).await;
        assert_eq!(agent.board.ready(), Ok("ready".to_owned()));
        end(&mut agent, StepOutcome::Done).await;
        assert_eq!(agent.board.in_service(), Ok("in service".to_owned()));
        assert_eq!(stranded(&agent).as_deref(), Some("0"));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_approval_is_resent_when_platform_answers() {
    let (mut agent, _ends, mut answers) = agent("");
    let document = Input::Document { document: document(), served_at: None, version: EventsVersion::NEWEST };
    agent.handle_input(document).await;
    let (event, answer) = answers.recv().await.unwrap();
    assert!(matches!(answer, ApprovalAnswer::Failed { .. }), "there is no platform");
    agent.answered(event, answer).await;
    let approval = |agent: &Agent| overview::of(&agent.state)[0].approval.clone();
    assert_eq!(approval(&agent), "failed 1 time, tried again");
    agent.update(Update::Unchanged { served_at: None }).await;
    assert_eq!(approval(&agent), "sent");
}

#[tokio::test(start_paused = true)]
async fn unchanged_poll_updates_deadline_after_pause() {
    let (mut agent, _ends, _answers) = agent("time_left = { at_most = '45s' }\n");
    let at = |text: &str| text.parse().ok();
    let served_at = at("2026-11-16T07:59:00Z");
    let version = EventsVersion::NEWEST;
    agent.update(Update::Document { document: document(), served_at, version }).await;
    let rule = |agent: &Agent| overview::of(&agent.state)[0].rule.clone();
    assert_eq!(rule(&agent), None, "there is a minute left");
    agent.update(Update::Unchanged { served_at: at("2026-11-16T07:59:30Z") }).await;
    assert_eq!(rule(&agent).as_deref(), Some("all"), "there is half a minute left");
}

#[test]
fn journal_delay_reduces_step_budget() {
    let seconds = Duration::from_secs;
    let run = |budget, until: Option<u64>| {
        let run = run_of(StepAction::Wait { time: Duration::ZERO }, seconds(budget));
        Run { until: until.map(seconds), ..run }
    };
    // Decided at tick 0, started at tick 3.
    assert_eq!(remaining_budget(&run(28, Some(28)), seconds(3)), seconds(25));
    assert_eq!(remaining_budget(&run(2, Some(2)), seconds(3)), Duration::ZERO);
    assert_eq!(remaining_budget(&run(60, Some(60)), seconds(3)), seconds(57));
    assert_eq!(remaining_budget(&run(2, Some(900)), seconds(3)), seconds(2), "it still runs");
    assert_eq!(remaining_budget(&run(2, None), seconds(3)), seconds(2), "nothing bounds it");
}

#[tokio::test(start_paused = true)]
async fn missing_program_is_looked_for_until_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("drain");
    let (mut agent, _ends, _answers) =
        agent(&format!("[[rule.before]]\nname = 'pool'\ncommand = ['{}']\n", program.display()));
    agent.board.answered("document");
    agent.board.named("web-0", true);
    agent.check_programs();
    assert_eq!(agent.missing_programs.len(), 1);
    let why = agent.board.ready().unwrap_err();
    assert!(why.contains("rule all, step pool before") && !why.contains("drain"), "{why}");
    // Any program of the system will do.
    std::fs::copy("/bin/true", &program).unwrap();
    assert_eq!(agent.due(), Some(agent.clock.now().tick + PROGRAMS_REST));
    tokio::time::advance(PROGRAMS_REST).await;
    agent.run_due().await;
    assert_eq!((agent.board.ready(), agent.due()), (Ok("ready".to_owned()), None));
}

/// The same agent, of a file that it can read again.
fn agent_of_file(rule: &str) -> (tempfile::NamedTempFile, Agent, mpsc::Receiver<Ended>, Answers) {
    let (mut agent, ends, answers) = agent(rule);
    let file = tempfile::NamedTempFile::new().unwrap();
    agent.sources.file = Some(file.path().to_owned());
    write(&file, rule);
    (file, agent, ends, answers)
}

/// Writes a file with this rule.
fn write(file: &tempfile::NamedTempFile, rule: &str) {
    std::fs::write(file.path(), format!("name = 'web-0'\n[[rule]]\nname = 'all'\n{rule}")).unwrap();
}

/// The first answer to a retry whose caller does not wait.
async fn retry(agent: &mut Agent, event: &str) -> Answer {
    let (reply, mut answers) = mpsc::channel(64);
    agent.obey(Request::Retry { event: event.to_owned(), wait: false }, &reply).await;
    drop(reply);
    let answer = answers.recv().await.unwrap();
    assert!(answers.recv().await.is_none(), "one answer");
    answer
}

#[tokio::test(start_paused = true)]
async fn retry_reads_the_file_and_tells_the_outcome() {
    let step = |time: &str| format!("[[rule.before]]\nname = 'stop'\nwait = '{time}'\n");
    let (file, mut agent, _ends, mut approvals) = agent_of_file(&step("1h"));
    read(&mut agent, document()).await;
    end(&mut agent, failed()).await;
    assert!(overview::of(&agent.state)[0].is_withheld());

    // A file with a mistake changes nothing.
    std::fs::write(file.path(), "rules = 1\n").unwrap();
    let answer = retry(&mut agent, "A123").await;
    assert!(matches!(&answer, Answer::Mistakes(text) if text.contains("unknown key rules")), "{answer:?}");
    assert!(overview::of(&agent.state)[0].is_withheld() && agent.begun.is_empty());

    // The step as the file has it now; it fails again.
    write(&file, &step("2h"));
    let wait = || Request::Retry { event: "A123".to_owned(), wait: true };
    let (reply, mut answers) = mpsc::channel(64);
    agent.obey(wait(), &reply).await;
    let Some(Answer::Retried(retried)) = answers.recv().await else { panic!("not retried") };
    assert_eq!(retried.facts[0].text, "step stop before the Reboot is retried");
    let two_hours = crate::rules::StepAction::Wait { time: Duration::from_secs(7_200) };
    assert_eq!(agent.events()[0].step().unwrap().1.does, two_hours);
    assert!(answers.try_recv().is_err(), "the step runs");
    end(&mut agent, failed()).await;
    let mut facts = Vec::new();
    let mut answer = answers.try_recv().unwrap();
    while let Answer::Fact(fact) = answer {
        facts.push(fact.text);
        answer = answers.try_recv().unwrap();
    }
    assert!(facts[0].starts_with("step stop before the Reboot failed: exit code 3"), "{facts:?}");
    let Answer::Outcome(Some(outcome)) = answer else { panic!("{answer:?}") };
    assert!(outcome.is_withheld() && agent.waiters.is_empty());

    // It succeeds, and the outcome is the approval's.
    agent.obey(wait(), &reply).await;
    end(&mut agent, StepOutcome::Done).await;
    let (event, _) = approvals.recv().await.unwrap();
    assert_eq!(agent.waiters.len(), 1, "the approval is under way");
    agent.answered(event, ApprovalAnswer::Accepted).await;
    let mut last = None;
    while let Ok(answer) = answers.try_recv() {
        last = Some(answer);
    }
    let Some(Answer::Outcome(Some(outcome))) = last else { panic!("{last:?}") };
    assert_eq!((outcome.phase.as_str(), outcome.approval.as_str()), ("ready", "given"));

    // A caller that has left is forgotten.
    agent.waiters.push(Waiter { event: EventId::new("A123"), answers: mpsc::channel(1).0 });
    agent.handle_input(Input::Tick).await;
    assert!(agent.waiters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn approval_is_logged_before_the_start_that_follows() {
    let started = || {
        let mut document = document();
        document.events[0].status = notbefore_client::document::EventStatus::Started;
        document
    };
    let texts = |agent: &mut Agent| -> Vec<String> {
        agent.told.replace(Vec::new()).unwrap().into_iter().map(|fact| fact.text).collect()
    };
    let is_approved = "the Reboot is approved";
    let has_started = "the Reboot has started";
    for answer_comes in [true, false] {
        let (mut agent, _ends, _answers) = agent("");
        read(&mut agent, document()).await;
        agent.told = Some(Vec::new());
        // The document comes by another connection than the answer to the approval, and may be faster.
        read(&mut agent, started()).await;
        assert_eq!(texts(&mut agent), [""; 0]);
        if answer_comes {
            agent.answered(EventId::new("A123"), ApprovalAnswer::Accepted).await;
            assert_eq!(texts(&mut agent), [is_approved, has_started]);
            assert_eq!(agent.due(), None);
        } else {
            assert_eq!(agent.due(), Some(agent.clock.now().tick + ANSWER_WAIT));
            tokio::time::advance(ANSWER_WAIT).await;
            agent.run_due().await;
            assert_eq!(texts(&mut agent), [has_started]);
            assert_eq!(agent.due(), None);
        }
        read(&mut agent, Document { incarnation: "2".to_owned(), events: Vec::new() }).await;
        assert_eq!(texts(&mut agent)[0], "the Reboot is over");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_command_names_the_event_by_its_first_digits() {
    let (_dir, mut agent, _ends, mut answers) = agent_of_file("");
    let mut document = document();
    let id = "A12345".to_owned();
    document.events[0].id = EventId::new(id.clone());
    let mut second = document.events[0].clone();
    second.id = EventId::new(format!("{id}0"));
    document.events.push(second);
    agent.handle_input(Input::Document { document, served_at: None, version: EventsVersion::NEWEST }).await;
    let refused = |answer: Answer| match answer {
        Answer::Refused(why) => why,
        Answer::Reloaded(_)
        | Answer::Mistakes(_)
        | Answer::Retried(_)
        | Answer::Fact(_)
        | Answer::Outcome(_)
        | Answer::Status(_) => {
            panic!("{answer:?}")
        }
    };
    let why = refused(retry(&mut agent, &id[..4]).await);
    assert!(why.starts_with("2 events begin with"), "{why}");
    // An unset variable of a script names no event.
    for short in ["", &id[..3]] {
        let why = refused(retry(&mut agent, short).await);
        assert!(why.contains("is too short for an event"), "{why}");
    }
    let why = refused(retry(&mut agent, "zzzz").await);
    assert!(why.starts_with("the agent handles no event zzzz"), "{why}");
    let why = refused(retry(&mut agent, &id).await);
    assert!(why.contains("has no failed step or approval: it is ready"), "{why}");
    let (event, answer) = answers.recv().await.unwrap();
    agent.answered(event, answer).await;
    let Answer::Retried(retried) = retry(&mut agent, &id.to_lowercase()).await else { panic!("refused") };
    assert_eq!((retried.event, retried.facts, retried.file.rules), (id, Vec::new(), 1));
    assert_eq!(overview::of(&agent.state)[0].approval, "sent");
}
