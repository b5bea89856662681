//! All consume queues: which there are on disk, and the set in memory.
use crate::consume_queue::ConsumeQueue;
use crate::error::StoreError;
use crate::layout;
use crate::open_files::OpenFiles;
use crate::tombstones::Tombstones;
use protocol::PhysicalOffset;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Table = BTreeMap<Arc<str>, BTreeMap<i32, Arc<ConsumeQueue>>>;

#[derive(Debug)]
pub(crate) struct ConsumeQueues {
    /// `root/consumequeue`.
    root: PathBuf,
    file_bytes: u64,
    open_files: Arc<OpenFiles>,
    table: Mutex<Table>,
    tombstones: Tombstones,
}

impl ConsumeQueues {
    /// `sizes`: bytes of a file, and how many files may be open.
    pub(crate) fn new(root: PathBuf, (file_bytes, open_max): (u64, usize), tombstones: Tombstones) -> ConsumeQueues {
        ConsumeQueues { root, file_bytes, open_files: OpenFiles::new(open_max), table: Mutex::default(), tombstones }
    }

    /// Finds the queues on disk. Their entries are not looked at yet. After an orderly stop their names are known to be synced.
    pub(crate) fn load(
        root: PathBuf,
        sizes: (u64, usize),
        is_clean: bool,
        tombstones: Tombstones,
    ) -> Result<ConsumeQueues, StoreError> {
        let queues = ConsumeQueues::new(root, sizes, tombstones);
        for topic_dir in list_dirs(&queues.root)? {
            let Some(topic) = topic_dir.file_name().and_then(|name| name.to_str()).map(Arc::<str>::from) else {
                continue;
            };
            for queue_dir in list_dirs(&topic_dir)? {
                let Some(queue_id) = queue_id_of(&queue_dir) else {
                    tracing::warn!(path = %queue_dir.display(), "not the directory of a queue");
                    continue;
                };
                queues.load_queue(&topic, queue_id, &queue_dir, is_clean)?;
            }
        }
        Ok(queues)
    }

    fn load_queue(&self, topic: &Arc<str>, queue_id: i32, dir: &Path, is_clean: bool) -> Result<(), StoreError> {
        let io = |action| {
            let path = dir.to_owned();
            move |source| StoreError::Io { action, path, source }
        };
        let mut files = Vec::new();
        for path in rt::fs::read_dir(dir).map_err(io("list"))? {
            match layout::parse_file_name(&path).filter(|start| start.is_multiple_of(self.file_bytes)) {
                Some(start) => files.push((start, path)),
                None => return Err(StoreError::ForeignFile { path, file_size: self.file_bytes }),
            }
        }
        files.sort();
        let queue = self.insert(topic, queue_id);
        match queue.adopt(&files, is_clean).map_err(io("open files of"))? {
            Err((path, length)) => return Err(StoreError::FileLength { path, length, expected: self.file_bytes }),
            Ok(()) if files.windows(2).all(|pair| pair[0].0 + self.file_bytes == pair[1].0) => {}
            Ok(()) => {
                tracing::warn!(%topic, queue_id, "a consume-queue file is missing, the queue is rebuilt");
                queue.reset().map_err(io("clear"))?;
            }
        }
        Ok(())
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn get(&self, topic: &str, queue_id: i32) -> Option<Arc<ConsumeQueue>> {
        self.lock().get(topic).and_then(|queues| queues.get(&queue_id)).cloned()
    }

    /// The queue, empty and not on disk if it is new.
    pub(crate) fn get_or_create(&self, topic: &str, queue_id: i32) -> Arc<ConsumeQueue> {
        match self.get(topic, queue_id) {
            Some(queue) => queue,
            None => self.insert(&Arc::from(topic), queue_id),
        }
    }

    /// All queues, by topic and queue id.
    pub(crate) fn all(&self) -> Vec<Arc<ConsumeQueue>> {
        self.lock().values().flat_map(|queues| queues.values().cloned()).collect()
    }

    /// Which records are those of removed topics.
    pub(crate) fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// Takes a topic's queues out of the set; their files stay.
    pub(crate) fn take_topic(&self, topic: &str) -> Vec<Arc<ConsumeQueue>> {
        self.lock().remove(topic).map(|queues| queues.into_values().collect()).unwrap_or_default()
    }

    /// The latest record end that any entry names.
    pub(crate) fn last_end(&self) -> PhysicalOffset {
        self.all().iter().map(|queue| queue.last_end()).max().unwrap_or(PhysicalOffset::ZERO)
    }

    /// The latest record end that any entry of each topic names.
    pub(crate) fn last_end_by_topic(&self) -> Vec<(Arc<str>, PhysicalOffset)> {
        let last = |queues: &BTreeMap<i32, Arc<ConsumeQueue>>| {
            queues.values().map(|queue| queue.last_end()).max().unwrap_or(PhysicalOffset::ZERO)
        };
        self.lock().iter().map(|(topic, queues)| (Arc::clone(topic), last(queues))).collect()
    }

    /// Syncs the queues that `wanted` chooses.
    pub(crate) async fn sync(&self, wanted: impl Fn(&ConsumeQueue) -> bool) -> Result<(), (PathBuf, io::Error)> {
        for queue in self.all() {
            if queue.is_dirty() && wanted(&queue) {
                queue.sync(&self.root).await?;
            }
        }
        Ok(())
    }

    fn insert(&self, topic: &Arc<str>, queue_id: i32) -> Arc<ConsumeQueue> {
        let mut table = self.lock();
        let queues = table.entry(Arc::clone(topic)).or_default();
        let create = || {
            let dir = self.root.join(&**topic).join(queue_id.to_string());
            Arc::new(ConsumeQueue::empty(
                Arc::clone(topic),
                queue_id,
                dir,
                self.file_bytes,
                Arc::clone(&self.open_files),
            ))
        };
        Arc::clone(queues.entry(queue_id).or_insert_with(create))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().expect("no code that can panic runs under this lock")
    }

    pub(crate) fn check_invariants(&self) {
        for queue in self.all() {
            queue.check_invariants();
        }
    }
}

/// Whether a topic can be the name of a directory. Topics come from peers and from damaged records.
pub(crate) fn is_directory_name(topic: &str) -> bool {
    !topic.is_empty() && topic.len() <= 255 && topic != "." && topic != ".." && !topic.contains(['/', '\0'])
}

/// The id that a queue's directory is named by, in the one spelling that is used for it.
pub(crate) fn queue_id_of(dir: &Path) -> Option<i32> {
    let name = dir.file_name()?.to_str()?;
    name.parse::<i32>().ok().filter(|id| *id >= 0 && id.to_string() == name)
}

fn list_dirs(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let io = |source| StoreError::Io { action: "list", path: path.to_owned(), source };
    let mut dirs = Vec::new();
    for entry in rt::fs::read_dir(path).map_err(io)? {
        if rt::fs::metadata(&entry).map_err(io)?.is_dir {
            dirs.push(entry);
        }
    }
    Ok(dirs)
}
