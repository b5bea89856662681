//! The golden exchanges: how the fixtures are found and read.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// One request and its answer, as captured.
pub struct Exchange {
    /// File and index, for messages.
    pub name: String,
    pub code: i32,
    pub request: Captured,
    pub response: Option<Captured>,
}

/// One frame with what an independent decoder found in it.
pub struct Captured {
    pub bytes: Vec<u8>,
    pub decoded: Value,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden")
}

/// Every exchange of every peer, in a fixed order.
pub fn exchanges() -> Vec<Exchange> {
    let mut files: Vec<PathBuf> = Vec::new();
    for peer in std::fs::read_dir(root().join("wire")).unwrap() {
        files.extend(std::fs::read_dir(peer.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    files.sort();
    let mut exchanges = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        let variants = whole["variants"].as_array().unwrap();
        for (index, exchange) in std::iter::once(&whole).chain(variants).enumerate() {
            let peer = file.parent().unwrap().file_name().unwrap().to_string_lossy();
            let name = format!("{peer}/{} #{index}", file.file_stem().unwrap().to_string_lossy());
            exchanges.push(read(name, exchange));
        }
    }
    assert!(exchanges.len() > 500, "only {} exchanges found", exchanges.len());
    exchanges
}

fn read(name: String, exchange: &Value) -> Exchange {
    let captured = |side: &str| {
        let bytes = unhex(exchange[format!("{side}_hex")].as_str()?);
        Some(Captured { bytes, decoded: exchange["decoded"][side].clone() })
    };
    Exchange {
        name,
        code: i32::try_from(exchange["code"].as_i64().unwrap()).unwrap(),
        request: captured("request").unwrap(),
        response: captured("response"),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
