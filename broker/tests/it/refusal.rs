use std::process::Command;

#[test]
fn a_binary_built_for_the_simulator_refuses_to_serve_and_says_which_one_does() {
    let ended =
        Command::new(env!("CARGO_BIN_EXE_hotfire")).args(["broker", "-c", "x"]).output().expect("the binary runs");
    let said = String::from_utf8(ended.stderr).expect("text");
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("cargo prod run --release -- broker -c FILE"), "{said}");
}
