//! The image's Containerfile, the samples of `examples/ci`, and the workflow of this repository.
//!
//! There is no container engine where tests run. A service with the settings of the Containerfile takes the place of a
//! container, in a network namespace where its ports are free. A script takes the place of `docker exec`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use regex_lite::Regex;
use serde_json::Value;

use super::samples::example;
use crate::support::namespace::{Namespace, failure_text};
use crate::support::pages::{as_typed, root};
use crate::support::{binary, wait_for};

const CONTAINERFILE: &str = "dist/container/Containerfile";

/// `docker exec ID notbefore …`, `docker compose exec -T SERVICE notbefore …` and a copy of the program, without a
/// container.
const DOCKER: &str = r#"#!/bin/sh
case "$*" in
  "exec the-service notbefore "*) shift 3 ;;
  "compose exec -T notbefore notbefore "*) shift 5 ;;
  "create "*/notbefore:*) echo the-service; exit ;;
  "cp the-service:/usr/bin/notbefore .") exec ln -s "$NOTBEFORE_BINARY" notbefore ;;
  *) echo "unexpected: docker $*" >&2; exit 125 ;;
esac
exec "$NOTBEFORE_BINARY" "$@"
"#;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// Variables of a mapping in YAML. A number would have to be quoted: some readers refuse it, others print it otherwise.
fn variables(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().unwrap().iter();
    pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect()
}

