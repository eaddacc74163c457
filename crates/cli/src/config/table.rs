//! The macro behind [`settings!`](crate::config::settings). From one list of settings it generates the structs, the
//! function that reads them, and the tables for `notbefore_settings` and the documentation.

/// See the top of `settings.rs`.
macro_rules! settings {
    ($(
        #[doc = $title:literal]
        $section:literal $field:ident: $struct:ident {
            $(
                $(#[doc = $help:literal])+
                $name:ident: $type:ty = $default:expr, $kind:expr, $flag:expr;
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

        /// All settings, in display order.
        pub const GROUPS: &[&Group] = &[$(
            &Group {
                path: $section,
                title: $title,
                keys: &[$(
                    Key { name: stringify!($name), default: "", what: concat!($($help),+), flag: $flag },
                )*],
            },
        )+];

        impl Settings {
            pub fn read(reader: &mut Reader<'_>) -> Self {
                Self {
                    $( $field: $struct {
                        $( $name: {
                            let key = concat!($section, ".", stringify!($name));
                            reader.recorded_setting(key.trim_start_matches('.'), &$kind, $default)
                        }, )*
                    }, )+
                }
            }
        }
    };
}

pub(crate) use settings;
