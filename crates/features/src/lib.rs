//! No code: the union of the features that the workspace's crates ask of their dependencies.
//!
//! Cargo compiles a dependency once for each set of features, and `cargo test -p CRATE` asks only for those of one crate.
//! Each crate has this one as a dev-dependency, and `./dev run` builds it beside the binary. So the service of the first
//! run, the tests of one crate and those of the whole workspace share what is compiled. Release builds do without,
//! but for `./dev bench-fleet`, which runs tests.
//!
//! When a crate asks for a further feature, `tools/features` (part of `./dev test lint`) names the line that is missing in
//! this crate's `Cargo.toml`.
