//! Log lines for people: virtual time, node, level, where from, message, fields. Equal runs write equal bytes.

use rt::world::log_context;
use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// Width of the column of node names.
const NODE_WIDTH: usize = 12;

/// Lines without colours, wall clock, thread or address.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        match log_context() {
            Some(place) => write!(out, "{:>13} {:<NODE_WIDTH$} ", crate::verdict::seconds(place.at), place.node)?,
            None => write!(out, "{:>13} {:<NODE_WIDTH$} ", "-", "-")?,
        }
        let metadata = event.metadata();
        write!(out, "{:>5} {}: ", metadata.level(), metadata.target())?;
        for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            write!(out, "{}", span.name())?;
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<tracing_subscriber::fmt::FormattedFields<N>>()
                && !fields.is_empty()
            {
                write!(out, "{{{fields}}}")?;
            }
            write!(out, ": ")?;
        }
        context.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}

/// Reads what to show: a level (`debug`), or levels by module (`info,store=trace`).
pub fn filter(text: &str) -> Result<EnvFilter, String> {
    let filter = EnvFilter::builder().parse(text).map_err(|error| error.to_string())?;
    // Spans of the simulator's base name its own task, not ours.
    Ok(filter.add_directive("madsim=off".parse().expect("it is well-formed")))
}

/// Shows this process's log lines on stderr from now on.
pub fn install(filter: EnvFilter) {
    // A second call in one process changes nothing; children install theirs once.
    let _ = tracing::subscriber::set_global_default(subscriber(filter, std::io::stderr));
}

/// A subscriber that writes the lines elsewhere.
pub fn subscriber<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).event_format(Lines).with_writer(writer).finish()
}
