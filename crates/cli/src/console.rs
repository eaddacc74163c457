//! `notbefore console`: a link that opens the console, signed in.

use anyhow::Result;
use notbefore_wire::operator::session::SignInLink;
use serde_json::json;

use crate::args::Output;
use crate::client::Client;
use crate::output;

pub fn run(client: &Client, output: Output) -> Result<()> {
    let SignInLink { code, expires_at } = client.post_empty("/v1/session/link")?;
    // The code is in the fragment, which browsers send to no server and proxies do not log.
    let url = format!("{}/#code={code}", client.url());
    output.answer(&json!({ "url": url, "expires_at": expires_at }), |_| {
        output::line(&url)?;
        output::eprint("the link works once, within five minutes");
        Ok(())
    })
}
