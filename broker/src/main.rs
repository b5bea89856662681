//! The binary `hotfire`: a name server or a broker of RocketMQ.
use broker::{Config, Role};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// RocketMQ in Rust.
#[derive(Parser)]
#[command(name = "hotfire", version, about = "A name server or a broker of RocketMQ")]
struct CommandLine {
    #[command(subcommand)]
    role: RoleCommand,
}

#[derive(Subcommand)]
enum RoleCommand {
    /// Tell clients which broker has which topic.
    Namesrv(Options),
    /// Keep messages.
    Broker(Options),
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

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    let (role, options) = match command_line.role {
        RoleCommand::Namesrv(options) => (Role::NameServer, options),
        RoleCommand::Broker(options) => (Role::Broker, options),
    };
    process::start(role, options)
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
    use super::{Config, Options, Role, USAGE};
    use std::io::Write;
    use std::process::ExitCode;

    /// Simulated sockets and disks serve nobody.
    pub fn start(role: Role, options: Options) -> ExitCode {
        let name = match role {
            Role::NameServer => "namesrv",
            Role::Broker => "broker",
        };
        // Not reached by this build: its settings are only read for real.
        let _ = (super::configuration, super::FAILURE, Config::default(), options.print);
        let told = writeln!(
            std::io::stderr(),
            "hotfire: this build is for the simulator and cannot serve; use: cargo prod run --release -- {name} -c FILE"
        );
        drop(told);
        ExitCode::from(USAGE)
    }
}

#[cfg(not(madsim))]
mod process {
    use super::{Config, FAILURE, Options, Role, USAGE};
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

    pub fn start(role: Role, options: Options) -> ExitCode {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .init();
        let ended = match rt::block_on(serve(role, options)) {
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
