//! A data directory with records, for tests of exports and of damage.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use notbefore_core::{Actor, Settings};
use notbefore_engine::{Command, Engine, EngineSettings, Idempotency, Request};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::data_dir::DataDir;
use notbefore_service::driver::NoCommand;
use notbefore_service::transfer::export::{self, ExportError, ExportOptions, SEND_TIMEOUT};
use notbefore_service::view::Views;
use notbefore_service::{runtime, tokens};
use notbefore_store::Store;
use tokio::sync::mpsc;

/// Creates a data directory, runs the commands with the first token, and closes it.
pub async fn make(path: &Path, commands: Vec<Command>) {
    let dir = DataDir::prepare(path).unwrap();
    let store: Arc<dyn Store> = Arc::new(dir.open_store().unwrap());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    tokens::ensure_first(&*store, &dir, None, tokens::LostToken::Replace, clock.now()).await.unwrap();
    let settings = EngineSettings { domain: Settings::default(), node: "test".into() };
    let revision = store.snapshot().await.unwrap().revision();
    let (engine, effects) = Engine::new(settings, Vec::new(), revision, clock.now()).unwrap();
    let views = Arc::new(Views::new(false));
    let engine = runtime::start(engine, effects, store, revision, views, clock, Arc::new(NoCommand));
    for (number, command) in commands.into_iter().enumerate() {
        let key = format!("command-{number}");
        let idempotency = Idempotency { principal: "root".into(), key: key.clone(), hash: key };
        let by = Actor::Token("root".into());
        engine.ask(Request { idempotency: Some(idempotency), ..Request::new(by, command) }).await.unwrap();
    }
    engine.close().await;
}

/// The text of an export with this time.
pub async fn exported(store: &dyn Store, at: Timestamp) -> Result<String, ExportError> {
    let snapshot = store.snapshot().await?;
    let (chunks, mut taken) = mpsc::channel(1);
    let options = ExportOptions { tokens: true, send_timeout: SEND_TIMEOUT };
    let export = tokio::spawn(export::export(snapshot, options, at, chunks));
    let mut text = Vec::new();
    while let Some(chunk) = taken.recv().await {
        text.extend(chunk);
    }
    export.await.unwrap()?;
    Ok(String::from_utf8(text).unwrap())
}
