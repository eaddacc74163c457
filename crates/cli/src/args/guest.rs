//! What can be typed inside of a VM: `get` and `approve`.

use clap::builder::NonEmptyStringValueParser;
use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;

use super::parse_count;

/// Whom to ask, and as whom.
#[derive(Debug, clap::Args)]
pub struct Platform {
    /// Where the platform answers [default: found: $SCHEDULEDEVENTSIP, 169.254.169.254, DHCP option 245]
    #[arg(long, env = "NOTBEFORE_ENDPOINT", hide_env_values = true, value_name = "URL")]
    pub endpoint: Option<Endpoint>,
    /// The newest api-version to ask for; older ones follow only if the platform refuses it
    #[arg(long, value_name = "DATE", value_parser = version, default_value = EventsVersion::NEWEST.as_str())]
    pub api_version: EventsVersion,
    /// A VM's name among an event's resources [default: this one's by its metadata, or else its host name]
    #[arg(long, value_name = "VM", value_parser = NonEmptyStringValueParser::new())]
    pub name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Get {
    #[command(flatten)]
    pub platform: Platform,
    /// Go on: a line for each change, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// With --watch: end after so many changes
    #[arg(long, requires = "watch", value_name = "N", value_parser = parse_count)]
    pub count: Option<u64>,
    /// Print the document as it came; a terminal shows control characters spelled out
    #[arg(long, conflicts_with = "watch")]
    pub raw: bool,
}

#[derive(Debug, clap::Args)]
pub struct Approve {
    /// The events' ids, or how they begin
    #[arg(required_unless_present = "all_mine", value_name = "EVENT")]
    pub events: Vec<String>,
    /// All that wait and name this VM, as the platform calls it, or where it does not say, as --name does
    #[arg(long, conflicts_with = "events")]
    pub all_mine: bool,
    #[command(flatten)]
    pub platform: Platform,
}

fn version(text: &str) -> Result<EventsVersion, String> {
    let known = || EventsVersion::ALL.map(EventsVersion::as_str).join(", ");
    EventsVersion::parse(text).ok_or_else(|| format!("there is no such version; known are {}", known()))
}
