//! Structs of numbers that can be added.

/// Defines a struct whose fields can be added, and the sum of two of them.
macro_rules! counts {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl std::ops::Add for $name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field,)+ }
            }
        }
    };
}

pub(crate) use counts;
