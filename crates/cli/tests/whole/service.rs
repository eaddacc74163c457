//! Tests that need nothing but the binary, a module for each thing that is tried.

mod agent;
mod agent_events;
mod bad_input;
mod clock;
mod config;
mod damage;
mod delivery;
mod disk;
mod exec;
mod exit_codes;
mod fleet;
mod floods;
mod formats;
mod guest_cli;
mod host_starts;
mod hosts;
mod operator_tls;
mod operators;
mod pace;
mod plans;
mod roles;
mod scopes;
mod token_destination;
mod transcripts;
mod transfer;
mod whole_event;
