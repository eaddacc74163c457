//! Arguments of `notbefore token` and its subcommands.

use std::time::Duration;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use notbefore_wire::operator::Role;

use super::{ConfirmArgs, word};
use crate::time::parse_span;

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Create a token; its secret is shown only once
    #[command(after_help = include_str!("help/token_create.txt").trim_end())]
    Create {
        /// Token name, shown in the audit trail
        name: String,
        /// Role
        #[arg(long, required_unless_present = "grant", ignore_case = true, value_parser = word!(Role))]
        role: Option<Role>,
        /// Path of the role, with everything below it: subscription[/group[/scope]], or / for everywhere; may be
        /// repeated
        #[arg(long, value_name = "PATH", requires = "role", value_parser = parse_path)]
        on: Vec<String>,
        /// Another role and its path; may be repeated
        #[arg(long, value_name = "ROLE:PATH", value_parser = parse_grant)]
        grant: Vec<(Role, String)>,
        /// Lifetime of the token [default: until revoked]
        #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_span)]
        expires: Option<Duration>,
    },
    /// Create the first token of a cluster in etcd before its nodes start, and write it to a file
    #[cfg(unix)]
    #[command(after_help = include_str!("help/token_init.txt").trim_end())]
    Init(Box<super::TokenInit>),
    /// List tokens with their roles and last use since the service started
    List,
    /// Show the token that this command uses, and its roles
    Show,
    /// Revoke a token: requests with it are refused from then on
    #[command(
        after_help = "At a terminal it shows the token's roles and asks for confirmation; without a terminal it does not ask."
    )]
    Revoke {
        /// Token name
        name: String,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

fn parse_grant(text: &str) -> Result<(Role, String), String> {
    let (role, path) =
        text.split_once(':').ok_or("write ROLE:PATH, for example tenant:acme/shop or viewer:/")?;
    match Role::parse_ignoring_case(role) {
        Role::Unknown(role) => {
            let roles: Vec<&str> = Role::ALL.iter().map(Role::as_str).collect();
            Err(format!("role {role:?} is not one of {}", roles.join(", ")))
        }
        role @ (Role::Operator | Role::Tenant | Role::Viewer) => Ok((role, parse_path(path)?)),
    }
}

/// Refuses an empty path: it may be an unset shell variable, and must not mean everywhere.
fn parse_path(text: &str) -> Result<String, String> {
    let cure = "write a path, for example acme/shop, or / for everywhere";
    if text.is_empty() { Err(cure.to_owned()) } else { Ok(text.to_owned()) }
}
