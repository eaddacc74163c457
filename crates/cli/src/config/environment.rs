//! The environment: `NOTBEFORE_` and the key in capitals, `.` written `_`. A list is separated by commas, and an
//! empty variable says nothing.

use super::settings::SETTINGS;
use super::table::{Setting, variable};
use super::{FILE_VARIABLE, Source, Written, suggest};

/// Variables that begin like settings and are for the command line.
const NOT_SETTINGS: [&str; 3] = [FILE_VARIABLE, "NOTBEFORE_OPERATOR", "NOTBEFORE_TOKEN"];

/// What the agent's own settings begin with.
const AGENT: &str = "NOTBEFORE_AGENT_";

/// Reads the variables; adds what is wrong with them to `mistakes`.
pub fn read(environment: &[(String, String)], mistakes: &mut Vec<String>) -> Vec<Written> {
    let mut written = Vec::new();
    for (name, text) in environment {
        let ours = name.starts_with("NOTBEFORE_") && !name.starts_with(AGENT);
        if !ours || NOT_SETTINGS.contains(&name.as_str()) || text.is_empty() {
            continue;
        }
        let setting = SETTINGS.iter().find(|setting| setting.variable() == *name);
        match setting.map(|setting| (setting, (setting.from_text)(text))) {
            Some((setting, Ok(value))) => {
                written.push(Written { setting, value, source: Source::Environment(name.clone()) });
            }
            Some((_, Err(wrong))) => mistakes.push(format!("environment {name}: {wrong}")),
            None => mistakes.extend(refused(name)),
        }
    }
    written
}

/// What is wrong with an unknown variable, if it looks like a setting. Others are somebody else's: Kubernetes, for
/// one, sets `NOTBEFORE_PORT` where a service is called notbefore.
fn refused(name: &str) -> Option<String> {
    let in_section = |setting: &Setting| {
        !setting.section.is_empty() && name.starts_with(&format!("{}_", variable(setting.section)))
    };
    match suggest::variable(name) {
        Some(meant) => Some(format!("environment {name}: there is no such setting; did you mean {meant}?")),
        None if SETTINGS.iter().any(in_section) => {
            Some(format!("environment {name}: there is no such setting; unset it"))
        }
        None => None,
    }
}
