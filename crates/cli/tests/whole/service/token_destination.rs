//! Token destinations: a listener records received tokens, and the binary runs in directories with another user's data
//! directory. Needs root, to create files of another user.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use crate::support;
use crate::support::binary;
use tempfile::TempDir;

/// A user that owns nothing else.
const OTHER_USER: u32 = 54_321;

/// A fake service without VMs that records received tokens.
struct Listener {
    port: u16,
    tokens: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let tokens = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&tokens);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let sent = head.iter().filter_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("authorization").then(|| value.replace("Bearer ", ""))
                });
                seen.lock().unwrap().extend(sent);
                let body = "{\"items\":[]}";
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all((head + body).as_bytes());
            }
        });
        Self { port, tokens }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The tokens that have come since this was last asked. A command has ended, so all of its are here.
    fn tokens(&self) -> Vec<String> {
        std::mem::take(&mut *self.tokens.lock().unwrap())
    }
}

/// A working directory with a data directory whose URL is the listener's.
struct Place {
    here: TempDir,
    listener: Listener,
}

impl Place {
    fn new() -> Self {
        let place = Self { here: tempfile::tempdir().unwrap(), listener: Listener::start() };
        fs::create_dir(place.data()).unwrap();
        fs::set_permissions(place.data(), fs::Permissions::from_mode(0o700)).unwrap();
        place.leave_url(&place.listener.url());
        place
    }

    fn data(&self) -> std::path::PathBuf {
        self.here.path().join("notbefore-data")
    }

