//! The macros of utoipa that describe the operator API, writing nothing.
//!
//! The program has the description as a file, `docs/openapi.json`. Only who writes or checks that file compiles utoipa, with
//! the feature `describe` of `notbefore-wire` and `notbefore-service`. Without it, both crates name this one `utoipa`, so that
//! handlers and types carry their description in one form.

use proc_macro::TokenStream;

/// In place of the schema of a type.
#[proc_macro_derive(ToSchema, attributes(schema))]
pub fn to_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// In place of the parameters of a query or path.
#[proc_macro_derive(IntoParams, attributes(into_params, param))]
pub fn into_params(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// In place of the description of an operation: the handler, unchanged.
#[proc_macro_attribute]
pub fn path(_: TokenStream, handler: TokenStream) -> TokenStream {
    handler
}
