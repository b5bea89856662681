//! Which records of the log belong to topics that were removed: those below a place in the log, by topic. Without it the records of a
//! topic would fill the queues of the next one of that name whenever recovery walks over them.
//!
//! The file `hotfireRemovedTopics` is ours alone, is replaced as a whole and does not exist before a topic is removed. For each topic it has
//! the place as decimal digits, a space, the topic, and a zero byte, which no topic contains.
use crate::error::StoreError;
use protocol::PhysicalOffset;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Beside Apache's files, which it does not resemble.
const FILE: &str = "hotfireRemovedTopics";

type Table = BTreeMap<Box<str>, PhysicalOffset>;

/// The removed topics of a store. Changed by one at a time: who holds the dispatcher, or recovery.
#[derive(Debug)]
pub(crate) struct Tombstones {
    path: PathBuf,
    table: Mutex<Table>,
}

impl Tombstones {
    /// Reads the file, if there is one.
    pub(crate) async fn load(root: &Path) -> Result<Tombstones, StoreError> {
        let path = root.join(FILE);
        let failed = |source| StoreError::Io { action: "read", path: path.clone(), source };
        let table = rt::fs::read_or_backup(&path, parse).await.map_err(failed)?.unwrap_or_default();
        Ok(Tombstones { path, table: Mutex::new(table) })
    }

    /// As if no topic had been removed.
    pub(crate) fn none(root: &Path) -> Tombstones {
        Tombstones { path: root.join(FILE), table: Mutex::default() }
    }

    /// Whether a record of the topic, at that place, was removed with it.
    pub(crate) fn cover(&self, topic: &str, physical: PhysicalOffset) -> bool {
        self.end(topic).is_some_and(|end| physical < end)
    }

    /// Below which place the topic's records were removed with it.
    pub(crate) fn end(&self, topic: &str) -> Option<PhysicalOffset> {
        self.lock().get(topic).copied()
    }

    /// The topic's records below `end` are removed from now on, whatever happens; places below `log_min`, the log's start, need not be known
    /// any more.
    ///
    /// # Errors
    /// With the path that the disk failed at; the topic may be removed or not.
    pub(crate) async fn add(
        &self,
        topic: &str,
        end: PhysicalOffset,
        log_min: PhysicalOffset,
    ) -> Result<(), (PathBuf, io::Error)> {
        let mut table = self.lock().clone();
        table.retain(|_, end| *end > log_min);
        table.insert(topic.into(), end);
        self.replace(table).await
    }

    /// The log ends at `end`: what comes there is not what was removed.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) async fn lower(&self, end: PhysicalOffset) -> Result<(), (PathBuf, io::Error)> {
        let mut table = self.lock().clone();
        if table.values().all(|place| *place <= end) {
            return Ok(());
        }
        table.values_mut().for_each(|place| *place = end.min(*place));
        self.replace(table).await
    }

    async fn replace(&self, table: Table) -> Result<(), (PathBuf, io::Error)> {
        let written = rt::fs::replace(&self.path, &text(&table)).await;
        written.map_err(|source| (self.path.clone(), source))?;
        *self.lock() = table;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no code that can panic runs under this lock")
    }
}

fn text(table: &Table) -> Vec<u8> {
    table.iter().flat_map(|(topic, end)| format!("{end} {topic}\0").into_bytes()).collect()
}

fn parse(bytes: &[u8]) -> io::Result<Table> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not a list of places and topics");
    let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
    let mut table = Table::new();
    if text.is_empty() {
        return Ok(table);
    }
    for line in text.strip_suffix('\0').ok_or_else(damaged)?.split('\0') {
        let (end, topic) = line.split_once(' ').ok_or_else(damaged)?;
        let end = end.parse::<i64>().ok().filter(|end| *end >= 0).ok_or_else(damaged)?;
        table.insert(topic.into(), PhysicalOffset(end));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::{Table, parse, text};
    use protocol::PhysicalOffset;

    #[test]
    fn round_trip() {
        let table = Table::from([("A b\n".into(), PhysicalOffset(7)), ("C".into(), PhysicalOffset(i64::MAX))]);
        assert_eq!(parse(&text(&table)).unwrap(), table);
        assert_eq!(parse(&text(&Table::new())).unwrap(), Table::new());
    }

    #[test]
    fn anything_else_is_damage() {
        for bad in ["7 A", "7A\0", "-1 A\0", "7 A\0\0", " \0"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(parse(&[0xff, 0]).is_err());
    }
}
