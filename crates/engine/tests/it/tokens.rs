//! Tokens through the engine: of two who make one of a name only one does, and one that may do everything is always
//! left, however many are revoked at the same moment.

use jiff::Timestamp;
use notbefore_core::{Actor, Grant, Prefix, Role, Settings, Token};
use notbefore_engine::{
    Answer, Command, CommitId, Effect, Engine, EngineSettings, Failure, Input, Request, RequestId,
    TokenCommand,
};
use notbefore_store::{Batch, Change, Found, Outcome, Revision, Txn};

fn now() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

fn token(name: &str, expires_at: Option<Timestamp>) -> Token {
    Token {
        name: name.parse().unwrap(),
        hash: format!("hash of {name}"),
        grants: vec![Grant { role: Role::Operator, path: Prefix::everywhere() }],
        created_at: now(),
        created_by: None,
        expires_at,
    }
}

/// An engine whose commits wait until the test carries them out.
struct Bench {
    engine: Engine,
    revision: Revision,
    commits: Vec<(CommitId, Txn)>,
    answers: Vec<Result<Answer, Failure>>,
}

impl Bench {
    fn new() -> Self {
        let settings = EngineSettings { domain: Settings::default(), node: "n".to_owned() };
        let (engine, _) = Engine::new(settings, Vec::new(), Revision(0), now()).unwrap();
        Self { engine, revision: Revision(0), commits: Vec::new(), answers: Vec::new() }
    }

    fn feed(&mut self, input: Input) {
        for effect in self.engine.handle(input, now()) {
            match effect {
                Effect::Commit(id, txn) => self.commits.push((id, txn)),
                Effect::Answer(_, answer) => self.answers.push(answer),
                Effect::Publish(_) | Effect::Run(_) | Effect::Stop(_) => {}
            }
        }
    }

    fn ask(&mut self, command: TokenCommand) {
        let (by, command) = (Actor::Token("root".to_owned()), Command::Token(command));
        let request = Request { by, from: None, idempotency: None, if_revision: None, command };
        self.feed(Input::Request(RequestId(0), Box::new(request)));
    }

    fn create(&mut self, name: &str) {
        self.ask(TokenCommand::Create(token(name, None)));
    }

    fn revoke(&mut self, name: &str) {
        self.ask(TokenCommand::Revoke(name.parse().unwrap()));
    }

    fn settle(&mut self) -> Vec<String> {
        while !self.commits.is_empty() {
            let (id, _) = self.commits.remove(0);
            self.revision.0 += 1;
            self.feed(Input::Committed(id, Outcome::Committed(self.revision)));
        }
        let told = |answer: Result<Answer, Failure>| {
            answer.map_or_else(|failure| failure.code().to_owned(), |_| "ok".to_owned())
        };
        let mut told: Vec<String> = self.answers.drain(..).map(told).collect();
        told.sort();
        told
    }
}

#[test]
fn of_two_who_make_a_token_of_one_name_one_does() {
    let mut bench = Bench::new();
    bench.create("bob");
    bench.create("BOB");
    assert_eq!(bench.settle(), ["ok", "token_taken"]);
    bench.revoke("nobody");
    assert_eq!(bench.settle(), ["unknown_token"]);
}

#[test]
fn two_who_revoke_each_other_at_the_same_moment_do_not_both() {
    let mut bench = Bench::new();
    bench.create("one");
    bench.create("two");
    bench.ask(TokenCommand::Create(token("brief", Some(now() + jiff::SignedDuration::from_hours(1)))));
    assert_eq!(bench.settle(), ["ok"; 3]);
    bench.revoke("one");
    bench.revoke("two");
    assert_eq!(bench.settle(), ["last_operator", "ok"]);
    bench.revoke("brief");
    assert_eq!(bench.settle(), ["ok"], "one that ends anyway is not what is counted on");
    assert_eq!(bench.engine.state().tokens().count(), 1);
}

#[test]
fn what_another_node_has_done_is_compared() {
    let mut bench = Bench::new();
    bench.create("one");
    bench.create("two");
    assert_eq!(bench.settle(), ["ok"; 2]);
    bench.revoke("one");
    let (id, txn) = bench.commits.pop().unwrap();
    let two = notbefore_engine::records::token(&"two".parse().unwrap());
    assert!(txn.expect.iter().any(|expect| expect.key == two), "{txn:?}");
    // Meanwhile another node has revoked the other.
    bench.feed(Input::Committed(id, Outcome::Conflict(vec![Found { key: two.clone(), current: None }])));
    let changes = [Change { key: two, value: None }].into();
    bench.revision.0 += 1;
    bench.feed(Input::Watched(Batch { revision: bench.revision, changes }));
    assert_eq!(bench.settle(), ["last_operator"]);
}

#[test]
fn there_is_a_limit() {
    let mut bench = Bench::new();
    for n in 0..notbefore_core::access::TOKENS_MAX {
        bench.create(&format!("t{n}"));
    }
    assert!(bench.settle().iter().all(|answer| answer == "ok"));
    bench.create("one-too-many");
    assert_eq!(bench.settle(), ["too_many_tokens"]);
}
