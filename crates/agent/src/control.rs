//! Commands to the running agent: reload, retry, status. One request per connection and its answers, each a line of
//! JSON. There is one answer, unless the caller waits for the outcome of a retry: then facts follow, and the outcome.
//!
//! Who may command the agent can run commands as its user, so the same rule holds as for the state directory: root and
//! the agent's user. On Unix the commands come by the socket `control` in that directory (`control/unix.rs`), on Windows
//! by a named pipe that administrators can open (`control/windows.rs`). The status server takes no commands: every
//! local user can connect to it. A dry run has no state directory and takes no commands.

#[cfg(unix)]
#[path = "control/unix.rs"]
mod transport;
#[cfg(windows)]
#[path = "control/windows.rs"]
mod transport;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, mpsc};

use crate::overview::Overview;
use crate::signals::status::Events;
use crate::trust::Untrusted;
pub use transport::Listener;

/// Longest request; the id of an event is the only part that varies.
const REQUEST_BYTES_MAX: u64 = 4 * 1024;
/// Longest answer: the status with the most events that an agent tracks.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Clients at a time. Each is root or the agent's user; more than a few are a script gone wrong.
const CLIENTS_MAX: usize = 16;
/// Time for a client to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a request and its first answer. A reload that writes to a hanging disk takes three seconds.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Answers that a caller has not read yet. One that reads none for this long is dropped.
const ANSWERS_MAX: usize = 64;
/// Pause after a connection that could not be accepted.
const ACCEPT_REST: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Read the configuration again.
    Reload,
    /// Read the configuration again, and retry what failed of an event. `event` is its id, or the beginning of one.
    /// With `wait`, [`Answer::Retried`] is followed by each [`Answer::Fact`] and by [`Answer::Outcome`].
    Retry {
        event: String,
        wait: bool,
    },
    Status,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Reloaded(Reloaded),
    /// The configuration has mistakes, with file and line, and is not applied.
    Mistakes(String),
    Retried(Retried),
    /// What happened to the event since.
    Fact(FactText),
    /// How the retry ended. None if the event is over and nothing is left to do.
    Outcome(Option<Box<Overview>>),
    Status(Events),
    /// Not carried out; why, and what to do.
    Refused(String),
}

/// The configuration file, as applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedFile {
    /// Its path.
    pub file: String,
    /// Number of rules.
    pub rules: usize,
    /// Whether settings have changed that need a restart.
    pub restart_needed: bool,
    /// Steps whose program is missing, and why.
    pub missing_programs: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    #[serde(flatten)]
    pub file: AppliedFile,
    /// What the new rules caused at once.
    pub facts: Vec<FactText>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    pub event: String,
    pub file: AppliedFile,
    /// What the retry caused at once.
    pub facts: Vec<FactText>,
}

/// A fact about an event, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactText {
    pub event: String,
    pub text: String,
}

/// A request with the place for its answers.
pub type Command = (Request, mpsc::Sender<Answer>);

