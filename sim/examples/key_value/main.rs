//! A replicated key-value store on three machines, and the claim that it behaves like a single one. `sim/KEY_VALUE.md` is its page.
//!
//!     cargo run -p sim --example key_value -- fuzz key_value_behaves_like_one_copy --seeds 300
//!     cargo run -p sim --example key_value -- fuzz key_value_reads_in_one_round --seeds 20
//!
//! | file | what it owns |
//! |---|---|
//! | `wire.rs` | what clients and replicas say, and how it is framed |
//! | `log.rs` | a replica's file: records that survive a power loss |
//! | `replica.rs` | the server: remembers the newest value of each key |
//! | `client.rs` | put and get by majorities |
//! | `scenario.rs` | clients, faults, and the judge |
//!
//! The first three are the program: they know nothing of simulation, and run on real sockets and disks in a production build.

#[cfg(madsim)]
pub mod client;
#[cfg(madsim)]
pub mod log;
#[cfg(madsim)]
pub mod replica;
#[cfg(madsim)]
pub mod scenario;
#[cfg(madsim)]
pub mod wire;

/// What the command line offers: the store as it should be, and the store with the bug that the page explains.
#[cfg(madsim)]
pub fn registry() -> sim::scenario::Registry {
    use scenario::KeyValue;
    sim::scenario::Registry::new("cargo run -p sim --example key_value --")
        .with(KeyValue { name: "key_value_behaves_like_one_copy", writes_back: true })
        .with(KeyValue { name: "key_value_reads_in_one_round", writes_back: false })
}

#[cfg(madsim)]
fn main() -> std::process::ExitCode {
    sim::cli::main(&registry())
}

#[cfg(not(madsim))]
fn main() {}
