//! Trust checks of files. A user who can write the journal or the configuration can run commands as the agent's user,
//! so their owner and mode are checked before use. The check applies to the open file, not to its path, so that no
//! other file can be swapped in. On Windows, the installer sets permissions instead.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file that failed the check. Its message has the reason and the command that fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    path: PathBuf,
    flaw: TrustError,
    /// Uid of the agent.
    user: u32,
}

/// Owner and mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOwner {
    /// Uid.
    pub owner: u32,
    /// Permission bits.
    pub mode: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustError {
    /// A symbolic link, where none is followed.
    Link,
    /// The agent's user may not open it.
    Closed { seen: FileOwner },
    /// Others could have written it. `is_foreign`: the owner is neither root nor the agent's user, where that
    /// matters. `bits` are the excess write bits.
    Open { seen: FileOwner, is_foreign: bool, bits: u32 },
}

/// Which owners and modes are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// State directory and its files: owned by root or the agent's user, writable by no other user.
    State,
    /// Configuration at its default path: owned by root or the agent's user. Not writable by others, nor by a group
    /// other than root's.
    UsualConfig,
    /// Configuration at an explicit path: any owner, because the operator chose it.
    NamedConfig,
}

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Checks owner and mode for a user.
pub fn check_owner(rule: Rule, seen: FileOwner, user: u32) -> Option<TrustError> {
    let is_foreign = rule != Rule::NamedConfig && seen.owner != 0 && seen.owner != user;
    let forbidden = match rule {
        Rule::UsualConfig | Rule::NamedConfig if user != 0 => OTHERS_WRITE,
        Rule::State | Rule::UsualConfig | Rule::NamedConfig => GROUP_WRITES | OTHERS_WRITE,
    };
    let bits = seen.mode & forbidden;
    (is_foreign || bits != 0).then_some(TrustError::Open { seen, is_foreign, bits })
}

impl Untrusted {
    pub fn new(path: &Path, flaw: TrustError, user: u32) -> Self {
        Untrusted { path: path.to_owned(), flaw, user }
    }

    /// Whether an error is an [`Untrusted`].
    pub fn is(error: &io::Error) -> bool {
        Self::of(error).is_some()
    }

    fn of(error: &io::Error) -> Option<&Untrusted> {
        error.get_ref()?.downcast_ref()
    }

    /// Whether an error is an [`Untrusted`] that another user of the command would meet too, such as a wrong mode.
    pub fn is_for_all_users(error: &io::Error) -> bool {
        Self::of(error).is_some_and(|untrusted| match untrusted.flaw {
            TrustError::Link => true,
            TrustError::Closed { .. } => false,
            TrustError::Open { bits, .. } => bits != 0 || untrusted.user == 0,
        })
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Untrusted { path, flaw, user } = self;
        let path = path.display();
        let (FileOwner { owner, mode }, is_foreign, bits) = match *flaw {
            TrustError::Open { seen, is_foreign, bits } => (seen, is_foreign, bits),
            TrustError::Link => {
                return write!(
                    f,
                    "{path} is a symbolic link, which the agent does not follow: remove it ('rm {path}'), or name the \
                     target directory with --state"
                );
            }
            TrustError::Closed { seen: FileOwner { owner, mode } } => {
                return write!(
                    f,
                    "{path} belongs to uid {owner} (mode {:04o}), and the agent's user (uid {user}) may not open it: run \
                     'chown {user} {path}', run the agent as uid {owner}, or name another directory with --state",
                    mode & 0o7777
                );
            }
        };
        let (who, letters) = match bits {
            0 => ("", ""),
            GROUP_WRITES => ("its group", "g"),
            OTHERS_WRITE => ("everybody", "o"),
            _ => ("its group and everybody", "go"),
        };
        let foreign = is_foreign.then(|| match user {
            0 => format!("belongs to uid {owner}, not to root"),
            user => format!("belongs to uid {owner}, neither to root nor to the agent's user (uid {user})"),
        });
        let open = (bits != 0).then(|| format!("can be written by {who}"));
        let wrong: Vec<String> = foreign.into_iter().chain(open).collect();
        let own = is_foreign.then(|| format!("chown {user} {path}"));
        let close = (bits != 0).then(|| format!("chmod {letters}-w {path}"));
        let cure: Vec<String> = own.into_iter().chain(close).collect();
        write!(
            f,
            "{path} {} (owner uid {owner}, mode {:04o}): the agent would run commands that another user could have written; if its \
             content is yours, run '{}', else move it away",
            wrong.join(" and "),
            mode & 0o7777,
            cure.join(" && ")
        )
    }
}

