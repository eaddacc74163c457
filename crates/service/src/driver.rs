//! Who runs the commands of the exec driver: the seam between the engine, which decides that a command runs, and
//! whatever spawns it.
//!
//! The runtime carries out [`notbefore_engine::Effect::Run`] and `Stop` through a [`Driver`]; a [`Report`] brings
//! back how a command ended. The engine asks for each attempt once and waits for its report for as long as it
//! takes, so a driver must report every command that ends by itself, and must not let one run without end.

use notbefore_core::Ending;
use notbefore_engine::{CommandId, DriverReport, DriverRun};

/// Runs commands.
pub trait Driver: Send + Sync {
    /// Runs a command, now or when there is room. It must not block; the report is used when the command has
    /// ended. A command that is ended because the service ends is not reported: it has not failed, and is run
    /// again at the next start.
    fn run(&self, run: DriverRun, report: Report);

    /// Ends a command, or forgets one that was not begun. It need not be reported. One that is not known has
    /// ended by itself.
    fn stop(&self, command: CommandId);
}

/// Where to report how a command ended, once.
pub struct Report {
    id: CommandId,
    to: Box<dyn FnOnce(DriverReport) + Send>,
}

impl Report {
    /// A report of one command, to be given to `to`.
    pub fn new(id: CommandId, to: impl FnOnce(DriverReport) + Send + 'static) -> Self {
        Self { id, to: Box::new(to) }
    }

    /// Says how the command ended.
    pub fn ended(self, ending: Ending) {
        (self.to)(DriverReport { id: self.id, ending });
    }
}

/// The driver of a service that was told no command: whatever is to be run fails and says so. Events that were
/// begun while there was a command can then still be retried once there is one again, or completed by hand.
#[derive(Debug)]
pub struct NoCommand;

impl Driver for NoCommand {
    fn run(&self, _: DriverRun, report: Report) {
        report.ended(Ending::Failed { why: "no command is configured".to_owned() });
    }

    fn stop(&self, _: CommandId) {}
}
