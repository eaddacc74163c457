//! Shell completion: the scripts, and names of VMs, hosts, events, operations and scopes of the service, and of events of the
//! agent.
//!
//! The program contains the scripts as files, `crates/cli/completions`. [`generate`] writes them from the clap command, so
//! that only tests link `clap_complete`; on Windows, whose commands are others, the program does. A script asks
//! `notbefore complete-names` for names. The service is the one of the environment or of `./notbefore-data`, the agent the
//! one of this machine. If it does not answer at once, nothing is offered.

#[cfg(any(test, windows))]
mod generate;

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use notbefore_wire::operator::{PAGE_MAX, Page};
use serde_json::Value;

use crate::args::{ConnectionArgs, NameKind, Shell};
use crate::client::Client;
use crate::{agent, output};

/// Prints the completion script of a shell.
pub fn print_script(shell: Shell) -> Result<()> {
    #[cfg(unix)]
    let script = contained(shell);
    #[cfg(windows)]
    let script = generate::script(shell);
    output::data(script.as_bytes())
}

/// The script that the program contains.
#[cfg(unix)]
fn contained(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("../completions/notbefore.bash"),
        Shell::Elvish => include_str!("../completions/notbefore.elvish"),
        Shell::Fish => include_str!("../completions/notbefore.fish"),
        Shell::Power => include_str!("../completions/notbefore.powershell"),
        Shell::Zsh => include_str!("../completions/notbefore.zsh"),
    }
}

/// Prints the first names of a kind, a line each; nothing if the service does not answer in time.
pub fn print_names(reach: ConnectionArgs, kind: NameKind, within: Duration) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(load(&reach, kind)));
    match receiver.recv_timeout(within) {
        Ok(Ok(names)) => output::lines(&names),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

fn load(reach: &ConnectionArgs, kind: NameKind) -> Result<Vec<String>> {
    let (list, field) = match kind {
        NameKind::Vms => ("vms", "name"),
        NameKind::Hosts => ("hosts", "host"),
        NameKind::Events => ("events", "id"),
        NameKind::Operations => ("operations", "id"),
        NameKind::Scopes => ("scopes", "path"),
        NameKind::AgentEvents => return agent::event_ids(),
        NameKind::AgentPastEvents => return agent::past_event_ids(),
    };
    let page: Page<Value> = Client::find(reach)?.get(&format!("/v1/{list}?limit={PAGE_MAX}"))?;
    let mut names: Vec<String> =
        page.items.iter().filter_map(|item| item[field].as_str()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::{CommandFactory, ValueEnum};

    use super::*;
    use crate::args::Args;

    #[test]
    fn scripts_are_current() {
        for shell in Shell::value_variants() {
            let made = generate::script(*shell);
            let name = shell.to_possible_value().unwrap().get_name().to_owned();
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("completions/notbefore.{name}"));
            if std::env::var_os("NOTBEFORE_WRITE").is_some() {
                fs::write(file, made).unwrap();
                continue;
            }
            let is_current = fs::read_to_string(&file).unwrap() == made && contained(*shell) == made;
            let cure = "NOTBEFORE_WRITE=1 cargo test -p notbefore --lib completion:: rewrites it";
            assert!(is_current, "{} is not as the commands are: {cure}", file.display());
        }
    }

    #[test]
    fn completions_cover_every_command() {
        for shell in Shell::value_variants() {
            let script = contained(*shell);
            for name in crate::manual::visible_commands(&Args::command(), &[]) {
                let last = name.rsplit('-').next().unwrap();
                assert!(script.contains(last), "{shell:?}: no {name}");
            }
            // Completions do not offer hidden commands.
            for name in ["exec-keeper", "rehearse-keeper", "uninstall"] {
                assert!(!script.contains(name), "{shell:?} offers {name}");
            }
        }
    }
}
