//! The nearest known name to one that is not known.

use notbefore_settings::suggest::{alike, best};

use super::settings::SETTINGS;
use super::table::{Flag, Setting};

/// The key or section that was probably meant.
pub fn key(unknown: &str) -> Option<String> {
    let sections = SETTINGS.iter().map(|setting| setting.section).filter(|section| !section.is_empty());
    let sections = sections.map(|section| (alike(unknown, section), section.to_owned()));
    let keys = SETTINGS.iter().map(|setting| (score(unknown, setting), setting.key()));
    best(sections.chain(keys))
}

/// The variable that was probably meant.
pub fn variable(unknown: &str) -> Option<String> {
    // What they all begin with makes no two of them alike.
    let bare = |name: &str| name.strip_prefix("NOTBEFORE_").unwrap_or(name).to_owned();
    let score = |setting: &Setting| alike(&bare(unknown), &bare(&setting.variable()));
    best(SETTINGS.iter().map(|setting| (score(setting), setting.variable())))
}

/// A key is known by its path, by its name in the wrong section, and by its flag.
fn score(unknown: &str, setting: &Setting) -> f64 {
    let name = unknown.rsplit('.').next().unwrap_or(unknown);
    // A little less, so that the same key of two sections is told apart by the section.
    let elsewhere = 0.98;
    let by_flag = match setting.flag {
        Flag::Value(flag, _) | Flag::Switch(flag) => alike(name, flag),
        Flag::Choices(flags) => flags.iter().map(|(flag, ..)| alike(name, flag)).fold(0.0, f64::max),
        Flag::None | Flag::Everywhere(_) => 0.0,
    };
    alike(unknown, &setting.key()).max(elsewhere * alike(name, setting.name)).max(elsewhere * by_flag)
}
