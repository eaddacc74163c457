//! What makes [`settings!`](crate::config::settings) work: from one list of settings it makes the structs
//! that hold them and the table that the file, the environment, the flags and the documentation go by.

use toml::Value as Toml;

use super::Merged;

/// What is known of one setting.
#[derive(Debug)]
pub struct Setting {
    /// The section that it stands in; empty for those before any section.
    pub section: &'static str,
    /// What the section is about.
    pub title: &'static str,
    /// Its name in the section.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// How it is said on the command line, if it is.
    pub flag: Flag,
    /// Whether it is a list.
    pub many: bool,
    /// What a reader should write.
    pub expected: fn() -> String,
    /// Its value where nobody says anything.
    pub default: fn() -> Toml,
    /// Reads an environment variable or a flag.
    pub from_text: fn(&str) -> Result<Toml, String>,
    /// Checks what a file says.
    pub from_toml: fn(&Toml) -> Result<Toml, String>,
}

/// How a setting is said on the command line.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// It is not; file and environment only.
    None,
    /// `--name VALUE`.
    Value(&'static str, &'static str),
    /// `--name`, or `--name=false` to take back what the file says.
    Switch(&'static str),
    /// Several flags, each of which stands for a value: (name, value, what it does).
    Choices(&'static [(&'static str, &'static str, &'static str)]),
    /// One that all commands have.
    Everywhere(&'static str),
}

impl Setting {
    /// `section.name`, as files and messages call it.
    pub fn key(&self) -> String {
        match self.section {
            "" => self.name.to_owned(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// The environment variable.
    pub fn variable(&self) -> String {
        variable(&self.key())
    }

    /// What it does, as a paragraph.
    pub fn help(&self) -> String {
        self.help.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The environment variable of a key or the beginning of those of a section.
pub fn variable(key: &str) -> String {
    format!("NOTBEFORE_{}", key.replace('.', "_").to_ascii_uppercase())
}

/// A type that [`settings!`](crate::config::settings) made.
pub trait FromMerged: Sized {
    /// Takes its values out of what was merged.
    fn from_merged(merged: &Merged) -> Result<Self, String>;
}

/// See the top of `settings.rs`.
macro_rules! settings {
    ($(
        #[doc = $title:literal]
        $section:literal $field:ident: $struct:ident {
            $(
                $(#[doc = $help:literal])+
                $name:ident: $type:ty = $default:expr, $flag:expr;
            )*
        }
    )+) => {
        /// All settings, by section.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $( #[doc = $title] pub $field: $struct, )+
        }

        $(
            #[doc = $title]
            #[derive(Clone, Debug)]
            pub struct $struct {
                $( $(#[doc = $help])+ pub $name: $type, )*
            }
        )+

        /// All settings, in the order in which they are shown.
        pub static SETTINGS: &[Setting] = &[$($(
            Setting {
                section: $section,
                title: $title,
                name: stringify!($name),
                help: concat!($($help),+),
                flag: $flag,
                many: <$type as Value>::MANY,
                expected: <$type as Value>::expected,
                default: || <$type as Value>::to_toml(&$default),
                from_text: |text| <$type as Value>::from_text(text).map(|value| value.to_toml()),
                from_toml: |toml| <$type as Value>::from_toml(toml).map(|value| value.to_toml()),
            },
        )*)+];

        impl FromMerged for Settings {
            fn from_merged(merged: &Merged) -> Result<Self, String> {
                Ok(Self {
                    $( $field: $struct {
                        $( $name: <$type as Value>::from_toml(merged.value($section, stringify!($name)))?, )*
                    }, )+
                })
            }
        }
    };
}

pub(crate) use settings;
