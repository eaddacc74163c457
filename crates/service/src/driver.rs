//! The `Driver` trait: runs the commands that the engine decides on.
//!
//! The runtime carries out [`notbefore_engine::Effect::Run`] and `Stop` through a [`Driver`]. A [`Report`] returns how
//! a command ended. The engine requests each attempt once and waits for its report without a time limit. So a driver
//! must report every command that ends, and must limit the time that a command runs.

use notbefore_core::Ending;
use notbefore_engine::{CommandId, DriverReport, DriverRun};

pub trait Driver: Send + Sync {
    /// Runs a command, immediately or when a slot is free. Must not block. Uses the report when the command has ended.
    /// A command that ends because the service stops is not reported: it has not failed, and runs again after the next
    /// start.
    fn run(&self, run: DriverRun, report: Report);

    /// Stops a command, or drops one that has not started. The report is optional. An unknown command has ended
    /// already.
    fn stop(&self, command: CommandId);
}

/// Reports how a command ended, once.
pub struct Report {
    id: CommandId,
    to: Box<dyn FnOnce(DriverReport) + Send>,
}

impl Report {
    pub fn new(id: CommandId, to: impl FnOnce(DriverReport) + Send + 'static) -> Self {
        Self { id, to: Box::new(to) }
    }

    pub fn ended(self, ending: Ending) {
        (self.to)(DriverReport { id: self.id, ending });
    }
}

/// The driver of a service without a configured command: every command fails. Events that started while a command was
/// configured can be retried once there is one again, or completed by an operator.
#[derive(Debug)]
pub struct NoCommand;

impl Driver for NoCommand {
    fn run(&self, _: DriverRun, report: Report) {
        report.ended(Ending::Failed { why: "no command is configured".to_owned() });
    }

    fn stop(&self, _: CommandId) {}
}
