#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of the real process, in the real world"
)]
use flate2::read::GzDecoder;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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
    check(&["broker", "-c", folder.path().to_str().expect("a UTF-8 path")], 2, "cannot read");
    check(&["namesrv", "-n", "here"], 2, "expected ip:port");
    check(&["load"], 2, "-n <ADDR>");
    check(&["load", "-n", "here"], 2, "expected host:port");
    check(&["load", "-n", "127.0.0.1:1", "--messages", "0"], 2, "--messages");
    check(&["load", "-n", "127.0.0.1:1", "--body-bytes", "15"], 2, "--body-bytes");
    check(&["load", "-n", "127.0.0.1:1", "--time-limit", "5"], 2, "expected a number with ms, s or m");
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

/// A process that serves; killed when dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts one and waits until it tells its address.
    fn start(arguments: &[&str]) -> Server {
        let child = Command::new(env!("CARGO_BIN_EXE_hotfire"))
            .args(arguments)
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        // From here on it ends with its owner, also by the panic below.
        let mut server = Server { child, address: String::new() };
        let mut lines = BufReader::new(server.child.stderr.take().expect("piped")).lines();
        let mut said = Vec::new();
        for line in lines.by_ref() {
            let line = line.expect("text");
            if line.contains(" started ") {
                server.address = line.rsplit(['=', ' ']).next().expect("a last word").to_owned();
                // Who writes must be read, or it waits.
                std::thread::spawn(move || lines.for_each(drop));
                return server;
            }
            said.push(line);
        }
        panic!("{arguments:?} ended: {said:?}");
    }

    /// Asks it to end, as an operator does.
    fn end(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.expect("kill runs").success());
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_store_in_use_and_a_damaged_store_are_refused_with_the_file_and_the_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (root, kv) = (folder.path().join("store"), folder.path().join("kv.json"));
    let names = Server::start(&["namesrv", "-n", "127.0.0.1:0", "-D", &format!("kvConfigPath={}", kv.display())]);
    let config = write(
        folder.path(),
        "broker.conf",
        &format!(
            "listenPort=0\nhaListenPort=0\nbindAddress=127.0.0.1\nbrokerIP1=127.0.0.1\nstorePathRootDir={}\nmappedFileSizeCommitLog=1048576\n",
            root.display()
        ),
    );
    let serve = ["broker", "-c", &config, "-n", &names.address];
    let broker = Server::start(&serve);
    let loaded = hotfire(&["load", "-n", &names.address, "--messages", "50", "--in-flight", "4"]);
    let table = String::from_utf8(loaded.stdout).expect("text");
    assert_eq!(loaded.status.code(), Some(0), "{}", String::from_utf8_lossy(&loaded.stderr));
    assert!(table.lines().any(|line| line.split_whitespace().eq(["kept", "50"])), "{table}");

    check(&serve, 1, "lock is locked: another process uses this store");
    broker.end();

    let log = root.join("commitlog/00000000000000000000");
    let whole = fs::read(&log).expect("the log");
    let mut damaged = whole.clone();
    damaged[600] ^= 1;
    fs::write(&log, damaged).expect("the log");
    check(&serve, 1, "commitlog/00000000000000000000 is damaged at log offset 0, and the log was synced up to ");
    fs::write(&log, whole).expect("the log");

    let offsets = root.join("config/consumerOffset.json");
    let whole = fs::read(&offsets).expect("the offsets");
    for name in ["config/consumerOffset.json", "config/consumerOffset.json.bak"] {
        fs::write(root.join(name), "{\"offsetTable\":{").expect("the offsets");
    }
    check(&serve, 1, "config/consumerOffset.json: damaged: json text ends unexpectedly at byte 16");
    fs::write(&offsets, whole).expect("the offsets");
    Server::start(&serve).end();
    names.end();
}

/// A copy of a store that Apache's broker has written, unpacked by hand: its log is packed in the fixtures.
fn golden_store(name: &str) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder of the fixtures") {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("an entry");
            if path.is_dir() {
                copy(&path, &to.join(name));
            } else {
                let packed = fs::read(&path).expect("a file of the fixtures");
                let name = name.to_str().expect("a UTF-8 name");
                let mut bytes = Vec::new();
                match name.strip_suffix(".gz") {
                    Some(_) => GzDecoder::new(&packed[..]).read_to_end(&mut bytes).map(|_| ()).expect("a gzip file"),
                    None => bytes = packed,
                }
                fs::write(to.join(name.strip_suffix(".gz").unwrap_or(name)), bytes).expect("a file");
            }
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/golden/store").join(name), folder.path());
    folder
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn a_store_is_checked_dumped_and_repaired() {
    let store = golden_store("clean");
    let root = store.path().to_str().expect("a UTF-8 path");
    let sizes = ["-D", "maxHashSlotNum=50", "-D", "maxIndexNum=100"];
    let store_task = |task: &str, more: &[&str]| hotfire(&[&["store", task, root][..], &sizes, more].concat());
    let told = |output: Output| (output.status.code(), text(output.stdout).replace(root, "DIR"), text(output.stderr));

    let (status, sound, _) = told(store_task("check", &[]));
    insta::assert_snapshot!("check_of_a_sound_store", sound);
    assert_eq!(status, Some(0));

    let (status, lines, _) = told(store_task("dump", &["--topic", "GoldenNormal", "--queue", "0", "--limit", "2"]));
    insta::assert_snapshot!("dump_of_two_messages", lines);
    assert_eq!(status, Some(0));

    let queue = store.path().join("consumequeue/GoldenNormal/0/00000000000000000000");
    let mut entries = fs::read(&queue).expect("a queue");
    entries[5] ^= 0xff;
    fs::write(&queue, &entries).expect("a queue");
    let (status, damaged, error) = told(store_task("check", &[]));
    insta::assert_snapshot!("check_of_a_damaged_store", damaged);
    assert_eq!((status, error.as_str()), (Some(1), "hotfire: the store is damaged\n"));

    let (status, planned, _) = told(store_task("repair", &[]));
    insta::assert_snapshot!("repair_that_is_only_planned", planned);
    assert_eq!((status, fs::read(&queue).expect("a queue") == entries), (Some(0), true));
    let (status, repaired, _) = told(store_task("repair", &["--write"]));
    insta::assert_snapshot!("repair", repaired);
    assert_eq!(status, Some(0));
    assert_eq!(told(store_task("check", &[])), (Some(0), sound, String::new()));
}

#[test]
fn what_is_no_store_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().to_str().expect("a UTF-8 path");
    check(&["store", "check", root], 1, "has no commit log");
    check(&["store", "dump", "/nonexistent"], 1, "/nonexistent/commitlog has no commit log");
    check(&["store", "repair", root, "--write"], 1, "has no commit log");
    check(&["store", "check"], 2, "<DIR>");
    check(&["store", "check", root, "-D", "maxIndexNum=0"], 2, "maxIndexNum=0: expected a number, 2 or more");
    check(&["store", "dump", root, "--from=-1"], 2, "--from");
}
