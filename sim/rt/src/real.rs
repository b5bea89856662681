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
    use crate::keep_alive::KeepAlive;
    use socket2::{SockRef, TcpKeepalive};
    pub use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
    pub use tokio::net::{TcpListener, TcpStream, UdpSocket};

    /// Turns keep-alive on, with these options and from now on, or off (`None`), as it is at first.
    ///
    /// # Errors
    /// `InvalidInput`: an option out of its bounds.
    pub fn set_keep_alive(stream: &TcpStream, options: Option<KeepAlive>) -> std::io::Result<()> {
        let socket = SockRef::from(stream);
        let Some(options) = options else { return socket.set_keepalive(false) };
        let KeepAlive { idle, interval, probes } = options.checked()?;
        let options = TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(probes);
        socket.set_tcp_keepalive(&options)
    }

    /// As [`set_keep_alive`] left it.
    pub fn keep_alive(stream: &TcpStream) -> std::io::Result<Option<KeepAlive>> {
        let socket = SockRef::from(stream);
        if !socket.keepalive()? {
            return Ok(None);
        }
        let (idle, interval) = (socket.tcp_keepalive_time()?, socket.tcp_keepalive_interval()?);
        Ok(Some(KeepAlive { idle, interval, probes: socket.tcp_keepalive_retries()? }))
    }

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
