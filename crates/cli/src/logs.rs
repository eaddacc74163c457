//! Log of the service and the agent on standard error. Filters support only levels per module: matching spans and
//! fields would dominate the memory of an idle agent.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Error, Result};
use notbefore_settings::Sources;
use notbefore_settings::kind::LogFormat;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::{MakeVisitor, RecordFields, VisitOutput};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::{DefaultFields, DefaultVisitor, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::{self, Log};
use crate::time;

/// Whether the log of this process is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Starts logging to standard error.
pub fn start(filter: &str, format: LogFormat) -> Result<()> {
    set_format(format);
    let registry = tracing_subscriber::registry().with(filter.parse::<Targets>()?);
    match format {
        LogFormat::Json => {
            registry.with(fmt::layer().with_writer(Log::Json).json().flatten_event(true)).init();
        }
        LogFormat::Text => {
            let log = Log::in_words();
            let layer = fmt::layer().fmt_fields(QuotedFields::default());
            registry.with(layer.with_writer(log).with_ansi(log.has_colours())).init();
        }
    }
    Ok(())
}

/// The usual `name=value`, with quotes around a value that holds spaces: where it ends must be visible.
#[derive(Debug, Default)]
pub struct QuotedFields(DefaultFields);

impl<'writer> fmt::FormatFields<'writer> for QuotedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> std::fmt::Result {
        let mut visitor = QuotedVisitor(self.0.make_visitor(writer));
        fields.record(&mut visitor);
        visitor.0.finish()
    }
}

struct QuotedVisitor<'writer>(DefaultVisitor<'writer>);

impl Visit for QuotedVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.record_str(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = if field.name() == "message" { String::new() } else { format!("{value:?}") };
        match text.contains(char::is_whitespace) && !text.starts_with('"') {
            true => self.0.record_str(field, &text),
            false => self.0.record_debug(field, value),
        }
    }
}

/// Sets the format of [`fatal`].
pub fn set_format(format: LogFormat) {
    IS_JSON.store(format == LogFormat::Json, Relaxed);
}

/// Sets the format by the flag or this variable: mistakes in the configuration are reported in it too.
pub fn expect_format(sources: &Sources, variable: &str) {
    let flag = sources.flags.iter().rev().find(|flag| flag.key == "log_format");
    let said = flag.map(|flag| flag.text.as_str()).or_else(|| sources.variable(variable));
    if said == Some("json") {
        set_format(LogFormat::Json);
    }
}

/// Prints the error that ends the program: as a line of the log if that is JSON, so that its reader understands it.
pub fn fatal(error: &Error) {
    match IS_JSON.load(Relaxed) {
        true => output::eprint_json(&serde_json::json!({
            "timestamp": format!("{:.6}", time::now()),
            "level": "ERROR",
            "message": format!("{error:#}"),
            "target": "notbefore",
        })),
        false => output::eprint(&format!("notbefore: {error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn values_with_spaces_are_quoted() {
        let written = Written::default();
        let writer = written.clone();
        let layer = fmt::layer().fmt_fields(QuotedFields::default()).without_time().with_ansi(false);
        let log = tracing_subscriber::registry().with(layer.with_writer(move || writer.clone()));
        tracing::subscriber::with_default(log, || {
            let span = tracing::info_span!("hook", step = %"out of the pool", rule = %"drain");
            let _entered = span.enter();
            tracing::info!(rule = %"web \"0\"", step = %"stop", said = ?"a b", count = 3, "it is done");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let fields = r#"it is done rule="web \"0\"" step=stop said="a b" count=3"#;
        assert!(text.contains(r#"hook{step="out of the pool" rule=drain}"#), "{text}");
        assert!(text.trim_end().ends_with(fields), "{text}");
    }
}
