//! Recipe queue-worker: a worker finishes its job, or returns it to the queue.

use super::redis::Redis;
use super::vm::{Vm, lines, require_file};
use crate::support::wait_for;

/// A job that logs its start and end, and waits for a file of its name in between. A job whose name is not a word needs
/// no file; the job `fails` fails.
const DO_JOB: &str = r#"#!/bin/sh
echo "begin $1" >>"$PLAYED"
case $1 in
  fails) exit 1 ;;
  *[!a-z]* | '') ;;
  *) until [ -e "$PLAYED.$1" ]; do sleep 0.05; done ;;
esac
echo "end $1" >>"$PLAYED"
"#;

/// A VM whose worker has taken the first of two jobs.
fn worker(flags: &[&str]) -> (Vm, Redis) {
    worker_with(flags, &[])
}

/// The same, with replacements in its `agent.toml`.
fn worker_with(flags: &[&str], replaced: &[(&str, &str)]) -> (Vm, Redis) {
    require_file("/usr/bin/redis-cli", "redis-server");
    let mut vm = Vm::new("queue-worker", flags);
    let redis = Redis::start(&vm.path("redis"), "");
    vm.install_fake("do-job", DO_JOB);
    let (job, place) = (vm.text("bin/do-job"), vm.text("worker"));
    let address = redis.address();
    let here =
        [("127.0.0.1:6379", &*address), ("/var/lib/worker", &*place), ("/usr/local/bin/do-job", &*job)];
    vm.start(&[&here, replaced].concat());
    redis.command("RPUSH jobs one two").unwrap();
    work(&mut vm, &redis);
    wait_for("the first job", || (job_log(&vm) == ["begin one"]).then_some(()));
    (vm, redis)
}

fn work(vm: &mut Vm, redis: &Redis) {
    let (program, job) = (vm.text("lib/queue-worker"), vm.text("bin/do-job"));
    vm.run("worker", &[&program, "work", &redis.address(), "jobs", "worker-0", &job]);
}

fn job_log(vm: &Vm) -> Vec<String> {
    lines(&vm.path("played"))
}

/// Lets a job end.
fn let_end(vm: &Vm, job: &str) {
    std::fs::write(vm.path(&format!("played.{job}")), "").unwrap();
}

fn wait_for_jobs(vm: &Vm, expected: &[&str]) {
    wait_for(&format!("{expected:?}"), || (job_log(vm) == expected).then_some(()));
}

#[test]
fn worker_finishes_job_and_takes_no_other_until_event_ends() {
    let (mut vm, redis) = worker(&[]);
    let event = vm.announce("reboot");
    wait_for("the worker to be stopped", || vm.path("worker/stopped").exists().then_some(()));
    assert_eq!(vm.status(&event), "Scheduled", "it is still at work");
    let_end(&vm, "one");
    vm.wait_for_approval(&event);
    assert_eq!(
        (job_log(&vm), redis.list("jobs")),
        (vec!["begin one".to_owned(), "end one".to_owned()], vec!["two".to_owned()])
    );
    vm.reboot();
    vm.complete(&event);
    vm.wait_until_restored();
    let_end(&vm, "two");
    wait_for_jobs(&vm, &["begin one", "end one", "begin two", "end two"]);
    wait_for("nothing to be left", || {
        (redis.list("jobs").is_empty() && redis.list("jobs:worker-0").is_empty()).then_some(())
    });
}

/// The notice is 9 seconds here, 5 of them reserved for returning the job.
#[test]
fn unfinished_job_returns_to_queue() {
    let (vm, redis) = worker(&["--notice", "0.015"]);
    let event = vm.announce("redeploy");
    vm.wait_for_approval(&event);
    assert_eq!(redis.list("jobs"), ["one", "two"], "at the head, where it was");
    assert!(vm.script("process", &["ended", &vm.text("worker")]).status.success());
    vm.complete(&event);
    vm.wait_until_restored();
    let_end(&vm, "one");
    let_end(&vm, "two");
    wait_for_jobs(&vm, &["begin one", "begin one", "end one", "begin two", "end two"]);
}

#[test]
fn cancelled_event_resumes_worker() {
    let (vm, redis) = worker(&[]);
    let event = vm.announce("reboot");
    wait_for("the worker to be stopped", || vm.path("worker/stopped").exists().then_some(()));
    vm.cancel(&event);
    let_end(&vm, "one");
    let_end(&vm, "two");
    wait_for_jobs(&vm, &["begin one", "end one", "begin two", "end two"]);
    vm.wait_until_restored();
    wait_for("nothing to be left", || redis.list("jobs:worker-0").is_empty().then_some(()));
}

