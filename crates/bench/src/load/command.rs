//! The load generator as a command: `./dev bench load`, for servers on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use super::generator::Generator;
use super::{Arrivals, Same, Use};
use crate::http;
use crate::process::Cores;
use crate::service::POLL;
use crate::usage;

/// Send load at a fixed rate from many source addresses (127.1.0.1 and up); latency counts from the intended send
/// time
#[derive(clap::Args, Debug)]
pub struct LoadArgs {
    /// Server, for example 127.0.0.1:9254
    to: SocketAddr,
    /// Number of guests, each with its own address
    #[arg(long, default_value_t = 1_000)]
    guests: usize,
    /// Index of the first guest: 0 is 127.1.0.1, 254 is 127.1.1.1
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Requests a second, over all guests
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Closed loop instead of a rate: this many requests in flight
    #[arg(long, conflicts_with = "rate")]
    in_flight: Option<usize>,
    /// Duration in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Use a new connection for each request
    #[arg(long)]
    connection_each: bool,
    /// Request target
    #[arg(long, default_value = POLL)]
    target: String,
    /// HTTP method
    #[arg(long, default_value = "GET")]
    method: String,
    /// Extra header besides `Metadata: true`; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Request body
    #[arg(long, default_value = "")]
    body: String,
    /// Process id of the server, to report its CPU time per response
    #[arg(long)]
    pid: Option<u32>,
}

/// Runs the load and prints the result.
pub fn run(args: &LoadArgs) -> anyhow::Result<()> {
    anyhow::ensure!(args.to.ip().is_loopback(), "this sends load to loopback only, not to {}", args.to);
    anyhow::ensure!(args.guests > 0 && args.rate > 0.0, "no guests, or none that ask");
    usage::raise_open_files()?;
    Cores::choose()?.pin_to_load_core()?;
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
