//! Files of a data directory that the command line reads: the service's URL, certificate and first token.
//!
//! A directory that the caller names is trusted. `./notbefore-data` depends on the current directory, so another user
//! may have created it, or links in it to files that the caller can read. It is opened once and checks use the open
//! descriptor, so that it cannot be replaced between check and use.

use std::io;
use std::path::{Path, PathBuf};

use crate::destination::Directory;

/// Limit of a file; URLs, tokens and certificates are much shorter.
const BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug)]
pub enum DataFiles {
    Named(PathBuf),
    /// `./notbefore-data`, and the result of opening it.
    Usual(PathBuf, io::Result<usual::Opened>),
}

impl DataFiles {
    /// The default directory is opened once, for all reads.
    pub fn open(path: PathBuf, is_named: bool) -> Self {
        match is_named {
            true => DataFiles::Named(path),
            false => {
                let opened = usual::Opened::directory(&path);
                DataFiles::Usual(path, opened)
            }
        }
    }

    /// Path of a file, for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        let (DataFiles::Named(path) | DataFiles::Usual(path, _)) = self;
        path.join(name)
    }

    /// The URL that the service wrote, if any, and how far it is trusted.
    pub fn url(&self) -> (Option<String>, Directory) {
        match self {
            DataFiles::Named(_) => (read_small(&self.path("operator.url")).ok(), Directory::Named),
            DataFiles::Usual(path, Ok(dir)) => usual::url(dir, path),
            DataFiles::Usual(_, Err(_)) => (None, Directory::Foreign("it cannot be opened".to_owned())),
        }
    }

    pub fn token(&self) -> io::Result<String> {
        match self {
            DataFiles::Named(_) => read_small(&self.path("operator.token")),
            DataFiles::Usual(_, Ok(dir)) => usual::token(dir),
            DataFiles::Usual(_, Err(error)) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    /// The service's certificate, in PEM.
    pub fn certificate(&self) -> io::Result<String> {
        match self {
            DataFiles::Usual(_, Ok(dir)) => dir.below("operator.ca")?.read(),
            DataFiles::Named(_) | DataFiles::Usual(_, Err(_)) => read_small(&self.path("operator.ca")),
        }
    }
}

/// The trimmed text of a small file.
pub fn read_small(path: &Path) -> io::Result<String> {
    read(std::fs::File::open(path)?)
}

fn read(file: impl io::Read) -> io::Result<String> {
    let text = io::read_to_string(file.take(BYTES_MAX))?;
    Ok(text.trim().to_owned())
}

/// The default directory.
#[cfg(unix)]
mod usual {
    use std::fs::{File, Metadata};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{CWD, Mode, OFlags, openat};

    use super::{Directory, Path, io, read};

    /// An open file or directory with its metadata.
    #[derive(Debug)]
    pub struct Opened {
        file: File,
        metadata: Metadata,
        is_link: bool,
    }

    impl Opened {
        fn at(dir: impl AsFd, path: &Path, flags: OFlags) -> io::Result<Self> {
            // Do not block on a FIFO that another user has created.
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let opened = openat(&dir, path, flags | OFlags::NOFOLLOW, Mode::empty());
            let is_link = opened.is_err();
            // Links are followed, but recorded.
            let file = File::from(opened.or_else(|_| openat(&dir, path, flags, Mode::empty()))?);
            Ok(Self { metadata: file.metadata()?, file, is_link })
        }

        pub fn directory(path: &Path) -> io::Result<Self> {
            Self::at(CWD, path, OFlags::PATH | OFlags::DIRECTORY)
        }

        pub fn below(&self, name: &str) -> io::Result<Self> {
            Self::at(&self.file, Path::new(name), OFlags::RDONLY)
        }

        /// The reason why a user other than the caller and root may have written this.
        fn why_foreign(&self) -> Option<String> {
            let (owner, me) = (self.metadata.uid(), rustix::process::geteuid().as_raw());
            if self.is_link {
                Some("is a link".to_owned())
            } else if owner != me && owner != 0 {
                Some(format!("belongs to uid {owner}, you are uid {me}"))
            } else {
                let others_write = self.metadata.mode() & 0o022 != 0;
                others_write.then(|| "can be written by others".to_owned())
            }
        }

        pub fn read(&self) -> io::Result<String> {
            match self.metadata.is_file() {
                true => read(&self.file),
                false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
            }
        }
    }

    pub fn url(dir: &Opened, path: &Path) -> (Option<String>, Directory) {
        let found = || {
            let file = dir.below("operator.url")?;
            let why = dir.why_foreign().map(|why| format!("{} {why}", path.display()));
            let file_why =
                || Some(format!("{} {}", path.join("operator.url").display(), file.why_foreign()?));
            Ok::<_, io::Error>((file.read()?, why.or_else(file_why)))
        };
        match found() {
            Ok((url, why)) => (Some(url), why.map_or(Directory::Own, Directory::Foreign)),
            Err(_) => (None, Directory::Own),
        }
    }

    pub fn token(dir: &Opened) -> io::Result<String> {
        let token = dir.below("operator.token")?;
        // In a directory of another user, a link or a file of another owner may point to a secret of the caller. A link
        // to the directory may be another user's, even if its target is not.
        let is_its_own = !token.is_link && !dir.is_link && token.metadata.uid() == dir.metadata.uid();
        if dir.why_foreign().is_some() && !is_its_own {
            let cure = "it or its directory is a link, or its owner differs from the directory's; to use it, name the directory with --data";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, cure));
        }
        token.read()
    }
}

/// Owners are not checked on this platform: only the directory's own token is sent to its URL.
#[cfg(not(unix))]
mod usual {
    use super::{Directory, Path, PathBuf, io, read_small};

    /// A path; files are opened on each read.
    #[derive(Debug)]
    pub struct Opened(PathBuf);

    impl Opened {
        pub fn directory(path: &Path) -> io::Result<Self> {
            std::fs::metadata(path).map(|_| Self(path.to_owned()))
        }

        pub fn below(&self, name: &str) -> io::Result<Self> {
            Ok(Self(self.0.join(name)))
        }

        pub fn read(&self) -> io::Result<String> {
            read_small(&self.0)
        }
    }

    pub fn url(dir: &Opened, path: &Path) -> (Option<String>, Directory) {
        let why = format!("the owner of {} cannot be determined on this system", path.display());
        (read_small(&dir.0.join("operator.url")).ok(), Directory::Foreign(why))
    }

    pub fn token(dir: &Opened) -> io::Result<String> {
        read_small(&dir.0.join("operator.token"))
    }
}
