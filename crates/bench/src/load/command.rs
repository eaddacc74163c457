//! The generator by itself: `./dev bench load`, against any server of loopback.

use std::net::SocketAddr;
use std::time::Duration;

use super::generator::Generator;
use super::{Arrivals, Same, Use};
use crate::http;
use crate::process::Cores;
use crate::service::POLL;
use crate::usage;

/// Load at a fixed rate from many source addresses (127.1.0.1 and on), latency counted from when each request
/// should have gone out
#[derive(clap::Args, Debug)]
pub struct LoadArgs {
    /// The server, for example 127.0.0.1:9254
    to: SocketAddr,
    /// How many guests call, each from an address of its own
    #[arg(long, default_value_t = 1_000)]
    guests: usize,
    /// The number of the first of them: 0 calls from 127.1.0.1, 254 from 127.1.1.1
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Requests a second of all of them together
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Instead of a rate: so many requests at a time, the next when one is answered
    #[arg(long, conflicts_with = "rate")]
    in_flight: Option<usize>,
    /// For how long, in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// A connection for each request
    #[arg(long)]
    connection_each: bool,
    /// What is asked for
    #[arg(long, default_value = POLL)]
    target: String,
    /// GET, POST, …
    #[arg(long, default_value = "GET")]
    method: String,
    /// A header besides `Metadata: true`; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// What a POST carries
    #[arg(long, default_value = "")]
    body: String,
    /// The server's process, to tell what CPU time an answer costs it
    #[arg(long)]
    pid: Option<u32>,
}

/// Runs it and prints what came of it.
pub fn run(args: &LoadArgs) -> anyhow::Result<()> {
    anyhow::ensure!(args.to.ip().is_loopback(), "this sends load to loopback only, not to {}", args.to);
    anyhow::ensure!(args.guests > 0 && args.rate > 0.0, "no guests, or none that ask");
    usage::raise_open_files()?;
    Cores::choose()?.stay_on_load()?;
    let mut headers = "Metadata: true\r\n".to_owned();
    for header in
        args.headers.iter().map(String::as_str).chain(args.connection_each.then_some("Connection: close"))
    {
        headers.push_str(header);
        headers.push_str("\r\n");
    }
    let request = http::request(&args.method, &args.target, &headers, &args.body);
    let use_ = if args.connection_each { Use::ConnectionEach } else { Use::KeepAlive };
    let arrivals = match args.in_flight {
        Some(in_flight) => Arrivals::Closed { in_flight: in_flight.clamp(1, args.guests) },
        None => Arrivals::Open { rate: args.rate },
    };
    let mut generator = Generator::new(args.to, use_)?;
    generator.add(args.first..args.first + args.guests)?;
    let before = args.pid.map(usage::cpu).transpose()?;
    let span = Duration::from_secs_f64(args.seconds);
    let outcome = generator.run(arrivals, span, &mut Same(request.into_bytes()))?;
    let answers = outcome.answers();
    println!("answers     {answers} in {:.1} s, {:.0}/s", outcome.seconds, answers as f64 / outcome.seconds);
    println!("statuses    {:?}, {} without an answer", outcome.statuses, outcome.unanswered);
    for percentile in [50.0, 90.0, 99.0, 99.9, 100.0] {
        println!("{:<11} {:.3} ms", format!("p{percentile}"), outcome.milliseconds(percentile));
    }
    if let (Some(pid), Some(before)) = (args.pid, before) {
        let used = usage::cpu(pid)? - before;
        println!("CPU         {:.2} µs an answer", used.as_secs_f64() * 1e6 / answers as f64);
    }
    Ok(())
}
