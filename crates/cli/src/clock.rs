//! `notbefore clock …`

use anyhow::Result;
use notbefore_wire::operator::clock::Clock;

use crate::args::{self, Output};
use crate::client::Client;
use crate::confirm::{self, Decision, Question};
use crate::{output, time};

pub fn run(client: &Client, verb: args::Clock, output: Output) -> Result<()> {
    match verb {
        args::Clock::Show => shown(&client.get("/v1/clock")?, output),
        args::Clock::Accept { confirmation } => {
            let question = Question::optional("Trust the clock?", "nothing was changed");
            let plan = || client.get::<Clock>("/v1/clock");
            if let Decision::DryRun = confirm::show_and_ask(&confirmation, output, question, plan, lines)? {
                return Ok(());
            }
            shown(&client.post("/v1/clock/accept", &())?, output)
        }
    }
}

fn shown(clock: &Clock, output: Output) -> Result<()> {
    output.answer(clock, |clock| output::lines(&lines(clock)))
}

fn lines(clock: &Clock) -> Vec<String> {
    let now = format!("service clock: {}", time::seconds(clock.now));
    let Some(hold) = &clock.hold else { return vec![format!("{now}, trusted")] };
    vec![
        format!("{now}, not trusted since {}: {}", time::seconds(hold.since), hold.reason),
        format!("live events: {}; they start or end only by approval or command, not by time", hold.events),
        "it is trusted again after 5 min without a jump, or with 'notbefore clock accept'".to_owned(),
    ]
}
