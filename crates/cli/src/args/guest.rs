//! Arguments of the guest commands, `get` and `approve`.

use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;
use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;

use super::parse_count;

/// The platform's endpoint, the api-version and the VM's name.
#[derive(Debug, clap::Args)]
pub struct Platform {
    /// URL of the platform's metadata endpoint [default: discovered from $SCHEDULEDEVENTSIP, 169.254.169.254, DHCP
    /// option 245]
    #[arg(long, env = "NOTBEFORE_ENDPOINT", hide_env_values = true, value_name = "URL")]
    pub endpoint: Option<Endpoint>,
    /// Newest api-version to request; older ones are tried only if the platform refuses it
    #[arg(long, value_name = "DATE", value_parser = version, default_value = EventsVersion::NEWEST.as_str())]
    pub api_version: EventsVersion,
    /// VM name in the events' resources [default: from instance metadata, else the host name]
    #[arg(long, value_name = "VM", value_parser = NonEmptyStringValueParser::new())]
    pub name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Get {
    #[command(flatten)]
    pub platform: Platform,
    /// Keep polling and print a line per change, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// With --watch: exit after this many changes
    #[arg(long, requires = "watch", value_name = "N", value_parser = parse_count)]
    pub count: Option<usize>,
    /// Print the document unchanged; control characters are escaped at a terminal
    #[arg(long, conflicts_with = "watch")]
    pub raw: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("approved").required(true).args(["events", "all_mine"]))]
pub struct Approve {
    /// Event ids, or their first digits
    #[arg(value_name = "EVENT")]
    pub events: Vec<String>,
    /// All events that wait for approval and name this VM (name from instance metadata, else --name)
    #[arg(long)]
    pub all_mine: bool,
    #[command(flatten)]
    pub platform: Platform,
}

fn version(text: &str) -> Result<EventsVersion, String> {
    let known = || EventsVersion::ALL.map(EventsVersion::as_str).join(", ");
    EventsVersion::parse(text).ok_or_else(|| format!("unknown version; known versions: {}", known()))
}
