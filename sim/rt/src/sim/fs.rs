//! The simulated disk of each node, with the API of the real half.
//!
//! A file system survives the processes of its node. Written bytes are in the page cache until `sync_data`, names until
//! `sync_dir`; a process crash keeps both, a power loss keeps what was synced and a drawn part of the rest. The permitted crash
//! states stand in `image.rs` (bytes) and `directory.rs` (names).
//!
//! | file | what it owns |
//! |---|---|
//! | `image.rs` | the bytes of one file: cache, platter, and what may be between them |
//! | `image/damage.rs`, `marks.rs` | sectors that cannot be read, bits that flip at rest, writes and reads that go wrong |
//! | `directory.rs` | the names of one directory, their order, what a power loss keeps |
//! | `tree.rs` | paths, inodes, the errors of Linux |
//! | `disk.rs` | one node's disk: time, space, faults |
//! | `rules.rs` | how much of the disk a directory and a process may use; how bytes are read and written |
//! | `file.rs` | what the program holds and calls |
//! | `faults.rs`, `config.rs`, `control.rs`, `effects.rs` | knobs, faults, a look from outside, and whether faults did anything |
//!
//! # Invariants
//! - An operation of an ending or ended process has no effect: each asks the node's incarnation first.
//! - Each operation is a crash point ([`World::count_disk_operation`](crate::sim::world::World)) and an event of the trace.

mod config;
pub mod control;
mod directory;
mod disk;
mod effects;
mod faults;
mod file;
mod image;
mod marks;
mod rules;
mod tree;

pub use config::{DiskConfig, DiskLatency};
pub use control::damage::BadSectors;
pub(crate) use disk::{Disk, DiskEvent};
pub use effects::DiskEffects;
pub use faults::{DiskAnomaly, DiskChance, DiskError, DiskFault, DiskFaultId, DiskOperation};
pub use file::{
    File, Metadata, create_dir, create_dir_all, free_bytes, metadata, read, read_dir, remove_dir, remove_file, rename,
    sync_dir,
};