/// Instructions of the Containerfile with their arguments, in order.
fn instructions() -> Vec<(String, String)> {
    let text = read(CONTAINERFILE);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let pair = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap();
        (name.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    joined.lines().filter(|line| !line.is_empty()).map(pair).collect()
}

/// The arguments of the only instruction of this name.
fn instruction(name: &str) -> String {
    let mut found = instructions().into_iter().filter(|(known, _)| known == name);
    let (_, arguments) = found.next().unwrap_or_else(|| panic!("there is no {name}"));
    assert!(found.next().is_none(), "{name} is there twice");
    arguments
}

/// The variables that the image sets.
fn image_variables() -> BTreeMap<String, String> {
    let set = instruction("ENV");
    set.split(' ')
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

fn exposed() -> BTreeSet<String> {
    instruction("EXPOSE").split(' ').map(str::to_owned).collect()
}

/// A command in JSON, as ENTRYPOINT, CMD and HEALTHCHECK have it.
fn in_json(command: &str) -> Vec<String> {
    serde_json::from_str(command).unwrap_or_else(|error| panic!("{command}: {error}"))
}

/// A service as the container of an example, and a directory with the files of the example.
struct Container {
    namespace: Namespace,
    dir: tempfile::TempDir,
    variables: BTreeMap<String, String>,
    children: Vec<Child>,
}

impl Container {
    fn new(own: &BTreeMap<String, String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for file in ["ci/announce.sh", "python3/watch_events.py"] {
            std::fs::copy(example(file), dir.path().join(Path::new(file).file_name().unwrap())).unwrap();
        }
        let docker = dir.path().join("docker");
        std::fs::write(&docker, DOCKER).unwrap();
        std::fs::set_permissions(&docker, PermissionsExt::from_mode(0o755)).unwrap();
        let mut variables = image_variables();
        variables.extend(own.clone());
        variables.insert("NOTBEFORE_DATA".to_owned(), dir.path().join("data").display().to_string());
        Self { namespace: Namespace::new(), dir, variables, children: Vec::new() }
    }

    /// A container whose service is ready.
    fn start(own: &BTreeMap<String, String>) -> Self {
        let mut container = Self::new(own);
        let mut serve = container.command(binary());
        let args = in_json(&instruction("CMD"));
        let log = std::fs::File::create(container.dir.path().join("log")).unwrap();
        let mut service = serve.args(args).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let check = instruction("HEALTHCHECK");
        let check = in_json(check.split_once("CMD ").unwrap().1);
        wait_for("the health check to succeed", || {
            if let Some(status) = service.try_wait().unwrap() {
                let log = std::fs::read_to_string(container.dir.path().join("log")).unwrap();
                panic!("the service ended with {status}: {log}");
            }
            let mut check_health = container.command(binary());
            check_health.args(&check[1..]).output().unwrap().status.success().then_some(())
        });
        container.children.push(service);
        container
    }

    /// A program beside the container, which also has the container's variables.
    fn command(&self, program: &str) -> Command {
        let mut command = self.namespace.command(program);
        as_typed(&mut command);
        let path = format!("{}:{}", self.dir.path().display(), std::env::var("PATH").unwrap());
        command.envs(&self.variables).env("NOTBEFORE_BINARY", binary()).env("PATH", path);
        command.current_dir(self.dir.path());
        command
    }

    fn shell(&self, script: &str) -> Output {
        let mut shell = self.command("bash");
        shell.args(["-euc", script]).env("SERVICE", "the-service").output().unwrap()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn assert_all_approved(done: &Output) {
    assert!(done.status.success(), "{}", failure_text(done));
    let expected =
        ["Freeze", "Reboot", "Redeploy"].map(|kind| format!("{kind} Completed approved=true\n")).concat();
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected, "{}", failure_text(done));
}

#[test]
fn containerfile_names_existing_files_ports_and_commands() {
    let instructions = instructions();
    assert_eq!(instructions[0], ("FROM".to_owned(), "scratch".to_owned()));
    let user = instruction("USER");
    assert!(
        user.split(':').all(|id| id.parse::<u32>().unwrap() > 0),
        "the user is root or has a name: {user}"
    );

    // tools/dist fills the build context with exactly the sources of COPY.
    let dist = read("tools/dist");
    let copies = instructions.iter().filter(|(name, _)| name == "COPY");
    let copies: Vec<Vec<&str>> = copies.map(|(_, args)| args.split(' ').collect()).collect();
    let sources: Vec<&str> =
        copies.iter().map(|words| words[words.len() - 2].trim_end_matches('/')).collect();
    assert_eq!(sources, ["notbefore", "copyright", "state"]);
    for source in &sources {
        assert!(dist.contains(&format!("$place/image/{source}")), "tools/dist does not create {source}");
    }
    let program = in_json(&instruction("ENTRYPOINT"));
    assert!(copies.iter().any(|words| words.last() == Some(&&*program[0])), "{program:?} is not copied");
    let check = instruction("HEALTHCHECK");
    assert_eq!(in_json(check.split_once("CMD ").unwrap().1), [&program[0], "healthy"]);
    let data = image_variables()["NOTBEFORE_DATA"].clone();
    assert!(dist.contains(&format!("image/state{data}\n")), "tools/dist does not create {data} for the user");
    assert_eq!(instruction("WORKDIR"), data);

    // The settings are valid, and their listeners are the exposed ports.
    let container = Container::new(&BTreeMap::new());
    let checked = container.command(binary()).args(["serve", "--check-config"]).output().unwrap();
    assert!(checked.status.success(), "{}", failure_text(&checked));
    let listeners = image_variables().into_values().collect::<Vec<_>>().join(" ");
    let reachable = Regex::new(r"0\.0\.0\.0:([0-9]+)").unwrap();
    let ports: BTreeSet<String> =
        reachable.captures_iter(&listeners).map(|found| found[1].to_owned()).collect();
    assert_eq!(ports, exposed());
}

#[test]
fn github_job_tests_handler_with_service_container() {
    let workflow = yaml("examples/ci/github-actions.yaml");
    let job = &workflow["jobs"]["handler"];
    let service = &job["services"]["notbefore"];
    assert!(service["image"].as_str().unwrap().ends_with(concat!("/notbefore:", env!("CARGO_PKG_VERSION"))));
    for published in texts(&service["ports"]) {
        assert!(exposed().contains(published.split_once(':').unwrap().1), "{published}");
    }
    let steps = job["steps"].as_array().unwrap();
    let run = steps.iter().find(|step| step["env"]["SERVICE"] == "${{ job.services.notbefore.id }}").unwrap();
    let container = Container::start(&variables(&service["env"]));
    assert_all_approved(&container.shell(&format!("{}\nkill %1", run["run"].as_str().unwrap())));
}

/// One quick scenario in the place of all.
#[test]
fn github_job_rehearses_handler_and_stores_card() {
    let workflow = yaml("examples/ci/github-actions.yaml");
    let steps = workflow["jobs"]["rehearse"]["steps"].as_array().unwrap();
    let script: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let image = workflow["jobs"]["handler"]["services"]["notbefore"]["image"].as_str().unwrap();
    let program = in_json(&instruction("ENTRYPOINT")).remove(0);
    assert_eq!(script[0], format!("docker cp \"$(docker create {image})\":{program} ."));

    let container = Container::new(&BTreeMap::new());
    let scenario = "summary: x\nvms: [web-0]\nrests: 1s\nsteps: [{ at: 1s, schedule: { event: e, cause: user-restart, vms: [web-0], runs: 1s } }]\nexpect: [approves: e]\n";
    std::fs::write(container.dir.path().join("quick.yaml"), scenario).unwrap();
    let doctor = "rehearse doctor ";
    assert!(script[1].contains(doctor), "{script:?}");
    let script = script.join("\n").replace(doctor, &format!("{doctor}--only quick.yaml --floor 20s "));
    let done = container.shell(&script);
    assert!(done.status.success(), "{}", failure_text(&done));
    let stored = steps.iter().find(|step| step["if"] == "always()").unwrap();
    assert_eq!(stored["with"]["path"], "card.*");
    let card = |suffix| std::fs::read_to_string(container.dir.path().join("card").with_extension(suffix));
    assert!(card("xml").unwrap().contains("failures=\"0\""), "{:?}", card("xml"));
    assert!(card("html").unwrap().contains("quick"));
}

#[test]
fn compose_file_runs_handler_beside_service() {
    let file = read("examples/ci/compose.yaml");
    let compose = yaml("examples/ci/compose.yaml");
    let (service, handler) = (&compose["services"]["notbefore"], &compose["services"]["handler"]);
    assert_eq!(service["image"], concat!("notbefore:", env!("CARGO_PKG_VERSION")));
    assert_eq!(handler["depends_on"]["notbefore"]["condition"], "service_healthy");
    let announce = file.lines().find_map(|line| line.strip_prefix("#   sh ")).unwrap();
    let announce = format!("sh {announce}");

    // The handler's files are where its command expects them. Its host name is the service's.
    let mut command = texts(&handler["command"]).join(" ").replace("http://notbefore:", "http://127.0.0.1:");
    for mount in texts(&handler["volumes"]) {
        let parts: Vec<&str> = mount.split(':').collect();
        let source = example("ci").join(parts[0]);
        assert!(source.is_file() && command.contains(parts[1]), "{mount}");
        command = command.replace(parts[1], source.to_str().unwrap());
    }
    let mut own = variables(&service["environment"]);
    let mut container = Container::start(&own);
    let mut shell = container.command("sh");
    shell.args(["-c", &format!("exec {command}")]).stdout(Stdio::null());
    container.children.push(shell.spawn().unwrap());
    assert_all_approved(&container.shell(&announce));

    // Without a handler the script fails.
    own.insert("NOTBEFORE_EVENTS_NOTICE".to_owned(), "0.001".to_owned());
    let done = Container::start(&own).shell(&announce);
    assert_eq!(done.status.code(), Some(1), "{}", failure_text(&done));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "Freeze Completed approved=false\n");
}

#[test]
fn testcontainers_sample_passes_with_local_process() {
    let container = Container::new(&BTreeMap::new());
    let python = root().join("target/tests-python/bin/python3");
    let mut command = container.command(python.to_str().unwrap());
    command.arg(root().join("crates/cli/tests/whole/examples/local_engine.py"));
    let ports: Vec<String> = exposed().into_iter().collect();
    let done =
        command.args([binary(), &ports.join(",")]).arg(example("ci/test_handler.py")).output().unwrap();
    assert!(done.status.success(), "{}", failure_text(&done));
    assert!(String::from_utf8_lossy(&done.stderr).contains("Ran 1 test"), "{}", failure_text(&done));
    let default = concat!("\"NOTBEFORE_IMAGE\", \"notbefore:", env!("CARGO_PKG_VERSION"), "\"");
    assert!(read("examples/ci/test_handler.py").contains(default));
}

#[test]
fn workflows_pin_actions_and_call_existing_commands() {
    let help = Command::new(root().join("dev")).arg("help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let pinned = Regex::new("^[a-z-]+/[a-z-]+@[0-9a-f]{40}$").unwrap();
    let mut commands = Vec::new();
    for file in [".github/workflows/ci.yaml", "examples/ci/github-actions.yaml"] {
        let workflow = yaml(file);
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            for step in job["steps"].as_array().unwrap() {
                match (step["uses"].as_str(), step["run"].as_str()) {
                    (Some(action), None) => {
                        assert!(pinned.is_match(action), "{file}: {action} is not pinned")
                    }
                    (None, Some(run)) if run.starts_with("./dev ") => commands.push(run.to_owned()),
                    (None, Some(_)) => {}
                    (uses, run) => panic!("{file}, job {name}: a step has {uses:?} and {run:?}"),
                }
            }
        }
    }
    commands.sort();
    assert_eq!(commands, ["./dev release", "./dev test"]);
    for command in commands {
        assert!(help.contains(&format!("\n{command} ")), "'./dev help' does not list {command}");
    }
    let ours = yaml(".github/workflows/ci.yaml");
    let uploaded = &ours["jobs"]["release"]["steps"].as_array().unwrap().last().unwrap()["with"]["path"];
    let place = uploaded.as_str().unwrap().trim_end_matches('/');
    assert!(read("tools/release").contains(&format!("\nplace={place}\n")), "{place}");
    let toolchain: toml::Table = read("rust-toolchain.toml").parse().unwrap();
    let channel = toolchain["toolchain"]["channel"].as_str().unwrap();
    for job in ["test", "release"] {
        let image = ours["jobs"][job]["container"]["image"].as_str().unwrap();
        assert!(image.starts_with(&format!("rust:{channel}-")), "{job}: {image} has not Rust {channel}");
    }
}
