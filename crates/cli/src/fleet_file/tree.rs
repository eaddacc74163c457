//! The fleet file as a tree, to report all its mistakes at once.
//!
//! The typed parser stops at the first mistake of form: an unknown key, a number that is none. Then the file is read
//! again as a tree of values with their lines. [`fleet`] walks it, records every mistake and fills in defaults, so that
//! names, addresses and kinds are checked too.

use std::fmt;

use notbefore_wire::operator::ScopeKind;
use notbefore_wire::text::shorten;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::{At, File, Mistakes, Scope, Vm};
use crate::suggest::nearest;

/// Keys of the whole file, of a scope and of a VM.
const FILE_KEYS: &[&str] = &["scopes"];
pub(super) const SCOPE_KEYS: &[&str] = &[
    "name",
    "kind",
    "subscription",
    "group",
    "automatically_approve_reboot",
    "automatically_approve_redeploy",
    "terminate_notification",
    "vms",
];
pub(super) const VM_KEYS: &[&str] =
    &["name", "update_domain", "fault_domain", "zone", "host", "spot", "addresses", "instance"];

/// Longest value in a message.
const VALUE_CHARS_MAX: usize = 60;

#[derive(Debug)]
pub(super) enum Tree {
    /// Neither an array nor an object.
    Scalar(Json),
    List(Vec<At<Tree>>),
    Map(Vec<(At<String>, At<Tree>)>),
}

impl Tree {
    fn json(&self) -> Json {
        match self {
            Tree::Scalar(value) => value.clone(),
            Tree::List(items) => items.iter().map(|item| item.value.json()).collect(),
            Tree::Map(entries) => {
                entries.iter().map(|(key, tree)| (key.value.clone(), tree.value.json())).collect()
            }
        }
    }

