//! A Windows to try things on: Wine, with a prefix (its drives and registry) under `target/` that is made once and used
//! by all tests, and `notbefore.exe` as `./dev test windows` has built it. Nothing of a user's own Wine is touched.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The variable that says where the program for Windows is.
const EXE: &str = "NOTBEFORE_WINDOWS_EXE";
/// The library beside it that Wine lacks: taken from there, and no other.
const OVERRIDES: &str = "bcryptprimitives=n;mscoree,mshtml=";

/// A Windows with our program on it.
pub struct Windows {
    exe: PathBuf,
    prefix: PathBuf,
}

impl Windows {
    /// The one that all tests share.
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
        let windows = Self { exe, prefix };
        // What a run that was killed has left behind.
        let left = windows.wine_with("wineserver", &["-k"]).status();
        left.unwrap_or_else(|error| panic!("wineserver: {error}; its package is in tests-need-windows.txt"));
        if windows.prefix.exists() {
            std::fs::remove_dir_all(&windows.prefix).unwrap();
        }
        let made = windows.wine(&["wineboot", "--init"]).output().unwrap();
        assert!(made.status.success(), "Wine does not boot: {made:?}");
        windows
    }

    /// Runs one of Wine's own programs, or any other.
    pub fn wine(&self, words: &[&str]) -> Command {
        self.wine_with("wine", words)
    }

    fn wine_with(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).env("WINEPREFIX", &self.prefix).env("WINEDLLOVERRIDES", OVERRIDES);
        command.env("WINEDEBUG", "-all");
        command
    }

    /// `notbefore.exe` with these words.
    pub fn notbefore(&self, words: &[&str]) -> Command {
        let words: Vec<&str> =
            std::iter::once(self.exe.to_str().unwrap()).chain(words.iter().copied()).collect();
        self.wine(&words)
    }
}

/// What a program printed; it must have ended well.
pub fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", complaint(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What a program complained of.
pub fn complaint(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{err}", output.status)
}
