//! Links the `sim` binary and the tests so that std's clocks show the current node's time in any dependency (see `rt`, `interpose.rs`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let simulated = std::env::var_os("CARGO_CFG_MADSIM").is_some();
    if simulated && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg=-Wl,--wrap=clock_gettime");
    }
}
