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

    /// The tokens received since the last call. Call it after a command has ended.
    fn tokens(&self) -> Vec<String> {
        std::mem::take(&mut *self.tokens.lock().unwrap())
    }
}

/// A working directory with a data directory whose URL is the listener's.
struct Workspace {
    dir: TempDir,
    listener: Listener,
}

impl Workspace {
    fn new() -> Self {
        let workspace = Self { dir: tempfile::tempdir().unwrap(), listener: Listener::start() };
        fs::create_dir(workspace.data()).unwrap();
        fs::set_permissions(workspace.data(), fs::Permissions::from_mode(0o700)).unwrap();
        workspace.write_url(&workspace.listener.url());
        workspace
    }

    fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("notbefore-data")
    }

    fn write_url(&self, url: &str) {
        let file = self.data().join("operator.url");
        fs::write(&file, format!("{url}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn write_token(&self) {
        fs::write(self.data().join("operator.token"), "nb_of_the_directory\n").unwrap();
    }

    fn run(&self, variables: &[(&str, &str)], args: &[&str]) -> Output {
        let mut command = Command::new(binary());
        for name in ["NOTBEFORE_DATA", "STATE_DIRECTORY", "NOTBEFORE_OPERATOR", "NOTBEFORE_TOKEN"] {
            command.env_remove(name);
        }
        command.args(args).args(["vm", "list"]).current_dir(self.dir.path());
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// Runs a command with a token in the environment; returns the tokens that the listener received.
    fn sent(&self, variables: &[(&str, &str)], args: &[&str]) -> Vec<String> {
        let variables: Vec<(&str, &str)> =
            variables.iter().copied().chain([("NOTBEFORE_TOKEN", "nb_mine")]).collect();
        self.run(&variables, args);
        self.listener.tokens()
    }
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn token_is_sent_to_named_url_or_directory_and_own_directory() {
    let workspace = Workspace::new();
    let (url, data) = (workspace.listener.url(), workspace.data());
    let data = data.to_str().unwrap();
    assert_eq!(workspace.sent(&[], &[]), ["nb_mine"], "a directory of one's own");
    let file = workspace.dir.path().join("token");
    fs::write(&file, "nb_file\n").unwrap();
    workspace.run(&[("NOTBEFORE_TOKEN_FILE", file.to_str().unwrap())], &[]);
    assert_eq!(workspace.listener.tokens(), ["nb_file"]);

    chown(data, Some(OTHER_USER), None).unwrap();
    chown(Path::new(data).join("operator.url"), Some(OTHER_USER), None).unwrap();
    assert_eq!(workspace.sent(&[], &["--operator-url", &url]), ["nb_mine"]);
    assert_eq!(workspace.sent(&[("NOTBEFORE_OPERATOR", &url)], &[]), ["nb_mine"]);
    assert_eq!(workspace.sent(&[], &["--data", data]), ["nb_mine"], "named, of another owner");
    assert_eq!(workspace.sent(&[("NOTBEFORE_DATA", data)], &[]), ["nb_mine"]);
    assert_eq!(workspace.sent(&[("STATE_DIRECTORY", data)], &[]), ["nb_mine"]);

    // The directory's own token goes to the URL beside it.
    workspace.write_token();
    chown(Path::new(data).join("operator.token"), Some(OTHER_USER), None).unwrap();
    let output = workspace.run(&[], &[]);
    assert_eq!(workspace.listener.tokens(), ["nb_of_the_directory"], "{output:?}");
}

#[test]
fn token_is_not_sent_to_url_of_foreign_directory() {
    let as_found = |prepare: &dyn Fn(&Workspace), why: &str| {
        let workspace = Workspace::new();
        prepare(&workspace);
        let output = workspace.run(&[("NOTBEFORE_TOKEN", "nb_mine")], &[]);
        assert_eq!(workspace.listener.tokens(), Vec::<String>::new(), "{why}: {output:?}");
        let stderr = stderr_text(&output);
        assert!(stderr.contains(why) && stderr.contains("--operator-url"), "{why}: {stderr}");
    };
    as_found(
        &|workspace| chown(workspace.data(), Some(OTHER_USER), None).unwrap(),
        "notbefore-data belongs to uid 54321",
    );
    as_found(
        &|workspace| chown(workspace.data().join("operator.url"), Some(OTHER_USER), None).unwrap(),
        "operator.url belongs to uid 54321",
    );
    as_found(
        &|workspace| fs::set_permissions(workspace.data(), fs::Permissions::from_mode(0o777)).unwrap(),
        "can be written by others",
    );
    as_found(
        &|workspace| {
            fs::rename(workspace.data(), workspace.dir.path().join("elsewhere")).unwrap();
            symlink("elsewhere", workspace.data()).unwrap();
        },
        "notbefore-data is a link",
    );
    as_found(
        &|workspace| {
            let file = workspace.data().join("operator.url");
            fs::rename(&file, workspace.dir.path().join("url")).unwrap();
            symlink("../url", file).unwrap();
        },
        "operator.url is a link",
    );
    as_found(
        &|workspace| workspace.write_url("https://far.example"),
        "https://far.example is not on this machine",
    );
    as_found(&|workspace| workspace.write_url("http://127.0.0.1.far.example"), "is not on this machine");
    as_found(
        &|workspace| workspace.write_url(&format!("http://127.0.0.1@localhost:{}", workspace.listener.port)),
        "user name or password (before @)",
    );
}

/// The token of a directory is only for its service, not for another that listens elsewhere.
#[test]
fn directory_token_is_sent_to_its_service_only() {
    let workspace = Workspace::new();
    workspace.write_token();
    let (data, given) = (workspace.data(), workspace.listener.url());
    let output = workspace.run(&[], &["--operator-url", &format!("{given}/v1")]);
    assert_eq!(workspace.listener.tokens(), ["nb_of_the_directory"], "the URL beside it: {output:?}");
    workspace.write_url("http://127.0.0.1:9");
    for (variables, args) in
        [(vec![("NOTBEFORE_OPERATOR", given.as_str())], vec![]), (vec![], vec!["--operator-url", &given])]
    {
        let output = workspace.run(&variables, &args);
        assert_eq!((workspace.listener.tokens(), output.status.code()), (vec![], Some(1)), "{output:?}");
        assert!(stderr_text(&output).contains("set NOTBEFORE_TOKEN,"), "{output:?}");
    }
    let named = ["--data", data.to_str().unwrap()];
    workspace.run(&[], &[named[0], named[1], "--operator-url", &given]);
    assert_eq!(workspace.listener.tokens(), ["nb_of_the_directory"], "both were named");

    // A stopped service removes its URL file; a listener at the default address does not belong to this directory.
    fs::remove_file(data.join("operator.url")).unwrap();
    for (variables, args) in
        [(vec![], vec![]), (vec![], named.to_vec()), (vec![("NOTBEFORE_TOKEN", "nb_mine")], named.to_vec())]
    {
        let output = workspace.run(&variables, &args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr_text(&output).contains("no service runs on this data directory"), "{output:?}");
    }
}

#[test]
fn link_in_foreign_directory_does_not_leak_secret() {
    let workspace = Workspace::new();
    let secret = workspace.dir.path().join("secret");
    fs::write(&secret, "nb_secret\n").unwrap();
    for link in [true, false] {
        let token = workspace.data().join("operator.token");
        let _ = fs::remove_file(&token);
        if link {
            symlink(&secret, &token).unwrap()
        } else {
            fs::hard_link(&secret, &token).unwrap()
        }
        chown(workspace.data(), Some(OTHER_USER), None).unwrap();
        let output = workspace.run(&[], &[]);
        assert_eq!((workspace.listener.tokens(), output.status.code()), (vec![], Some(1)), "{output:?}");
        assert!(stderr_text(&output).contains("--data"), "{output:?}");
    }
    // A link to root's directory, which another user may have created.
    chown(workspace.data(), Some(0), None).unwrap();
    let elsewhere = workspace.dir.path().join("elsewhere");
    fs::rename(workspace.data(), &elsewhere).unwrap();
    symlink("elsewhere", workspace.data()).unwrap();
    let output = workspace.run(&[], &[]);
    assert_eq!((workspace.listener.tokens(), output.status.code()), (vec![], Some(1)), "{output:?}");
    fs::remove_file(workspace.data()).unwrap();
    fs::rename(&elsewhere, workspace.data()).unwrap();
    // All files of the caller's own directory are trusted.
    chown(workspace.data(), Some(0), None).unwrap();
    workspace.run(&[], &[]);
    assert_eq!(workspace.listener.tokens(), ["nb_secret"]);
}

#[test]
fn plain_http_beyond_loopback_requires_flag() {
    let workspace = Workspace::new();
    workspace.write_token();
    // Not a loopback address, although a connection to it reaches the listener.
    let far = format!("http://0.0.0.0:{}", workspace.listener.port);
    let data = workspace.data();
    let named = ["--data", data.to_str().unwrap()];
    let output = workspace.run(&[("NOTBEFORE_TOKEN", "nb_mine")], &["--operator-url", &far]);
    assert_eq!((workspace.listener.tokens(), output.status.code()), (vec![], Some(2)), "{output:?}");
    let why = stderr_text(&output);
    assert!(
        why.contains(&far) && why.contains("read the token") && why.contains("--operator-without-tls"),
        "{why}"
    );
    workspace.write_url(&far);
    assert_eq!(workspace.run(&[], &named).status.code(), Some(2), "its own token neither");
    assert_eq!(workspace.run(&[], &[]).status.code(), Some(2));
    assert_eq!(workspace.listener.tokens(), Vec::<String>::new());

    assert_eq!(workspace.sent(&[], &["--operator-url", &far, "--operator-without-tls"]), ["nb_mine"]);
    assert_eq!(workspace.sent(&[], &["--data", named[1], "--operator-without-tls"]), ["nb_mine"]);
    assert!(workspace.sent(&[], &["--operator-url", &far, "--operator-without-tls=false"]).is_empty());
    // The flag exists on the command line only.
    assert!(
        workspace.sent(&[("NOTBEFORE_OPERATOR_WITHOUT_TLS", "true")], &["--operator-url", &far]).is_empty()
    );
    let after = Command::new(binary())
        .args(["vm", "list", "--operator-without-tls", "--operator-url", &far])
        .env("NOTBEFORE_TOKEN", "nb_mine")
        .output()
        .unwrap();
    assert_eq!(workspace.listener.tokens(), ["nb_mine"], "after the command too: {after:?}");
    // The service's flag of that name is a separate setting.
    for args in [
        ["serve", "--operator-without-tls", "--print-config"],
        ["--operator-without-tls", "serve", "--print-config"],
    ] {
        let printed = Command::new(binary()).args(args).output().unwrap();
        assert!(String::from_utf8_lossy(&printed.stdout).contains("without_tls = true"), "{printed:?}");
    }
}

#[test]
fn invalid_url_exits_with_2() {
    let workspace = Workspace::new();
    let port = workspace.listener.port;
    for url in [
        format!("http://localhost:80@127.0.0.1:{port}"),
        format!("http://someone:secret@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
        format!("ftp://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}?a=b"),
    ] {
        let output = workspace.run(&[("NOTBEFORE_TOKEN", "nb_mine")], &["--operator-url", &url]);
        assert_eq!(
            (workspace.listener.tokens(), output.status.code()),
            (vec![], Some(2)),
            "{url}: {output:?}"
        );
        assert!(stderr_text(&output).contains("invalid URL"), "{output:?}");
    }
    for url in [format!("HTTP://LOCALHOST:{port}/"), format!("http://[::ffff:127.0.0.1]:{port}")] {
        assert_eq!(workspace.sent(&[], &["--operator-url", &url]), ["nb_mine"], "{url}");
    }
}

/// A service that sends control characters.
#[test]
fn control_characters_of_service_are_escaped() {
    let odd = "a\u{1b}[2J\u{202e}b\u{9b}\u{61c}\u{2066}\u{feff}\u{7f}\u{2028}c";
    let name = serde_json::to_string(odd).unwrap();
    let vm = format!(
        "{{\"items\":[{{\"name\":\"x\",\"created_at\":\"2026-01-01T00:00:00Z\",\"expired\":false,\"revision\":1,\"grants\":[{{\"role\":{name},\"path\":\"/\"}}]}}]}}"
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
    let run = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).env("NOTBEFORE_OPERATOR", &url).env("NOTBEFORE_TOKEN", "nb_mine").output().unwrap()
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
