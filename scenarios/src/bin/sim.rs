//! `cargo sim …`: the stand's command line over the scenarios of this package.
use std::process::ExitCode;

fn main() -> ExitCode {
    sim::cli::main(&scenarios::registry())
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
