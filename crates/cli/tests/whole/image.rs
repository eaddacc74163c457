//! The container image: its size, its files, its settings, and its content run as a container engine would.
//!
//! There is no container engine where tests run. A process with the image's files, user, variables and directory, in
//! namespaces for processes and network, takes the place of a container. `./dev test image` builds the image and sets
//! `NOTBEFORE_IMAGE` to its archive.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::namespace::{Namespace, failure_text};
use crate::support::wait_for;

/// A CI job downloads the image each time.
const BYTES_MAX: u64 = 30_000_000;
const POLL: &str = "http://127.0.0.1:9254/metadata/scheduledevents?api-version=2020-07-01";

fn archive() -> PathBuf {
    let archive = std::env::var_os("NOTBEFORE_IMAGE").map(PathBuf::from);
    let archive = archive
        .expect("NOTBEFORE_IMAGE must name the archive; './dev test image' builds it and sets the variable");
    assert!(archive.is_file(), "{} is no file", archive.display());
    archive
}

/// The unpacked image: its configuration, and its files in `root`.
struct Image {
    config: Value,
    dir: tempfile::TempDir,
}

impl Image {
    fn unpack() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let untar = |archive: &Path, to: &str| {
            let to = dir.path().join(to);
            std::fs::create_dir_all(&to).unwrap();
            let mut tar = Command::new("tar");
            tar.args(["--extract", "--same-owner", "--same-permissions", "--numeric-owner", "--directory"]);
            let done = tar.arg(to).arg("--file").arg(archive).output().unwrap();
            assert!(done.status.success(), "{}", failure_text(&done));
        };
        let parsed = |name: &str| -> Value {
            serde_json::from_reader(File::open(dir.path().join("archive").join(name)).unwrap()).unwrap()
        };
        untar(&archive(), "archive");
        let manifest = parsed("manifest.json");
        for layer in manifest[0]["Layers"].as_array().unwrap() {
            untar(&dir.path().join("archive").join(layer.as_str().unwrap()), "root");
        }
        let config = parsed(manifest[0]["Config"].as_str().unwrap())["config"].take();
        Self { config, dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn words(&self, pointer: &str) -> Vec<String> {
        let words = self.config.pointer(pointer).and_then(Value::as_array);
        let words = words.unwrap_or_else(|| panic!("no list {pointer} in {}", self.config));
        words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    }

    /// A program of the image, run in a namespace as its user, with its files and variables only.
    fn command(&self, namespace: &Namespace, words: &[String]) -> Command {
        let mut command = namespace.command("unshare");
        command.args(["--pid", "--fork", "--kill-child", "chroot"]);
        command.arg(format!("--userspec={}", self.config["User"].as_str().unwrap())).arg(self.root());
        command.args(words).env_clear();
        for variable in self.words("/Env") {
            let (name, value) = variable.split_once('=').unwrap();
            command.env(name, value);
        }
        command
    }
}

/// A running container, killed with the test.
struct Container(Child);

impl Container {
    /// Stops it as an engine does: SIGTERM for its process 1, the only child of `unshare`.
    fn stop(mut self) {
        let holder = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{holder}/task/{holder}/children")).unwrap();
        kill_process(Pid::from_raw(children.trim().parse().unwrap()).unwrap(), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success(), "the service ends in order");
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn find(root: &Path) -> Vec<(String, u32, u32)> {
    let listed = Command::new("find").arg(root).args(["-mindepth", "1", "-printf", "%P\n"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut found: Vec<_> = listed
        .lines()
        .map(|path| {
            let status = root.join(path).symlink_metadata().unwrap();
            (path.to_owned(), status.uid(), status.permissions().mode() & 0o7777)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn image_has_static_binary_and_little_else() {
    let bytes = archive().metadata().unwrap().len();
    assert!(bytes <= BYTES_MAX, "the image has {bytes} bytes, {BYTES_MAX} at most");
    let image = Image::unpack();
    let expected = [
        ("data", 65532, 0o700),
        ("usr", 0, 0o755),
        ("usr/bin", 0, 0o755),
        ("usr/bin/notbefore", 0, 0o755),
        ("usr/share", 0, 0o755),
        ("usr/share/doc", 0, 0o755),
        ("usr/share/doc/notbefore", 0, 0o755),
        ("usr/share/doc/notbefore/copyright", 0, 0o644),
    ];
    let expected = expected.map(|(path, user, mode)| (path.to_owned(), user, mode));
    assert_eq!(find(&image.root()), expected);
    let mut readelf = Command::new("readelf");
    readelf.args(["--wide", "--program-headers", "--dynamic"]).arg(image.root().join("usr/bin/notbefore"));
    let headers = String::from_utf8(readelf.output().unwrap().stdout).unwrap();
    assert!(
        headers.contains("LOAD") && !headers.contains("INTERP") && !headers.contains("NEEDED"),
        "{headers}"
    );
    let copyright = std::fs::read_to_string(image.root().join("usr/share/doc/notbefore/copyright")).unwrap();
    for part in ["vendor/rustls-", "The C library is musl", "TERMS AND CONDITIONS FOR USE, REPRODUCTION"] {
        assert!(copyright.contains(part), "the copyright file has no {part:?}");
    }
    // Debian's package refers to files that the image does not have.
    for part in copyright.split("The text of ").skip(1) {
        let (name, place) = part.split_once(" is ").unwrap();
        assert!(place.starts_with("at the end of this file."), "the text of {name} is {place:.60}");
        assert!(copyright.contains(&format!("\nLicense: {name}\n")), "there is no text of {name}");
    }
}

#[test]
fn image_serves_guests_and_operators_and_stops_in_order() {
    let (image, namespace) = (Image::unpack(), Namespace::new());
    assert_eq!(image.config["Labels"]["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    let ports: Vec<&String> = image.config["ExposedPorts"].as_object().unwrap().keys().collect();
    assert_eq!(ports, ["9254/tcp", "9255/tcp"]);
    assert_eq!(image.config["WorkingDir"], "/data");
    let check = image.words("/Healthcheck/Test");
    assert_eq!(check[0], "CMD");
    let healthy = || image.command(&namespace, &check[1..]).output().unwrap();
    assert_eq!(healthy().status.code(), Some(1), "it is healthy before it runs");

    let words = [image.words("/Entrypoint"), image.words("/Cmd")].concat();
    let log = File::create(image.dir.path().join("log")).unwrap();
    let mut serve = image.command(&namespace, &words);
    let container = Container(serve.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    wait_for("the health check to succeed", || healthy().status.success().then_some(()));

    // As a caller beside the container, to which its addresses are not loopback.
    namespace.add_address("10.9.8.7");
    let poll = || {
        let poll = POLL.replace("127.0.0.1", "10.9.8.7");
        let polled = namespace.bounded("curl").args(["-sS", "-H", "Metadata: true", &poll]).output().unwrap();
        assert!(polled.status.success(), "{}", failure_text(&polled));
        serde_json::from_slice::<Value>(&polled.stdout).unwrap()
    };
    assert_eq!(poll()["Events"], serde_json::json!([]));
    // As 'docker exec' does, which finds the program by PATH.
    let schedule = ["notbefore", "event", "schedule", "--type", "reboot", "web-0"].map(str::to_owned);
    let scheduled = image.command(&namespace, &schedule).output().unwrap();
    assert!(scheduled.status.success(), "{}", failure_text(&scheduled));
    assert_eq!(poll()["Events"][0]["Resources"], serde_json::json!(["web-0"]));
    let ready = namespace.bounded("curl").args(["-fsS", "http://10.9.8.7:9255/readyz"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&ready.stdout).lines().next(),
        Some("ready"),
        "{}",
        failure_text(&ready)
    );
    container.stop();
    assert_eq!(healthy().status.code(), Some(1), "it is healthy after it has stopped");
}
