//! The binary `hotfire`: a name server or a broker of RocketMQ, and a load that checks them.
use broker::load::{BODY_BYTES_MIN, LoadConfig};
use broker::{Config, Role};
use clap::{Args, Parser, Subcommand};
use rt::time::Duration;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::StoreConfig;

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
    /// Look into the files of a store, of Hotfire or of Apache's broker, or mend them.
    #[command(subcommand)]
    Store(StoreTask),
}

#[derive(Subcommand)]
enum StoreTask {
    /// Read every record, queue entry and key; exit status 1 if something is damaged. Writes nothing.
    Check(StoreOptions),
    /// Print messages as JSON, one a line. Writes nothing.
    Dump {
        #[command(flatten)]
        options: StoreOptions,
        /// Only of this topic.
        #[arg(long, value_name = "NAME")]
        topic: Option<String>,
        /// Only of this queue.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        queue: Option<i32>,
        /// Only from this offset of the log on.
        #[arg(long, value_name = "OFFSET", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
        from: i64,
        /// At most so many.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
    /// Make consume queues and index anew from the log. Without --write it only says what it would do.
    Repair {
        #[command(flatten)]
        options: StoreOptions,
        /// Do it. What is replaced is kept in a folder `before-repair-N`.
        #[arg(long)]
        write: bool,
        /// Cut a log that is damaged behind its last good record; a copy is kept too.
        #[arg(long)]
        drop_damaged: bool,
    },
}

#[derive(Args)]
struct StoreOptions {
    /// The store (`storePathRootDir`).
    #[arg(value_name = "DIR")]
    root: PathBuf,
    /// The broker's configuration, for sizes and places that are not the usual ones. Without it files say their own sizes.
    #[arg(short = 'c', value_name = "FILE")]
    config: Option<PathBuf>,
    /// A setting over the file's, as `maxHashSlotNum=50`.
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    set: Vec<String>,
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
    let mut config = read(options.config.as_deref()).await?;
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
    set(&mut config, &options.set)?;
    Ok(config)
}

/// What the command line says of a store's files.
async fn store_configuration(options: &StoreOptions) -> Result<StoreConfig, String> {
    let mut config = read(options.config.as_deref()).await?;
    let root = options.root.to_str().ok_or_else(|| format!("{}: no UTF-8", options.root.display()))?;
    config.set("storePathRootDir", root);
    set(&mut config, &options.set)?;
    let store = config.broker().map_err(|error| error.to_string())?.node.store;
    match options.config {
        Some(_) => Ok(store),
        None => store.with_sizes_of_files().map_err(|error| error.to_string()),
    }
}

async fn read(file: Option<&Path>) -> Result<Config, String> {
    match file {
        Some(path) => broker::read_config(path).await.map_err(|error| error.to_string()),
        None => Ok(Config::default()),
    }
}

fn set(config: &mut Config, settings: &[String]) -> Result<(), String> {
    for setting in settings {
        let (key, value) = setting.split_once('=').ok_or_else(|| format!("-D {setting}: expected key=value"))?;
        config.set(key.trim(), value.trim());
    }
    Ok(())
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
            Task::Store(_) => ("store check DIR", false),
        };
        // Not reached by this build: its settings are only read for real.
        let _ = (
            super::configuration,
            super::store_configuration,
            super::FAILURE,
            Config::default(),
            Role::Broker,
            LoadOptions::config,
            print,
        );
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
    use super::{Config, FAILURE, Options, Role, StoreTask, Task, USAGE};
    use broker::load::LoadConfig;
    use broker::store_files::{self, Selection, StoreFilesError};
    use indicatif::{ProgressBar, ProgressStyle};
    use rt::sync::CancellationToken;
    use rt::task::TaskGroup;
    use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
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
            Task::Store(task) => store(task).await,
        }
    }

    async fn store(task: StoreTask) -> Result<(), Failure> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let failed = |error: StoreFilesError| Failure::Run(with_causes(&error));
        match task {
            StoreTask::Check(options) => {
                let config = super::store_configuration(&options).await.map_err(Failure::Usage)?;
                let is_sound = store_files::check(&config, progress(), &mut out).await.map_err(failed)?;
                out.flush().map_err(|error| failed(error.into()))?;
                if is_sound { Ok(()) } else { Err(Failure::Run("the store is damaged".to_owned())) }
            }
            StoreTask::Dump { options, topic, queue, from, limit } => {
                let config = super::store_configuration(&options).await.map_err(Failure::Usage)?;
                let selection = Selection { topic, queue_id: queue, from, limit };
                let damage = match store_files::dump(&config, &selection, &mut out).await {
                    // Whoever closed standard output has read enough.
                    Err(StoreFilesError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                    ended => ended.map_err(failed)?,
                };
                match out.flush() {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                    flushed => flushed.map_err(|error| failed(error.into()))?,
                }
                if damage.is_empty() { Ok(()) } else { Err(Failure::Run(damage.join("; "))) }
            }
            StoreTask::Repair { options, write, drop_damaged } => {
                let mut config = super::store_configuration(&options).await.map_err(Failure::Usage)?;
                if drop_damaged {
                    config.damage = store::DamagePolicy::DropTail;
                }
                let done = match write {
                    true => store_files::repair(config, &mut out).await,
                    false => store_files::plan_repair(&config, progress(), &mut out).await,
                };
                done.map_err(failed)?;
                out.flush().map_err(|error| failed(error.into()))
            }
        }
    }

    /// A bar on standard error, if that is a terminal.
    fn progress() -> impl FnMut(u64, u64) {
        let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left");
        let bar = ProgressBar::new(0).with_style(style.expect("a template that is tested"));
        move |passed, all| {
            bar.set_length(all);
            bar.set_position(passed);
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