/// Takes commands until the runtime ends, each connection in a task of its own: a silent client delays no other, unless
/// there are `CLIENTS_MAX` of them.
pub async fn serve(mut listener: Listener, commands: mpsc::Sender<Command>) {
    let slots = Arc::new(Semaphore::new(CLIENTS_MAX));
    // The semaphore is never closed.
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match listener.accept().await {
            Ok(stream) => {
                let commands = commands.clone();
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let exchanged = limited(exchange(&mut stream, &commands)).await;
                    // The loop limits the callers that wait.
                    drop(slot);
                    let followed = match exchanged {
                        Ok(Some(answers)) => follow(&mut stream, answers).await,
                        Ok(None) => Ok(()),
                        Err(error) => Err(error),
                    };
                    if let Err(error) = followed {
                        tracing::debug!("a command was not answered: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::debug!("cannot accept a command: {error}");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

async fn limited<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(EXCHANGE_TIMEOUT, work).await?
}

/// Reads a request and sends the first answer. Returns the further ones, if there can be any.
async fn exchange(
    stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>,
    commands: &mpsc::Sender<Command>,
) -> io::Result<Option<mpsc::Receiver<Answer>>> {
    let mut line = String::new();
    let mut request = (&mut *stream).take(REQUEST_BYTES_MAX);
    tokio::time::timeout(REQUEST_TIMEOUT, request.read_line(&mut line)).await??;
    let Ok(request) = serde_json::from_str(&line) else {
        let unknown = Answer::Refused(format!(
            "the running agent, version {}, does not know this command; restart it to use the installed version",
            env!("CARGO_PKG_VERSION")
        ));
        return send(stream, &unknown).await.map(|()| None);
    };
    let (reply, mut answers) = mpsc::channel(ANSWERS_MAX);
    commands.send((request, reply)).await.map_err(io::Error::other)?;
    let first = answers.recv().await.ok_or_else(|| io::Error::other("the agent stops"))?;
    send(stream, &first).await.map(|()| Some(answers))
}

/// Sends the further answers, until there are none or the caller leaves.
async fn follow(
    stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>,
    mut answers: mpsc::Receiver<Answer>,
) -> io::Result<()> {
    let mut more = [0];
    loop {
        let answer = tokio::select! {
            biased;
            answer = answers.recv() => answer,
            // A caller that waits sends nothing more.
            _ = stream.read(&mut more) => None,
        };
        let Some(answer) = answer else { return Ok(()) };
        limited(send(stream, &answer)).await?;
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(message).map_err(io::Error::other)?;
    stream.write_all(format!("{text}\n").as_bytes()).await?;
    stream.flush().await
}

/// Why a command got no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No agent takes commands there.
    #[error(
        "no agent takes commands in {state}; start it, or name its state directory with --state (a dry run takes none)"
    )]
    NotRunning { state: String },
    /// Only root and the agent's user may command it.
    #[error(
        "this user may not command the agent: run this as root, or as the agent's user, who owns {state}"
    )]
    Denied { state: String },
    /// Another user could have written there; why, and what to do.
    #[error("{0}")]
    Untrusted(String),
    #[error("the agent gave no answer ({0}); look at 'notbefore agent status' and the agent's log")]
    Unanswered(io::Error),
    /// The caller waits for an outcome.
    #[error("the agent stopped before the outcome; the next agent goes on: look at 'notbefore agent status'")]
    Abandoned,
}

/// Sends a request to the agent that uses this state directory.
pub async fn ask(state: &Path, request: &Request) -> Result<Answer, AskError> {
    begin(state, request).await.map(|(answer, _)| answer)
}

/// The answers of a running agent after the first one.
pub struct Answers(BufReader<transport::Client>);

impl Answers {
    /// The next answer, however long it takes.
    pub async fn next(&mut self) -> Result<Answer, AskError> {
        receive(&mut self.0).await.map_err(|_| AskError::Abandoned)
    }
}

/// Like [`ask`], for a request with several answers.
pub async fn begin(state: &Path, request: &Request) -> Result<(Answer, Answers), AskError> {
    let shown = || state.display().to_string();
    let stream = transport::connect(state).await.map_err(|error| {
        match error.kind() == io::ErrorKind::PermissionDenied {
            true if Untrusted::is_for_all_users(&error) => AskError::Untrusted(error.to_string()),
            true => AskError::Denied { state: shown() },
            false => AskError::NotRunning { state: shown() },
        }
    })?;
    let mut stream = BufReader::new(stream);
    let exchanged = limited(async {
        send(&mut stream, request).await?;
        receive(&mut stream).await
    });
    let answer = exchanged.await.map_err(AskError::Unanswered)?;
    Ok((answer, Answers(stream)))
}

