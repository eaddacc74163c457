//! Commands by a named pipe. The default permissions of a pipe let only LocalSystem, administrators and the agent's own
//! account open it for writing. It is not reachable from other machines.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};

use crate::journal::Journal;

/// Longest part of the state directory in the pipe's name; Windows limits the name to 256 characters.
const NAME_CHARACTERS_MAX: usize = 200;
/// Windows error: another client is connected.
const PIPE_BUSY: i32 = 231;
/// Attempts at a busy pipe, and the pause between them.
const BUSY_TRIES: u32 = 20;
const BUSY_REST: Duration = Duration::from_millis(100);

/// The caller's side of a connection.
pub type Client = NamedPipeClient;

pub struct Listener {
    name: String,
    /// Instance for the next client.
    next: NamedPipeServer,
}

impl Listener {
    /// Fails if the name is taken: another process would get the commands.
    pub fn open(journal: &Journal) -> io::Result<Listener> {
        let name = name(journal.state());
        let next = ServerOptions::new().first_pipe_instance(true).create(&name)?;
        Ok(Listener { name, next })
    }

    pub async fn accept(&mut self) -> io::Result<NamedPipeServer> {
        self.next.connect().await?;
        let next = ServerOptions::new().create(&self.name)?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

pub async fn connect(state: &Path) -> io::Result<Client> {
    let name = name(state);
    for _ in 0..BUSY_TRIES {
        match ClientOptions::new().open(&name) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => tokio::time::sleep(BUSY_REST).await,
            outcome => return outcome,
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// The pipe of a state directory.
fn name(state: &Path) -> String {
    let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
    let state = state.to_string_lossy().to_lowercase();
    let words: Vec<char> =
        state.chars().map(|char| if char.is_alphanumeric() { char } else { '-' }).collect();
    let end: String = words[words.len().saturating_sub(NAME_CHARACTERS_MAX)..].iter().collect();
    format!(r"\\.\pipe\notbefore-agent-{end}")
}
