//! The files of a data directory that the command line reads: the service's URL and its first token.
//!
//! A directory that was named is read as any other. `./notbefore-data` is found by where the caller happens to be, so
//! somebody else may have put it there, or links in it to what the caller can read. It is opened once, and what was
//! opened is judged, so that nobody can exchange it in between.

use std::io;
use std::path::{Path, PathBuf};

use crate::destination::Directory;

/// A URL or a token is much shorter.
const BYTES_MAX: u64 = 64 * 1024;

/// The data directory.
#[derive(Debug)]
pub enum DataFiles {
    /// The caller has named it.
    Named(PathBuf),
    /// It is `./notbefore-data`.
    Usual(PathBuf, io::Result<usual::Opened>),
}

impl DataFiles {
    /// The directory that the caller has named, or else the usual one, opened once for all that is read from it.
    pub fn open(path: PathBuf, is_named: bool) -> Self {
        match is_named {
            true => DataFiles::Named(path),
            false => {
                let opened = usual::Opened::directory(&path);
                DataFiles::Usual(path, opened)
            }
        }
    }

    /// Where a file of it is, for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        let (DataFiles::Named(path) | DataFiles::Usual(path, _)) = self;
        path.join(name)
    }

    /// The URL that the service has left, if there is one, and who vouches for it.
    pub fn url(&self) -> (Option<String>, Directory) {
        match self {
            DataFiles::Named(_) => (read_small(&self.path("operator.url")).ok(), Directory::Named),
            DataFiles::Usual(path, Ok(dir)) => usual::url(dir, path),
            DataFiles::Usual(_, Err(_)) => (None, Directory::Foreign("it cannot be opened".to_owned())),
        }
    }

    /// The service's own token.
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

/// The text of a small file, without what surrounds it.
pub fn read_small(path: &Path) -> io::Result<String> {
    read(std::fs::File::open(path)?)
}

fn read(file: impl io::Read) -> io::Result<String> {
    let text = io::read_to_string(file.take(BYTES_MAX))?;
    Ok(text.trim().to_owned())
}

/// The directory that nobody has named.
#[cfg(unix)]
mod usual {
    use std::fs::{File, Metadata};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{CWD, Mode, OFlags, openat};

    use super::{Directory, Path, io, read};

    /// What was opened.
    #[derive(Debug)]
    pub struct Opened {
        file: File,
        metadata: Metadata,
        is_link: bool,
    }

    impl Opened {
        fn at(dir: impl AsFd, path: &Path, flags: OFlags) -> io::Result<Self> {
            // A pipe that another user has put there must not block.
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let opened = openat(&dir, path, flags | OFlags::NOFOLLOW, Mode::empty());
            let is_link = opened.is_err();
            // A link is followed, and known for one.
            let file = File::from(opened.or_else(|_| openat(&dir, path, flags, Mode::empty()))?);
            Ok(Self { metadata: file.metadata()?, file, is_link })
        }

        pub fn directory(path: &Path) -> io::Result<Self> {
            Self::at(CWD, path, OFlags::PATH | OFlags::DIRECTORY)
        }

        pub fn below(&self, name: &str) -> io::Result<Self> {
            Self::at(&self.file, Path::new(name), OFlags::RDONLY)
        }

        /// Why a user other than the caller and root may have written this.
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
                false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
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
        // A link, or a file of another owner, may be a secret of the caller's that is to be lured away. A link to a
        // directory may be another user's, even if what it leads to is not.
        let is_its_own = !token.is_link && !dir.is_link && token.metadata.uid() == dir.metadata.uid();
        if dir.why_foreign().is_some() && !is_its_own {
            let cure = "it or its directory is a link, or it is not of the directory's owner; name the directory with --data if it is to be used";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, cure));
        }
        token.read()
    }
}

/// No service runs here, and owners are not looked at: only the directory's own token goes to its URL.
#[cfg(not(unix))]
mod usual {
    use super::{Directory, Path, PathBuf, io, read_small};

    /// What is read by its path.
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
        let why = format!("whose {} is cannot be told on this system", path.display());
        (read_small(&dir.0.join("operator.url")).ok(), Directory::Foreign(why))
    }

    pub fn token(dir: &Opened) -> io::Result<String> {
        read_small(&dir.0.join("operator.token"))
    }
}