async fn receive(stream: &mut BufReader<transport::Client>) -> io::Result<Answer> {
    let mut line = String::new();
    stream.take(ANSWER_BYTES_MAX).read_line(&mut line).await?;
    // An agent that does not accept this user closes the connection.
    serde_json::from_str(&line).map_err(|_| io::Error::other("it closed the connection"))
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::path::PathBuf;

    #[cfg(unix)]
    use tokio::task::JoinHandle;

    use super::*;

    /// The answer to these bytes of a client, if the loop answers every request so.
    async fn answer_to(bytes: &[u8]) -> Answer {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let (commands, mut received) = mpsc::channel::<Command>(1);
        let serving = tokio::spawn(async move {
            let mut stream = BufReader::new(server);
            exchange(&mut stream, &commands).await.map(|_| ())
        });
        tokio::spawn(async move {
            while let Some((request, reply)) = received.recv().await {
                let _ = reply.send(Answer::Refused(format!("{request:?}"))).await;
            }
        });
        client.write_all(bytes).await.unwrap();
        let mut line = String::new();
        BufReader::new(client).read_line(&mut line).await.unwrap();
        serving.await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[tokio::test]
    async fn request_line_is_answered() {
        let retry = Request::Retry { event: "A".to_owned(), wait: false };
        for request in [Request::Reload, Request::Status, retry] {
            let line = serde_json::to_string(&request).unwrap() + "\n";
            let Answer::Refused(text) = answer_to(line.as_bytes()).await else { panic!("{request:?}") };
            assert_eq!(text, format!("{request:?}"));
        }
    }

    /// Serves commands in a new state directory below `dir`. Returns that directory and the commands as the agent gets them.
    #[cfg(unix)]
    fn served(dir: &Path) -> (PathBuf, mpsc::Receiver<Command>, JoinHandle<()>) {
        let state = dir.join("state");
        let vm = crate::vm_id::VmId::default();
        let (journal, _) = crate::journal::Journal::open(&state, &vm, jiff::Timestamp::UNIX_EPOCH).unwrap();
        let (commands, received) = mpsc::channel(1);
        let serving = tokio::spawn(serve(Listener::open(&journal).unwrap(), commands));
        (state, received, serving)
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn silent_clients_delay_no_command() {
        let dir = tempfile::tempdir().unwrap();
        let (state, mut received, serving) = served(dir.path());
        tokio::spawn(async move {
            while let Some((request, reply)) = received.recv().await {
                let _ = reply.send(Answer::Refused(format!("{request:?}"))).await;
            }
        });
        let mut silent = Vec::new();
        for _ in 0..CLIENTS_MAX - 1 {
            silent.push(transport::connect(&state).await.unwrap());
        }
        // One after the other, they would take longer than a client waits.
        let asked = ask(&state, &Request::Reload).await;
        assert!(matches!(asked, Ok(Answer::Refused(_))), "{asked:?}");
        // The agent closes silent connections, and then takes others again.
        silent.push(transport::connect(&state).await.unwrap());
        for mut client in silent {
            assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        }
        assert!(ask(&state, &Request::Reload).await.is_ok());
        serving.abort();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn callers_that_wait_get_every_answer_and_delay_no_command() {
        let dir = tempfile::tempdir().unwrap();
        let (state, mut received, serving) = served(dir.path());
        let fact =
            |number: usize| Answer::Fact(FactText { event: "A".to_owned(), text: format!("fact {number}") });
        let retry = Request::Retry { event: "A".to_owned(), wait: true };
        let mut callers = Vec::new();
        // More than there are slots.
        for number in 0..=CLIENTS_MAX {
            let answering = async {
                let (_, reply) = received.recv().await.unwrap();
                reply.send(fact(number)).await.unwrap();
                reply
            };
            // A caller without a slot is never taken: the test fails then, and does not hang.
            let taken = async { tokio::join!(begin(&state, &retry), answering) };
            let (begun, command) = tokio::time::timeout(2 * EXCHANGE_TIMEOUT, taken).await.unwrap();
            callers.push((begun.unwrap().1, command));
        }
        for (answers, reply) in &mut callers {
            reply.send(fact(0)).await.unwrap();
            assert!(matches!(answers.next().await, Ok(Answer::Fact(_))));
        }
        let (mut answers, reply) = callers.pop().unwrap();
        reply.send(Answer::Outcome(None)).await.unwrap();
        drop(reply);
        assert!(matches!(answers.next().await, Ok(Answer::Outcome(None))));
        assert!(matches!(answers.next().await, Err(AskError::Abandoned)));
        // The loop learns that a caller has left.
        let (answers, reply) = callers.pop().unwrap();
        drop(answers);
        tokio::time::timeout(EXCHANGE_TIMEOUT, reply.closed()).await.unwrap();
        serving.abort();
    }

    #[tokio::test]
    async fn unknown_and_oversized_requests_are_refused() {
        let long = format!("{{\"retry\":{{\"event\":\"{}\"}}}}\n", "x".repeat(10_000));
        for bytes in ["\"explode\"\n", "\n", "{}\n", &long] {
            let Answer::Refused(text) = answer_to(bytes.as_bytes()).await else { panic!("{bytes}") };
            assert!(text.contains("does not know this command"), "{text}");
        }
    }
}