/// The job takes longer than one start attempt of the worker: 1 second here, an hour in the recipe.
#[test]
fn cancelled_event_resumes_worker_with_long_job() {
    let (vm, _redis) = worker_with(&[], &[("timeout = \"1h\"", "timeout = \"1s\"")]);
    let event = vm.announce("reboot");
    wait_for("the worker to be stopped", || vm.path("worker/stopped").exists().then_some(()));
    vm.cancel(&event);
    vm.wait_for_log("attempt 2");
    let_end(&vm, "one");
    let_end(&vm, "two");
    wait_for_jobs(&vm, &["begin one", "end one", "begin two", "end two"]);
    vm.wait_until_restored();
}

/// At shutdown, worker and job both receive SIGTERM.
#[test]
fn shutdown_loses_no_job() {
    let (mut vm, redis) = worker(&[]);
    let pid = lines(&vm.path("worker/pid"))[0].split(' ').next().unwrap().parse().unwrap();
    let group = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::TERM).unwrap();
    wait_for("the worker to end", || {
        vm.script("process", &["ended", &vm.text("worker")]).status.success().then_some(())
    });
    assert_eq!((redis.list("jobs:worker-0"), redis.list("jobs")), (vec!["one".into()], vec!["two".into()]));
    let_end(&vm, "one");
    let_end(&vm, "two");
    work(&mut vm, &redis);
    wait_for_jobs(&vm, &["begin one", "begin one", "end one", "begin two", "end two"]);
}

/// A job with any content runs once; a failing one is kept.
#[test]
fn odd_jobs_run_once_and_failing_ones_are_kept() {
    let (vm, redis) = worker(&[]);
    redis.command(r#"RPUSH jobs "ends in a line\n\n" "" fails "--raw *""#).unwrap();
    let_end(&vm, "one");
    let_end(&vm, "two");
    let odd = ["begin ends in a line", "", "", "end ends in a line", "", "", "begin ", "end ", "begin fails"];
    let expected =
        [&["begin one", "end one", "begin two", "end two"], &odd[..], &["begin --raw *", "end --raw *"]];
    wait_for_jobs(&vm, &expected.concat());
    wait_for("nothing to be left", || redis.list("jobs:worker-0").is_empty().then_some(()));
    assert_eq!((redis.list("jobs"), redis.list("jobs:failed")), (vec![], vec!["fails".to_owned()]));
}

/// The worker's whole list is returned, including empty jobs.
#[test]
fn shutdown_returns_all_jobs() {
    let (vm, redis) = worker(&[]);
    vm.run_script("process", &["kill", &vm.text("worker")]);
    redis.command(r#"RPUSH jobs:worker-0 "" more"#).unwrap();
    vm.run_script("queue-worker", &["hand-on", &redis.address(), "jobs", "worker-0"]);
    assert_eq!(redis.list("jobs"), ["one", "", "more", "two"]);
}

/// A worker waits until Redis is back.
#[test]
fn redis_restart_does_not_stop_worker() {
    let (vm, mut redis) = worker(&[]);
    redis.kill();
    let_end(&vm, "one");
    wait_for("the worker to miss it", || {
        lines(&vm.path("worker/log")).iter().any(|line| line.contains("no answer from Redis")).then_some(())
    });
    redis.restart();
    redis.command("RPUSH jobs again").unwrap();
    let_end(&vm, "again");
    wait_for_jobs(&vm, &["begin one", "end one", "begin again", "end again"]);
}

/// A killed worker leaves its job for the next one.
#[test]
fn killed_worker_loses_no_job() {
    let (vm, redis) = worker(&[]);
    vm.run_script("process", &["kill", &vm.text("worker")]);
    assert_eq!(redis.list("jobs:worker-0"), ["one"]);
    let hand_on = ["hand-on", &redis.address(), "jobs", "worker-0"];
    vm.run_script("queue-worker", &hand_on);
    vm.run_script("queue-worker", &hand_on);
    assert_eq!(redis.list("jobs"), ["one", "two"]);
    let nowhere = vm.script("queue-worker", &["hand-on", "127.0.0.1:1", "jobs", "worker-0"]);
    assert!(!nowhere.status.success(), "what cannot be handed on is no success: {nowhere:?}");
}
