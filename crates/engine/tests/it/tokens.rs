//! Tokens in the engine: of two concurrent creations with the same name one succeeds, and one permanent operator token
//! is always left.

use notbefore_core::samples::{at, now, token};
use notbefore_core::{Settings, Token};
use notbefore_engine::{Answer, Effect, Engine, Failure, Input, JobId, TokenCommand};
use notbefore_store::{Batch, Change, Found, Outcome, Revision, Txn};

use crate::support::{request, started};

/// An engine whose commits wait until the test carries them out.
struct Bench {
    engine: Engine,
    revision: Revision,
    commits: Vec<(JobId, Txn)>,
    answers: Vec<Result<Answer, Failure>>,
}

impl Bench {
    fn new() -> Self {
        let (engine, _) = started(Settings::default(), Vec::new(), now());
        Self { engine, revision: Revision(0), commits: Vec::new(), answers: Vec::new() }
    }

    fn feed(&mut self, input: Input) {
        for effect in self.engine.handle(input, now()) {
            match effect {
                Effect::Commit(id, txn) => self.commits.push((id, txn)),
                Effect::Answer(_, answer) => self.answers.push(answer),
                Effect::Publish(_) | Effect::Run(_) | Effect::Stop(_) | Effect::Resync => {}
            }
        }
    }

    fn submit(&mut self, command: TokenCommand) {
        self.feed(request(command));
    }

    fn create(&mut self, name: &str) {
        self.submit(TokenCommand::Create(token(name)));
    }

    fn revoke(&mut self, name: &str) {
        self.submit(TokenCommand::Revoke(name.parse().unwrap()));
    }

    fn settle(&mut self) -> Vec<String> {
        while !self.commits.is_empty() {
            let (id, _) = self.commits.remove(0);
            self.revision.0 += 1;
            self.feed(Input::Committed(id, Outcome::Committed(self.revision)));
        }
        let text = |answer: Result<Answer, Failure>| {
            answer.map_or_else(|failure| failure.code().to_owned(), |_| "ok".to_owned())
        };
        let mut text: Vec<String> = self.answers.drain(..).map(text).collect();
        text.sort();
        text
    }
}

#[test]
fn concurrent_creation_of_same_token_name_succeeds_once() {
    let mut bench = Bench::new();
    bench.create("bob");
    bench.create("BOB");
    assert_eq!(bench.settle(), ["ok", "token_taken"]);
    bench.revoke("nobody");
    assert_eq!(bench.settle(), ["unknown_token"]);
}

#[test]
fn concurrent_mutual_revocation_succeeds_once() {
    let mut bench = Bench::new();
    bench.create("one");
    bench.create("two");
    bench.submit(TokenCommand::Create(Token { expires_at: Some(at(3_600)), ..token("brief") }));
    assert_eq!(bench.settle(), ["ok"; 3]);
    bench.revoke("one");
    bench.revoke("two");
    assert_eq!(bench.settle(), ["last_operator", "ok"]);
    bench.revoke("brief");
    assert_eq!(bench.settle(), ["ok"], "a token that expires does not count as the last one");
    assert_eq!(bench.engine.state().tokens().count(), 1);
}

#[test]
fn token_commit_conflicts_with_other_node() {
    let mut bench = Bench::new();
    bench.create("one");
    bench.create("two");
    assert_eq!(bench.settle(), ["ok"; 2]);
    bench.revoke("one");
    let (id, txn) = bench.commits.pop().unwrap();
    let two = notbefore_engine::records::token(&"two".parse().unwrap());
    assert!(txn.expect.iter().any(|expect| expect.key == two), "{txn:?}");
    // Meanwhile another node revokes the other one.
    bench.feed(Input::Committed(
        id,
        Outcome::Conflict(vec![Found { key: two.clone(), revision: None, value: None }]),
    ));
    let changes = [Change { key: two, value: None }].into();
    bench.revision.0 += 1;
    bench.feed(Input::Watched(Batch { revision: bench.revision, changes }));
    assert_eq!(bench.settle(), ["last_operator"]);
}

#[test]
fn token_count_is_limited() {
    let mut bench = Bench::new();
    for n in 0..notbefore_core::access::TOKENS_MAX {
        bench.create(&format!("t{n}"));
    }
    assert!(bench.settle().iter().all(|answer| answer == "ok"));
    bench.create("one-too-many");
    assert_eq!(bench.settle(), ["too_many_tokens"]);
}
