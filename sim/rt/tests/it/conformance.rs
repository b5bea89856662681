//! One table of behaviours that both halves keep: run by `cargo test -p rt` in a world (client and server on two nodes), and by
//! `cargo prod test -p rt` on loopback sockets and a temporary directory. Where the halves differ stands in `PARITY.md`.
mod disk;
mod network;
mod stage;

/// Makes a test of each behaviour of a file.
macro_rules! table {
    ($($behaviour:ident)*) => {
        mod table {
            $(
                #[test]
                fn $behaviour() {
                    crate::conformance::stage::run(super::$behaviour);
                }
            )*
        }
    };
}
use table;