    fn leave_url(&self, url: &str) {
        let file = self.data().join("operator.url");
        fs::write(&file, format!("{url}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn leave_token(&self) {
        fs::write(self.data().join("operator.token"), "nb_of_the_directory\n").unwrap();
    }

    fn run(&self, variables: &[(&str, &str)], words: &[&str]) -> Output {
        let mut command = Command::new(binary());
        for name in ["NOTBEFORE_DATA", "STATE_DIRECTORY", "NOTBEFORE_OPERATOR", "NOTBEFORE_TOKEN"] {
            command.env_remove(name);
        }
        command.args(words).args(["vm", "list"]).current_dir(self.here.path());
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// Runs with a token of the environment, and says which tokens have reached the listener.
    fn sent(&self, variables: &[(&str, &str)], words: &[&str]) -> Vec<String> {
        let variables: Vec<(&str, &str)> =
            variables.iter().copied().chain([("NOTBEFORE_TOKEN", "nb_mine")]).collect();
        self.run(&variables, words);
        self.listener.tokens()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn token_is_sent_to_named_url_or_directory_and_own_directory() {
    let place = Place::new();
    let (url, data) = (place.listener.url(), place.data());
    let data = data.to_str().unwrap();
    assert_eq!(place.sent(&[], &[]), ["nb_mine"], "a directory of one's own");
    let file = place.here.path().join("token");
    fs::write(&file, "nb_file\n").unwrap();
    place.run(&[("NOTBEFORE_TOKEN_FILE", file.to_str().unwrap())], &[]);
    assert_eq!(place.listener.tokens(), ["nb_file"]);

    chown(data, Some(OTHER_USER), None).unwrap();
    chown(Path::new(data).join("operator.url"), Some(OTHER_USER), None).unwrap();
    assert_eq!(place.sent(&[], &["--operator-url", &url]), ["nb_mine"]);
    assert_eq!(place.sent(&[("NOTBEFORE_OPERATOR", &url)], &[]), ["nb_mine"]);
    assert_eq!(place.sent(&[], &["--data", data]), ["nb_mine"], "named, of another owner");
    assert_eq!(place.sent(&[("NOTBEFORE_DATA", data)], &[]), ["nb_mine"]);
    assert_eq!(place.sent(&[("STATE_DIRECTORY", data)], &[]), ["nb_mine"]);

    // The directory's own token goes to the URL beside it.
    place.leave_token();
    chown(Path::new(data).join("operator.token"), Some(OTHER_USER), None).unwrap();
    let output = place.run(&[], &[]);
    assert_eq!(place.listener.tokens(), ["nb_of_the_directory"], "{output:?}");
}

#[test]
fn token_is_not_sent_to_url_of_foreign_directory() {
    let as_found = |prepare: &dyn Fn(&Place), why: &str| {
        let place = Place::new();
        prepare(&place);
        let output = place.run(&[("NOTBEFORE_TOKEN", "nb_mine")], &[]);
        assert_eq!(place.listener.tokens(), Vec::<String>::new(), "{why}: {output:?}");
        let said = said(&output);
        assert!(said.contains(why) && said.contains("--operator-url"), "{why}: {said}");
    };
    as_found(
        &|place| chown(place.data(), Some(OTHER_USER), None).unwrap(),
        "notbefore-data belongs to uid 54321",
    );
    as_found(
        &|place| chown(place.data().join("operator.url"), Some(OTHER_USER), None).unwrap(),
        "operator.url belongs to uid 54321",
    );
    as_found(
        &|place| fs::set_permissions(place.data(), fs::Permissions::from_mode(0o777)).unwrap(),
        "can be written by others",
    );
    as_found(
        &|place| {
            fs::rename(place.data(), place.here.path().join("elsewhere")).unwrap();
            symlink("elsewhere", place.data()).unwrap();
        },
        "notbefore-data is a link",
    );
    as_found(
        &|place| {
            let file = place.data().join("operator.url");
            fs::rename(&file, place.here.path().join("url")).unwrap();
            symlink("../url", file).unwrap();
        },
        "operator.url is a link",
    );
    as_found(&|place| place.leave_url("https://far.example"), "https://far.example is not on this machine");
    as_found(&|place| place.leave_url("http://127.0.0.1.far.example"), "is not on this machine");
    as_found(
        &|place| place.leave_url(&format!("http://127.0.0.1@localhost:{}", place.listener.port)),
        "user name or password (before @)",
    );
}

/// The token of a directory is only for its service, not for another that listens elsewhere.
#[test]
fn directory_token_is_sent_to_its_service_only() {
    let place = Place::new();
    place.leave_token();
    let (data, given) = (place.data(), place.listener.url());
    let output = place.run(&[], &["--operator-url", &format!("{given}/v1")]);
    assert_eq!(place.listener.tokens(), ["nb_of_the_directory"], "the URL beside it: {output:?}");
    place.leave_url("http://127.0.0.1:9");
    for (variables, words) in
        [(vec![("NOTBEFORE_OPERATOR", given.as_str())], vec![]), (vec![], vec!["--operator-url", &given])]
    {
        let output = place.run(&variables, &words);
        assert_eq!((place.listener.tokens(), output.status.code()), (vec![], Some(1)), "{output:?}");
        assert!(said(&output).contains("set NOTBEFORE_TOKEN,"), "{output:?}");
    }
    let named = ["--data", data.to_str().unwrap()];
    place.run(&[], &[named[0], named[1], "--operator-url", &given]);
    assert_eq!(place.listener.tokens(), ["nb_of_the_directory"], "both were named");

    // A service that has ended takes its URL away; what listens at the usual address is none of this directory's.
    fs::remove_file(data.join("operator.url")).unwrap();
    for (variables, words) in
        [(vec![], vec![]), (vec![], named.to_vec()), (vec![("NOTBEFORE_TOKEN", "nb_mine")], named.to_vec())]
    {
        let output = place.run(&variables, &words);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said(&output).contains("no service runs on this data directory"), "{output:?}");
    }
}

#[test]
fn link_in_foreign_directory_does_not_leak_secret() {
    let place = Place::new();
    let secret = place.here.path().join("secret");
    fs::write(&secret, "nb_secret\n").unwrap();
    for link in [true, false] {
        let token = place.data().join("operator.token");
        let _ = fs::remove_file(&token);
        if link {
            symlink(&secret, &token).unwrap()
        } else {
            fs::hard_link(&secret, &token).unwrap()
        }
        chown(place.data(), Some(OTHER_USER), None).unwrap();
        let output = place.run(&[], &[]);
        assert_eq!((place.listener.tokens(), output.status.code()), (vec![], Some(1)), "{output:?}");
        assert!(said(&output).contains("--data"), "{output:?}");
    }
    // A link to root's directory, which another user may have created.
    chown(place.data(), Some(0), None).unwrap();
    let elsewhere = place.here.path().join("elsewhere");
    fs::rename(place.data(), &elsewhere).unwrap();
    symlink("elsewhere", place.data()).unwrap();
    let output = place.run(&[], &[]);
    assert_eq!((place.listener.tokens(), output.status.code()), (vec![], Some(1)), "{output:?}");
    fs::remove_file(place.data()).unwrap();
    fs::rename(&elsewhere, place.data()).unwrap();
    // Of a directory that is one's own, every file is.
    chown(place.data(), Some(0), None).unwrap();
    place.run(&[], &[]);
    assert_eq!(place.listener.tokens(), ["nb_secret"]);
}

#[test]
fn plain_http_beyond_loopback_requires_flag() {
    let place = Place::new();
    place.leave_token();
    // No number of this machine's loopback, for the client; and it is the listener that a resolver would find.
    let far = format!("http://0.0.0.0:{}", place.listener.port);
    let data = place.data();
    let named = ["--data", data.to_str().unwrap()];
    let output = place.run(&[("NOTBEFORE_TOKEN", "nb_mine")], &["--operator-url", &far]);
    assert_eq!((place.listener.tokens(), output.status.code()), (vec![], Some(2)), "{output:?}");
    let why = said(&output);
    assert!(
        why.contains(&far) && why.contains("read the token") && why.contains("--operator-without-tls"),
        "{why}"
    );
    place.leave_url(&far);
    assert_eq!(place.run(&[], &named).status.code(), Some(2), "its own token neither");
    assert_eq!(place.run(&[], &[]).status.code(), Some(2));
    assert_eq!(place.listener.tokens(), Vec::<String>::new());

    assert_eq!(place.sent(&[], &["--operator-url", &far, "--operator-without-tls"]), ["nb_mine"]);
    assert_eq!(place.sent(&[], &["--data", named[1], "--operator-without-tls"]), ["nb_mine"]);
    assert!(place.sent(&[], &["--operator-url", &far, "--operator-without-tls=false"]).is_empty());
    // The flag exists on the command line only.
    assert!(place.sent(&[("NOTBEFORE_OPERATOR_WITHOUT_TLS", "true")], &["--operator-url", &far]).is_empty());
    let after = Command::new(binary())
        .args(["vm", "list", "--operator-without-tls", "--operator-url", &far])
        .env("NOTBEFORE_TOKEN", "nb_mine")
        .output()
        .unwrap();
    assert_eq!(place.listener.tokens(), ["nb_mine"], "after the command too: {after:?}");
    // The service's flag of that name is a separate setting.
    for words in [
        ["serve", "--operator-without-tls", "--print-config"],
        ["--operator-without-tls", "serve", "--print-config"],
    ] {
        let printed = Command::new(binary()).args(words).output().unwrap();
        assert!(String::from_utf8_lossy(&printed.stdout).contains("without_tls = true"), "{printed:?}");
    }
}

#[test]
fn invalid_url_exits_with_2() {
    let place = Place::new();
    let port = place.listener.port;
    for url in [
        format!("http://localhost:80@127.0.0.1:{port}"),
        format!("http://someone:secret@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
        format!("ftp://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}?a=b"),
    ] {
        let output = place.run(&[("NOTBEFORE_TOKEN", "nb_mine")], &["--operator-url", &url]);
        assert_eq!((place.listener.tokens(), output.status.code()), (vec![], Some(2)), "{url}: {output:?}");
        assert!(said(&output).contains("invalid URL"), "{output:?}");
    }
    for url in [format!("HTTP://LOCALHOST:{port}/"), format!("http://[::ffff:127.0.0.1]:{port}")] {
        assert_eq!(place.sent(&[], &["--operator-url", &url]), ["nb_mine"], "{url}");
    }
}

/// A service that sends control characters.
#[test]
fn control_characters_of_service_are_escaped() {
    let odd = "a\u{1b}[2J\u{202e}b\u{9b}\u{61c}\u{2066}\u{feff}\u{7f}\u{2028}c";
    let name = serde_json::to_string(odd).unwrap();
    let vm = format!(
        "{{\"items\":[{{\"name\":\"x\",\"created_at\":\"2026-01-01T00:00:00Z\",\"expired\":false,\"grants\":[{{\"role\":{name},\"path\":\"/\"}}]}}]}}"
    );
    let problem =
        format!("{{\"type\":\"x\",\"title\":\"x\",\"status\":409,\"detail\":{name},\"code\":\"one\\ntwo\"}}");
    let (vm, problem): (&'static str, &'static str) = (vm.leak(), problem.leak());
    let url = support::scripted::scripted_platform(move |line| match line {
        _ if line.starts_with("GET /v1/tokens") => Some(("200 OK", vm)),
        _ if line.starts_with("GET /v1/vms") => {
            Some(("502 Bad Gateway", "no\u{1b}[2J\nnotbefore: all is well"))
        }
        _ => Some(("409 Conflict", problem)),
    });
    let run = |words: &[&str]| {
        let mut command = Command::new(binary());
        command
            .args(words)
            .env("NOTBEFORE_OPERATOR", &url)
            .env("NOTBEFORE_TOKEN", "nb_mine")
            .output()
            .unwrap()
    };
    let shown = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let raw = text.chars().find(|char| notbefore_wire::text::is_unprintable(*char) && *char != '\n');
        assert_eq!(raw, None, "{text:?}");
        text
    };
    let table = run(&["token", "list"]);
    assert!(shown(&table.stdout).contains("a\\u{1b}[2J\\u{202e}b\\u{9b}"), "{table:?}");
    let json = shown(&run(&["token", "list", "-o", "json"]).stdout);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value[0]["grants"][0]["role"], odd, "the same value: {json}");
    let refused = shown(&run(&["event", "show", "x"]).stderr);
    assert!(refused.contains("\\u{202e}b") && refused.lines().count() == 1, "{refused}");
    let broken = shown(&run(&["vm", "list"]).stderr);
    assert_eq!(broken.lines().count(), 1, "no line of its own: {broken}");
    // Arguments and file names.
    let typed = run(&["vm", "\u{202e}list"]);
    assert_eq!(typed.status.code(), Some(2));
    assert!(shown(&typed.stderr).contains("\\u{202e}list"), "{typed:?}");
    let file = shown(&run(&["fleet", "apply", "/no\n\u{1b}[2J\u{202e}where.yaml"]).stderr);
    assert!(file.contains("/no\\n\\u{1b}[2J\\u{202e}where.yaml"), "{file}");
}
