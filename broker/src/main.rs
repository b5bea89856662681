//! The binary `hotfire`: a name server or a broker of RocketMQ, and a load that checks them.
use broker::load::{BODY_BYTES_MIN, LoadConfig};
use broker::{Config, Role};
use clap::{Args, Parser, Subcommand};
use rt::time::Duration;
use std::path::PathBuf;
use std::process::ExitCode;

/// RocketMQ in Rust.
#[derive(Parser)]
#[command(name = "hotfire", version, about = "A name server or a broker of RocketMQ")]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Tell clients which broker has which topic.
    Namesrv(Options),
    /// Keep messages.
    Broker(Options),
    /// Send messages and check that each acknowledged one is consumed.
    Load(LoadOptions),
}

#[derive(Args)]
struct Options {
    /// A configuration file with RocketMQ's keys.
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// The name servers, `host:port` separated by `;`, over the file's `namesrvAddr`. For a name server: the address to listen on.
    #[arg(short = 'n', value_name = "ADDR")]
    address: Option<String>,
    /// A setting over the file's.
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print every setting in force and exit.
    #[arg(short = 'p')]
    print: bool,
}

#[derive(Args)]
struct LoadOptions {
    /// The name servers, `host:port` separated by `;`.
    #[arg(short = 'n', value_name = "ADDR", value_delimiter = ';', required = true, value_parser = host_and_port)]
    name_servers: Vec<String>,
    /// Created with 4 queues if it is missing.
    #[arg(long, default_value = "hotfire_load")]
    topic: String,
    /// How many messages.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Length of each body.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(BODY_BYTES_MIN as i64..=4 << 20))]
    body_bytes: u32,
    /// Sends that wait for an answer at a time.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    in_flight: u32,
    /// The run fails after that long: a number with `ms`, `s` or `m`.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    time_limit: Duration,
}

impl LoadOptions {
    fn config(self) -> LoadConfig {
        LoadConfig {
            name_servers: self.name_servers,
            topic: self.topic,
            messages: self.messages,
            body_bytes: self.body_bytes as usize,
            in_flight: self.in_flight as usize,
            time_limit: self.time_limit,
        }
    }
}

fn host_and_port(text: &str) -> Result<String, &'static str> {
    let parts =
        text.rsplit_once(':').filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    parts.map(|_| text.to_owned()).ok_or("expected host:port")
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "expected a number with ms, s or m";
    let unit = text.find(|c: char| !c.is_ascii_digit()).ok_or(EXPECTED)?;
    let number: u32 = text[..unit].parse().map_err(|_| EXPECTED)?;
    match &text[unit..] {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        _ => Err(EXPECTED),
    }
}

fn main() -> ExitCode {
    process::start(CommandLine::parse().task)
}

/// A run that failed.
const FAILURE: u8 = 1;
/// A command line or configuration that cannot be used.
const USAGE: u8 = 2;

/// Reads what the command line says, over the file's values.
async fn configuration(role: Role, options: &Options) -> Result<Config, String> {
    let mut config = match &options.config {
        Some(path) => broker::read_config(path).await.map_err(|error| error.to_string())?,
        None => Config::default(),
    };
    if let Some(address) = &options.address {
        match role {
            Role::Broker => config.set("namesrvAddr", address),
            Role::NameServer => {
                let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("-n {address}: expected ip:port"))?;
                config.set("bindAddress", host);
                config.set("listenPort", port);
            }
        }
    }
    for setting in &options.set {
        let (key, value) = setting.split_once('=').ok_or_else(|| format!("-D {setting}: expected key=value"))?;
        config.set(key.trim(), value.trim());
    }
    Ok(config)
}

#[cfg(madsim)]
mod process {
    use super::{Config, LoadOptions, Role, Task, USAGE};
    use std::io::Write;
    use std::process::ExitCode;

    /// Simulated sockets and disks serve nobody.
    pub fn start(task: Task) -> ExitCode {
        let (name, print) = match task {
            Task::Namesrv(options) => ("namesrv -c FILE", options.print),
            Task::Broker(options) => ("broker -c FILE", options.print),
            Task::Load(_) => ("load -n ADDR", false),
        };
        // Not reached by this build: its settings are only read for real.
        let _ = (super::configuration, super::FAILURE, Config::default(), Role::Broker, LoadOptions::config, print);
        let told = writeln!(
            std::io::stderr(),
            "hotfire: this build is for the simulator and cannot serve; use: cargo prod run --release -- {name}"
        );
        drop(told);
        ExitCode::from(USAGE)
    }
}

#[cfg(not(madsim))]
mod process {
    use super::{Config, FAILURE, Options, Role, Task, USAGE};
    use broker::load::LoadConfig;
    use rt::sync::CancellationToken;
    use rt::task::TaskGroup;
    use std::io::{IsTerminal, Write};
    use std::process::ExitCode;
    use tracing::{error, info};
    use tracing_subscriber::EnvFilter;

    /// How a process ended that was not asked to.
    enum Failure {
        Usage(String),
        Run(String),
    }

    pub fn start(task: Task) -> ExitCode {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .init();
        let ended = match rt::block_on(perform(task)) {
            Ok(ended) => ended,
            Err(error) => Err(Failure::Run(format!("no runtime: {error}"))),
        };
        let (text, code) = match ended {
            Ok(()) => return ExitCode::SUCCESS,
            Err(Failure::Usage(text)) => (text, USAGE),
            Err(Failure::Run(text)) => (text, FAILURE),
        };
        // Nothing can be done about a closed standard error.
        let _ = writeln!(std::io::stderr(), "hotfire: {text}");
        ExitCode::from(code)
    }

    async fn perform(task: Task) -> Result<(), Failure> {
        match task {
            Task::Namesrv(options) => serve(Role::NameServer, options).await,
            Task::Broker(options) => serve(Role::Broker, options).await,
            Task::Load(options) => load(options.config()).await,
        }
    }

    async fn load(config: LoadConfig) -> Result<(), Failure> {
        let summary = broker::load::run(config).await.map_err(|error| Failure::Run(with_causes(&error)))?;
        // Whoever closed standard output does not want it.
        let _ = write!(std::io::stdout(), "{summary}");
        Ok(())
    }

    async fn serve(role: Role, options: Options) -> Result<(), Failure> {
        let config: Config = super::configuration(role, &options).await.map_err(Failure::Usage)?;
        // Checked here as well, so that a wrong value is a usage error and not a failed run.
        let dump = config.dump(role).map_err(|error| Failure::Usage(described(&options, &error)))?;
        if options.print {
            let _ = std::io::stdout().write_all(dump.as_bytes());
            return Ok(());
        }
        let shutdown = CancellationToken::new();
        let signals = TaskGroup::child_of(&shutdown);
        let asked = shutdown.clone();
        signals.spawn(async move {
            match rt::signal::termination().await {
                Ok(()) => info!("asked to end"),
                Err(error) => error!(%error, "signals cannot be heard, ending"),
            }
            asked.cancel();
        });
        broker::run(role, config, shutdown).await.map_err(|error| Failure::Run(with_causes(&error)))
    }

    /// One line: the error and whatever caused it, each said once.
    fn with_causes(error: &dyn std::error::Error) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text.push_str(": ");
                text.push_str(&said);
            }
            cause = error.source();
        }
        text
    }

    fn described(options: &Options, error: &broker::ConfigError) -> String {
        match &options.config {
            Some(path) => format!("{}: {error}", path.display()),
            None => error.to_string(),
        }
    }
}
