//! A Windows environment: Wine, with a prefix (drives and registry) under `target/` that is created once for all tests,
//! and `notbefore.exe` from `./dev test windows`. The user's own Wine is not touched.
//!
//! Wine stays up while a waiting prompt runs, which ends with the tests. Wine has no event log, but its trace output,
//! in a file, has the logged events.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// Variable with the path of the Windows program.
const EXE: &str = "NOTBEFORE_WINDOWS_EXE";
/// Time limit of a program; Wine is slow on a busy machine.
const RUN_SECONDS_MAX: &str = "60";
/// The library next to the program that Wine lacks; loaded from there only.
const OVERRIDES: &str = "bcryptprimitives=n;mscoree,mshtml=";

/// A Windows environment with our program.
pub struct Windows {
    exe: PathBuf,
    prefix: PathBuf,
    /// A prompt that waits for input; it keeps Wine running.
    _prompt: Option<Child>,
}

impl Windows {
    /// The environment shared by all tests.
    pub fn get() -> &'static Self {
        static ONE: OnceLock<Windows> = OnceLock::new();
        ONE.get_or_init(Self::boot)
    }

    fn boot() -> Self {
        let exe = std::env::var_os(EXE).map(PathBuf::from);
        let exe = exe.unwrap_or_else(|| {
            panic!("{EXE} does not name the program for Windows; './dev test windows' builds it and does")
        });
        assert!(exe.is_file(), "{EXE}: {} is no file", exe.display());
        let prefix = exe.parent().unwrap().join("wine");
        let mut windows = Self { exe, prefix, _prompt: None };
        // Leftovers of a killed run.
        let left = windows.wine_with("wineserver", &["-k"]).status();
        left.unwrap_or_else(|error| panic!("wineserver: {error}; its package is in tools/needs/windows.txt"));
        let _ = fs::remove_dir_all(&windows.prefix);
        let log = File::create(windows.log()).unwrap();
        let mut prompt = windows.wine_with("wine", &["cmd"]);
        prompt.env("WINEDEBUG", "-all,+eventlog").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut prompt = prompt.spawn().unwrap();
        // Nothing else may run before it answers: the first process starts the Wine server, which keeps its ends of
        // that process's pipes. The shell prints its prompt before the answer.
        writeln!(prompt.stdin.as_mut().unwrap(), "echo booted\r").unwrap();
        let mut answers = BufReader::new(prompt.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(answers.any(|line| line.trim().ends_with("booted")), "Wine does not boot");
        std::thread::spawn(move || answers.for_each(drop));
        windows._prompt = Some(prompt);
        windows
    }

    fn log(&self) -> PathBuf {
        self.prefix.with_extension("log")
    }

    /// The events that services wrote to the event log.
    pub fn event_log(&self) -> String {
        let log = fs::read(self.log()).unwrap();
        let log = String::from_utf8_lossy(&log);
        let events =
            log.lines().filter_map(|line| line.split_once("ReportEventW ")).map(|(_, events)| events);
        events.collect::<Vec<_>>().join("\n")
    }

    /// The path on this system of a file on drive C:.
    pub fn drive_c(&self, path: &str) -> PathBuf {
        self.prefix.join("drive_c").join(path)
    }

    /// One of Wine's programs, with a time limit.
    pub fn wine(&self, args: &[&str]) -> Command {
        self.wine_with("timeout", &[&["--kill-after=1", RUN_SECONDS_MAX, "wine"], args].concat())
    }

    fn wine_with(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env("WINEPREFIX", &self.prefix).env("WINEDLLOVERRIDES", OVERRIDES);
        command.env("WINEDEBUG", "-all");
        command
    }

    /// `notbefore.exe` with these arguments and a time limit.
    pub fn notbefore(&self, args: &[&str]) -> Command {
        self.wine(&[&[self.exe.to_str().unwrap()], args].concat())
    }

    /// One of the tests' Windows programs.
    pub fn helper(&self, name: &str, args: &[&str]) -> Command {
        self.wine(&[&[self.exe.with_file_name(name).to_str().unwrap()], args].concat())
    }

    /// The program's Windows path.
    pub fn exe(&self) -> String {
        format!("Z:{}", self.exe.to_str().unwrap().replace('/', "\\"))
    }

    /// `notbefore.exe` without a time limit. The spawned process execs the program.
    pub fn notbefore_unbounded(&self, args: &[&str]) -> Command {
        self.wine_with("wine", &[&[self.exe.to_str().unwrap()], args].concat())
    }
}

/// Standard output of a program, which must succeed.
pub fn stdout_text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a program.
pub fn stderr_text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{err}", output.status)
}
