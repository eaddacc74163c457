//! What makes [`settings!`](crate::config::settings) work: from one list of settings it makes the structs
//! that hold them, the function that reads them, and the tables that the kernel and the documentation go by.

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

        /// All settings, in the order in which they are shown.
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
            /// Reads every setting.
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