impl std::error::Error for Untrusted {}

impl From<Untrusted> for io::Error {
    fn from(untrusted: Untrusted) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, untrusted)
    }
}

/// Checks an open file; the path is for the message.
#[cfg(unix)]
pub fn check(rule: Rule, file: impl std::os::fd::AsFd, path: &Path) -> io::Result<FileOwner> {
    let stat = rustix::fs::fstat(file)?;
    let (seen, user) = (FileOwner { owner: stat.st_uid, mode: stat.st_mode }, user());
    match check_owner(rule, seen, user) {
        None => Ok(seen),
        Some(flaw) => Err(Untrusted::new(path, flaw, user).into()),
    }
}

/// Effective uid of this process.
#[cfg(unix)]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u32 = 0;
    const US: u32 = 100;
    const THEM: u32 = 1000;

    fn is_trusted(rule: Rule, owner: u32, mode: u32, user: u32) -> bool {
        check_owner(rule, FileOwner { owner, mode }, user).is_none()
    }

    #[test]
    fn state_belongs_to_root_or_the_agent_and_nobody_else_writes_it() {
        for (owner, mode, user, expected) in [
            (ROOT, 0o700, ROOT, true),
            (ROOT, 0o755, US, true),
            (US, 0o644, US, true),
            (US, 0o600, ROOT, false),
            (THEM, 0o700, US, false),
            (ROOT, 0o770, ROOT, false),
            (US, 0o620, US, false),
            (ROOT, 0o1777, ROOT, false),
            (US, 0o602, US, false),
        ] {
            assert_eq!(is_trusted(Rule::State, owner, mode, user), expected, "{owner} {mode:o} {user}");
        }
    }

    #[test]
    fn configuration_is_judged_by_its_path_and_by_who_runs_the_agent() {
        use Rule::{NamedConfig, UsualConfig};
        for (rule, owner, mode, user, expected) in [
            (UsualConfig, ROOT, 0o644, ROOT, true),
            (UsualConfig, US, 0o640, US, true),
            (UsualConfig, THEM, 0o644, ROOT, false),
            (UsualConfig, ROOT, 0o664, ROOT, false),
            (UsualConfig, ROOT, 0o664, US, true),
            (UsualConfig, ROOT, 0o646, US, false),
            (NamedConfig, THEM, 0o644, ROOT, true),
            (NamedConfig, THEM, 0o664, ROOT, false),
            (NamedConfig, THEM, 0o664, US, true),
            (NamedConfig, US, 0o666, US, false),
        ] {
            assert_eq!(is_trusted(rule, owner, mode, user), expected, "{rule:?} {owner} {mode:o} {user}");
        }
    }

    #[test]
    fn message_names_path_owner_mode_and_cure() {
        let told = |rule, owner, mode, user| {
            let flaw = check_owner(rule, FileOwner { owner, mode }, user).unwrap();
            Untrusted::new(Path::new("/x"), flaw, user).to_string()
        };
        let both = told(Rule::State, THEM, 0o100_666, ROOT);
        assert!(both.starts_with(
            "/x belongs to uid 1000, not to root and can be written by its group and everybody"
        ));
        assert!(both.contains("(owner uid 1000, mode 0666)"), "{both}");
        assert!(both.contains("'chown 0 /x && chmod go-w /x'"), "{both}");
        assert!(told(Rule::NamedConfig, THEM, 0o664, ROOT).contains("'chmod g-w /x'"));
        assert!(told(Rule::UsualConfig, THEM, 0o644, US).contains("'chown 100 /x'"));
    }
}
