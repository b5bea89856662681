//! Production half: tokio and system calls.
pub mod fs;

/// Builds a multi-threaded runtime and drives `main` to its end.
pub fn block_on<F: Future>(main: F) -> std::io::Result<F::Output> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(main))
}

pub mod time {
    pub use tokio::time::error::Elapsed;
    pub use tokio::time::{
        Instant, Interval, MissedTickBehavior, Sleep, Timeout, interval, interval_at, sleep, sleep_until, timeout,
        timeout_at,
    };

    /// The wall clock in nanoseconds since 1970.
    pub fn unix_nanos() -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
    }
}

pub mod task {
    pub use tokio::task::{AbortHandle, JoinError, JoinHandle, spawn, yield_now};
}

pub mod net {
    pub use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
    pub use tokio::net::{TcpListener, TcpStream, UdpSocket};

    /// Addresses of `host` (`name:port` or `address:port`), in the resolver's order.
    pub async fn lookup_host(host: &str) -> std::io::Result<Vec<std::net::SocketAddr>> {
        Ok(tokio::net::lookup_host(host).await?.collect())
    }
}

pub mod rand {
    use rand::rngs::SmallRng;
    use rand::{RngCore, SeedableRng};

    #[derive(Debug)]
    pub struct Source(SmallRng);

    pub fn source(_name: &'static str) -> Source {
        Source(SmallRng::from_os_rng())
    }

    impl Source {
        pub fn next(&mut self) -> u64 {
            self.0.next_u64()
        }
    }
}

pub mod signal {
    use tokio::signal::unix::{SignalKind, signal};

    /// Returns when the process is asked to end by SIGTERM or SIGINT.
    pub async fn termination() -> std::io::Result<()> {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        crate::select! { _ = term.recv() => {}, _ = int.recv() => {} }
        Ok(())
    }
}