    /// The value in a message.
    fn shown(&self) -> String {
        match self {
            Tree::Scalar(Json::Null) => "nothing".to_owned(),
            Tree::Scalar(value) => shorten(&value.to_string(), VALUE_CHARS_MAX),
            Tree::List(_) => "a list".to_owned(),
            Tree::Map(_) => "a mapping".to_owned(),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Json::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Json::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

/// The fleet, with defaults for what is missing or wrong.
pub(super) fn fleet(tree: &At<Tree>, mistakes: &mut Mistakes) -> File {
    let Some(mut file) = Mapping::read(tree, "a fleet file", FILE_KEYS, mistakes) else {
        return File { scopes: Vec::new() };
    };
    file.needs("scopes", "a list of scopes");
    let scopes = file.list("scopes");
    File { scopes: scopes.iter().filter_map(|tree| scope(tree, mistakes)).collect() }
}

fn scope(tree: &At<Tree>, mistakes: &mut Mistakes) -> Option<Scope> {
    let mut scope = Mapping::read(tree, "a scope", SCOPE_KEYS, mistakes)?;
    scope.needs("name", "the scope's name");
    scope.needs("kind", &ScopeKind::ALL.iter().map(ScopeKind::as_str).collect::<Vec<_>>().join(", "));
    let kind = scope.text("kind");
    let mut read = Scope {
        name: scope.text("name").unwrap_or_default(),
        // Without a kind, that with the fewest rules.
        kind: kind.map_or(At { value: ScopeKind::AvailabilitySet, line: 0 }, |kind| At {
            line: kind.line,
            value: kind.value.into(),
        }),
        subscription: scope.text("subscription").unwrap_or_else(super::default_name),
        group: scope.text("group").unwrap_or_else(super::default_name),
        automatically_approve_reboot: scope.switch("automatically_approve_reboot"),
        automatically_approve_redeploy: scope.switch("automatically_approve_redeploy"),
        terminate_notification: scope.text("terminate_notification"),
        vms: Vec::new(),
    };
    let vms = scope.list("vms");
    read.vms = vms.iter().filter_map(|tree| vm(tree, mistakes)).collect();
    Some(read)
}

fn vm(tree: &At<Tree>, mistakes: &mut Mistakes) -> Option<Vm> {
    let mut vm = Mapping::read(tree, "a VM", VM_KEYS, mistakes)?;
    vm.needs("name", "the VM's name");
    let addresses = vm.list("addresses").iter().filter_map(|tree| vm.text_of("addresses", tree)).collect();
    if let Some(instance) = vm.value("instance")
        && let Err(error) = serde_json::from_value::<Option<super::Instance>>(instance.value.json())
    {
        let what = format!("instance: {}", shorten(&error.to_string(), 4 * VALUE_CHARS_MAX));
        vm.mistakes.add(instance.line, what);
    }
    Some(Vm {
        name: vm.text("name").unwrap_or_default(),
        update_domain: vm.number("update_domain"),
        fault_domain: vm.number("fault_domain"),
        zone: vm.text("zone").map(|zone| zone.value),
        host: vm.text("host").map(|host| host.value),
        spot: vm.switch("spot"),
        addresses,
        instance: None,
    })
}

/// A mapping whose keys are checked.
struct Mapping<'t, 'm> {
    line: u64,
    entries: &'t [(At<String>, At<Tree>)],
    mistakes: &'m mut Mistakes,
}

impl<'t, 'm> Mapping<'t, 'm> {
    fn read(tree: &'t At<Tree>, what: &str, keys: &[&str], mistakes: &'m mut Mistakes) -> Option<Self> {
        let Tree::Map(entries) = &tree.value else {
            let found = tree.value.shown();
            mistakes.add(tree.line, format!("expected {what} with {}, not {found}", keys.join(", ")));
            return None;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !keys.contains(&key.value.as_str())) {
            let shown = shorten(&key.value, VALUE_CHARS_MAX);
            mistakes.add(key.line, format!("unknown key {shown} of {what}; {}", hint(&shown, keys)));
        }
        Some(Self { line: tree.line, entries, mistakes })
    }

    /// The value of a key; none if it is missing or empty.
    fn value(&self, key: &str) -> Option<&'t At<Tree>> {
        let found = self.entries.iter().find(|(known, _)| known.value == key).map(|(_, tree)| tree);
        found.filter(|tree| !matches!(tree.value, Tree::Scalar(Json::Null)))
    }

    fn needs(&mut self, key: &str, expected: &str) {
        if self.value(key).is_none() {
            self.mistakes.add(self.line, format!("{key} is missing; expected {expected}"));
        }
    }

    fn wrong(&mut self, key: &str, expected: &str, tree: &At<Tree>) {
        let found = tree.value.shown();
        self.mistakes.add(tree.line, format!("{key}: expected {expected}, not {found}"));
    }

    fn text(&mut self, key: &str) -> Option<At<String>> {
        self.text_of(key, self.value(key)?)
    }

    fn text_of(&mut self, key: &str, tree: &At<Tree>) -> Option<At<String>> {
        let value = match &tree.value {
            Tree::Scalar(Json::String(text)) => text.clone(),
            // Also a number: `zone: 1`.
            Tree::Scalar(other) => other.to_string(),
            Tree::List(_) | Tree::Map(_) => {
                self.wrong(key, "text", tree);
                return None;
            }
        };
        Some(At { value, line: tree.line })
    }

    fn number(&mut self, key: &str) -> u32 {
        let Some(tree) = self.value(key) else { return 0 };
        let number = match &tree.value {
            Tree::Scalar(value) => value.as_u64().and_then(|number| u32::try_from(number).ok()),
            Tree::List(_) | Tree::Map(_) => None,
        };
        if number.is_none() {
            self.wrong(key, &format!("a whole number from 0 to {}", u32::MAX), tree);
        }
        number.unwrap_or_default()
    }

    fn switch(&mut self, key: &str) -> bool {
        match self.value(key) {
            None => false,
            Some(At { value: Tree::Scalar(Json::Bool(is_on)), .. }) => *is_on,
            Some(tree) => {
                self.wrong(key, "true or false", tree);
                false
            }
        }
    }

    fn list(&mut self, key: &str) -> &'t [At<Tree>] {
        match self.value(key) {
            None => &[],
            Some(At { value: Tree::List(items), .. }) => items,
            Some(tree) => {
                self.wrong(key, "a list", tree);
                &[]
            }
        }
    }
}

/// What to do about an unknown key.
fn hint(unknown: &str, keys: &[&str]) -> String {
    let elsewhere = [("of a scope", SCOPE_KEYS), ("of a VM", VM_KEYS)];
    let elsewhere = elsewhere.iter().find(|(_, keys)| keys.contains(&unknown));
    match (nearest(unknown, keys.iter().copied()), elsewhere) {
        (_, Some((what, _))) => format!("it is a key {what}"),
        (Some(meant), None) => format!("did you mean {meant}?"),
        (None, None) => format!("there are {}", keys.join(", ")),
    }
}
