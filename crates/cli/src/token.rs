//! `notbefore token …`

use anyhow::{Context, Result, anyhow};
use notbefore_wire::operator::Role;
use notbefore_wire::operator::session::Session;
use notbefore_wire::operator::tokens::{CreateToken, Grant, NewToken, Token};

use crate::args::{self, ConnectionArgs, Output};
use crate::client::{Client, encode};
use crate::confirm::{self, Decision, Question};
use crate::exit::UsageError;
use crate::output::{self, or_dash};
use crate::table::{Colour, Column};
use crate::{fleet_apply, time};

pub fn run(reach: &ConnectionArgs, verb: args::Token, output: Output) -> Result<()> {
    let client = || Client::find(reach);
    match verb {
        #[cfg(unix)]
        args::Token::Init(init) => create_in_cluster(*init, output),
        args::Token::Create { name, role, on, grant, expires } => {
            let expires_at = expires.map(|span| time::now().checked_add(span)).transpose()?;
            let grants = grants(role, on, grant)?;
            let made: NewToken = client()?.post("/v1/tokens", &CreateToken { name, grants, expires_at })?;
            let name = &made.token.name;
            output.answer(&made, announced).with_context(|| {
                format!(
                    "token {name} is created, but its secret is not printed, and is lost: run 'notbefore token revoke {name}', \
                     then create it again"
                )
            })?;
            made.empty_paths.iter().for_each(|path| warn_of_empty_path(path));
            Ok(())
        }
        args::Token::List => {
            let tokens: Vec<Token> = client()?.list("/v1/tokens", &[])?;
            output::text(&output.list(&tokens, &columns(), "no tokens")?)
        }
        args::Token::Show => output.answer(&client()?.get::<Session>("/v1/session")?, |session| {
            let expires = session.expires_at.map_or_else(|| "never".to_owned(), time::from_now);
            output::line(&session.token)?;
            output::fields::<8>(&[("roles", granted(&session.grants)), ("expires", expires)])
        }),
        args::Token::Revoke { name, confirmation } => {
            let client = client()?;
            let question = Question::optional("Revoke it?", "nothing was revoked");
            let plan = || named(&client, &name);
            let revision = match confirm::show_and_ask(&confirmation, output, question, plan, revoked)? {
                Decision::DryRun => return Ok(()),
                Decision::Proceed(plan) => plan.map(|token| token.revision),
            };
            client
                .delete_at::<()>(&format!("/v1/tokens/{}", encode(&name)), revision)
                .map_err(fleet_apply::explain_conflict)?;
            let done = format!("revoked {name}: requests with it are refused");
            output.answer_change(&serde_json::json!({ "revoked": name }), |_| output::line(&done))
        }
    }
}

/// Creates the first token of a cluster.
#[cfg(unix)]
fn create_in_cluster(init: args::TokenInit, output: Output) -> Result<()> {
    use notbefore_service::cluster::joined::Claimant;
    use notbefore_service::tokens;
    let args::TokenInit { file, etcd } = init;
    let Some((runtime, store)) = etcd.connect(Claimant::Node)? else {
        let cure = "name etcd's members with --etcd URL,URL,URL; a service without etcd creates its first token by itself";
        return Err(UsageError(cure.to_owned()).into());
    };
    runtime.block_on(tokens::create_in_cluster(&*store, &file, time::now()))?;
    let (name, path) = (tokens::ROOT, file.display());
    let result = serde_json::json!({ "token": name, "file": path.to_string() });
    output.answer(&result, |_| {
        output::line(&format!("created the token {name} in etcd, and its secret in {path}"))
    })
}

fn named(client: &Client, name: &str) -> Result<Token> {
    let tokens: Vec<Token> = client.list("/v1/tokens", &[])?;
    let found = tokens.into_iter().find(|token| token.name.eq_ignore_ascii_case(name));
    let cure = "see 'notbefore token list' (unknown_token)";
    found.ok_or_else(|| anyhow!("unknown token {name}; {cure}"))
}

/// Text of the plan of a revocation.
fn revoked(token: &Token) -> Vec<String> {
    let used = match token.last_used_at {
        Some(at) => time::from_now(at),
        None => "not since the service started".to_owned(),
    };
    vec![
        format!("token {} is revoked: requests are refused and its streams end", token.name),
        format!("  roles      {}", granted(&token.grants)),
        format!("  last used  {used}"),
    ]
}

/// Grants from `--role` with `--on`, and from `--grant`.
fn grants(role: Option<Role>, on: Vec<String>, pairs: Vec<(Role, String)>) -> Result<Vec<Grant>> {
    let paths = match (&role, on.is_empty()) {
        // The default path is `/` for operators only; for other roles it is rarely intended.
        (Some(Role::Operator), true) => vec!["/".to_owned()],
        (Some(role), true) => {
            let cure = "--on subscription/group, or --on / for everywhere";
            return Err(UsageError(format!("the role {role} needs a path: {cure}")).into());
        }
        (Some(_), false) | (None, _) => on,
    };
    let mut grants: Vec<Grant> = pairs.into_iter().map(|(role, path)| Grant { role, path }).collect();
    if let Some(role) = role {
        grants.extend(paths.into_iter().map(|path| Grant { role: role.clone(), path }));
    }
    Ok(grants)
}

/// Grants as text.
pub fn granted(grants: &[Grant]) -> String {
    let one = |grant: &Grant| match grant.path == "/" {
        true => format!("{} everywhere", grant.role),
        false => format!("{} on {}", grant.role, grant.path),
    };
    grants.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn announced(made: &NewToken) -> Result<()> {
    let token = &made.token;
    let ends = token.expires_at.map(|at| format!(", expires {}", time::from_now(at)));
    let (may, ends) = (granted(&token.grants), ends.unwrap_or_default());
    output::line(&format!("token {}: {may}{ends}", token.name))?;
    output::line(&made.secret)?;
    output::line(
        "the secret is shown only once: store it, and pass it in NOTBEFORE_TOKEN or in a file named by NOTBEFORE_TOKEN_FILE",
    )
}

fn warn_of_empty_path(path: &str) {
    let cure =
        "'notbefore vm list' shows the paths of VMs; if it is misspelt, revoke the token and create another";
    output::eprint(&format!("notbefore: there is nothing on {path} yet; {cure}"));
}

fn columns() -> [Column<'static, Token>; 6] {
    type Of = Column<'static, Token>;
    [
        Of::new("TOKEN", &|token| token.name.clone()),
        Of::text("ROLES", &|token| granted(&token.grants)),
        Of::optional("CREATED", &|token| time::from_now(token.created_at)),
        Of::optional("BY", &|token| or_dash(token.created_by.as_deref())),
        Of::new("EXPIRES", &|token| match token.expires_at.map(time::from_now) {
            Some(when) if token.expired => format!("expired {when}"),
            Some(when) => when,
            None => "never".to_owned(),
        })
        .coloured(&|token| token.expired.then_some(Colour::Yellow)),
        Of::new("LAST USED", &|token| or_dash(token.last_used_at.map(time::from_now).as_deref())),
    ]
}
