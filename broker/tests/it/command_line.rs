#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of the real process, in the real world"
)]
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

fn hotfire(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotfire"))
        .args(arguments)
        .env("RUST_LOG", "off")
        .output()
        .expect("the binary runs")
}

/// Runs to the end; the exit status, and what must stand in the one line on standard error.
fn check(arguments: &[&str], status: i32, said: &str) {
    let ended = hotfire(arguments);
    let text = String::from_utf8(ended.stderr).expect("text");
    assert_eq!(ended.status.code(), Some(status), "{arguments:?}: {text}");
    assert!(text.contains(said), "{arguments:?}: {text}");
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a temporary file");
    path.to_str().expect("a UTF-8 path").to_owned()
}

#[test]
fn wrong_command_lines_and_configurations_are_usage_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    check(&["brker"], 2, "brker");
    check(&["broker", "-x"], 2, "-x");
    check(&["broker", "-D", "port"], 2, "expected key=value");
    check(&["broker", "-c", "/nonexistent/broker.conf"], 2, "cannot read /nonexistent/broker.conf");
    check(
        &["broker", "-c", &write(folder.path(), "damaged.conf", "brokerName=a\nbrokerId\n")],
        2,
        "line 2: \"brokerId\" is no key=value",
    );
    check(
        &["broker", "-c", &write(folder.path(), "wrong.conf", "\nlistenPort=x\n")],
        2,
        "listenPort=x (line 2): expected a port",
    );
    check(&["namesrv", "-n", "here"], 2, "expected ip:port");
}

#[test]
fn printing_the_settings_ends_well() {
    let ended = hotfire(&["broker", "-p", "-D", "brokerName=x"]);
    assert!(ended.status.success());
    let text = String::from_utf8(ended.stdout).expect("text");
    assert!(text.lines().any(|line| line == "brokerName=x"), "{text}");
}

#[test]
fn what_the_system_refuses_fails_the_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = format!("listenPort={}", taken.local_addr().expect("bound").port());
    let root = format!("storePathRootDir={}", folder.path().display());
    let address = taken.local_addr().expect("bound").to_string();
    check(
        &[
            "broker",
            "-D",
            &port,
            "-D",
            &root,
            "-D",
            "haListenPort=0",
            "-D",
            "bindAddress=127.0.0.1",
            "-D",
            "mappedFileSizeCommitLog=1048576",
        ],
        1,
        &address,
    );
    check(&["namesrv", "-n", &address], 1, &address);
    let file = write(folder.path(), "file", "");
    check(&["broker", "-D", &format!("storePathRootDir={file}/store")], 1, "cannot use store directory");
}
