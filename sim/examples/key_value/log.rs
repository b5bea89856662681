//! A replica's file: records one after the other, each a length (4 bytes), a checksum (8 bytes) and that many bytes of JSON.

use super::wire::Versioned;
use rt::fs::{File, OpenOptions, sync_dir};
use std::io;
use xxhash_rust::xxh3::xxh3_64;

const PATH: &str = "/key_value.log";
const HEADER_BYTES: usize = 12;

/// The end of the file, where the next record goes.
#[derive(Debug)]
pub struct Log {
    file: File,
    end: u64,
}

impl Log {
    /// Opens the file, shows each whole record to `each`, and cuts off what a power loss has left behind the last of them.
    pub async fn recover(mut each: impl FnMut(String, Versioned)) -> io::Result<Log> {
        let file = OpenOptions::new().write(true).create(true).open(PATH)?;
        sync_dir("/").await?;
        let bytes = rt::fs::read(PATH).await?;
        let mut end = 0;
        while let Some((body, length)) = first_record(&bytes[end..]) {
            let (key, versioned) = serde_json::from_slice(body)?;
            each(key, versioned);
            end += length;
        }
        let end = end as u64;
        file.set_len(end)?;
        // After a crash the file shows records whose sync never ended. Whoever answers by them must not lose them any more.
        file.sync_data().await?;
        Ok(Log { file, end })
    }

    /// Adds a record; it is on the disk when this returns.
    pub async fn append(&mut self, key: &str, versioned: &Versioned) -> io::Result<()> {
        let body = serde_json::to_vec(&(key, versioned))?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let record = [&length.to_be_bytes()[..], &xxh3_64(&body).to_be_bytes(), &body].concat();
        self.file.write_at(&record, self.end)?;
        self.file.sync_data().await?;
        self.end += record.len() as u64;
        Ok(())
    }
}

/// The body of the first record and the length of the whole; none if it is torn or there is none.
fn first_record(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<8>()?;
    let body = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let whole = xxh3_64(body) == u64::from_be_bytes(*checksum);
    whole.then_some((body, HEADER_BYTES + body.len()))
}
