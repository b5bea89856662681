//! All consume queues: which there are on disk, and the set in memory.
use crate::consume_queue::ConsumeQueue;
use crate::error::StoreError;
use crate::extension::Extension;
use crate::layout;
use crate::light_queues::is_light;
use crate::open_files::OpenFiles;
use crate::queue_files::files_of;
use crate::recovery::failed;
use crate::tombstones::Tombstones;
use protocol::PhysicalOffset;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Table = BTreeMap<Arc<str>, BTreeMap<i32, Arc<ConsumeQueue>>>;

/// How large files of queues are, and how many of them are open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSizes {
    pub(crate) file_bytes: u64,
    pub(crate) extension_file_bytes: u64,
    /// Whether queues get an extension.
    pub(crate) is_extended: bool,
    pub(crate) open_max: usize,
}

#[derive(Debug)]
pub(crate) struct ConsumeQueues {
    /// `root/consumequeue`.
    root: PathBuf,
    /// `root/consumequeue_ext`.
    extension_root: PathBuf,
    sizes: QueueSizes,
    open_files: Arc<OpenFiles>,
    table: Mutex<Table>,
    tombstones: Tombstones,
}

impl ConsumeQueues {
    pub(crate) fn new(root: &Path, sizes: QueueSizes, tombstones: Tombstones) -> ConsumeQueues {
        ConsumeQueues {
            root: root.join(layout::CONSUME_QUEUE_DIR),
            extension_root: root.join(layout::EXTENSION_DIR),
            open_files: OpenFiles::new(sizes.open_max),
            sizes,
            table: Mutex::default(),
            tombstones,
        }
    }

    /// Finds the queues on disk. Their entries are not looked at yet. After an orderly stop their names are known to be synced.
    pub(crate) fn load(
        root: &Path,
        sizes: QueueSizes,
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
        queues.remove_orphans()?;
        Ok(queues)
    }

    /// Removes extensions without a queue: a crash came between the removals of the two, or before the queue's first entry was written.
    fn remove_orphans(&self) -> Result<(), StoreError> {
        let removed = |path: &Path, done: io::Result<()>| match done {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(StoreError::Io { action: "remove", path: path.to_owned(), source: error })
            }
            _ => Ok(()),
        };
        if rt::fs::metadata(&self.extension_root).is_err() {
            return Ok(());
        }
        for topic_dir in list_dirs(&self.extension_root)? {
            let Some(topic) = topic_dir.file_name().and_then(|name| name.to_str()) else { continue };
            for dir in list_dirs(&topic_dir)? {
                let Some(queue_id) = queue_id_of(&dir).filter(|id| self.get(topic, *id).is_none()) else { continue };
                rt::probe!("store.extension.orphan_removed");
                tracing::warn!(topic, queue_id, "extension without a queue is removed");
                for path in rt::fs::read_dir(&dir).map_err(failed("list", &dir))? {
                    removed(&path, rt::fs::remove_file(&path))?;
                }
                removed(&dir, rt::fs::remove_dir(&dir))?;
            }
        }
        Ok(())
    }

    fn load_queue(&self, topic: &Arc<str>, queue_id: i32, dir: &Path, is_clean: bool) -> Result<(), StoreError> {
        let io = |action| {
            let path = dir.to_owned();
            move |source| StoreError::Io { action, path, source }
        };
        let file_bytes = self.sizes.file_bytes;
        let files = files_of(dir, file_bytes).map_err(io("list"))?;
        let files = files.map_err(|path| StoreError::ForeignFile { path, file_size: file_bytes })?;
        let queue = self.insert(topic, queue_id);
        match queue.adopt(&files, is_clean).map_err(io("open files of"))? {
            Err((path, length)) => {
                let expected = if path.starts_with(dir) { file_bytes } else { self.sizes.extension_file_bytes };
                return Err(StoreError::FileLength { path, length, expected });
            }
            Ok(()) if files.windows(2).all(|pair| pair[0].0 + file_bytes == pair[1].0) => {}
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

    pub(crate) fn extension_root(&self) -> &Path {
        &self.extension_root
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
            let [dir, extension_dir] =
                [&self.root, &self.extension_root].map(|root| root.join(&**topic).join(queue_id.to_string()));
            let extension = self.has_extension(topic, &extension_dir).then(|| {
                let (file_bytes, is_written) = (self.sizes.extension_file_bytes, self.sizes.is_extended);
                Extension::empty(extension_dir, file_bytes, is_written, Arc::clone(&self.open_files))
            });
            let (file_bytes, pool) = (self.sizes.file_bytes, Arc::clone(&self.open_files));
            Arc::new(ConsumeQueue::empty((Arc::clone(topic), queue_id), dir, file_bytes, pool, extension))
        };
        Arc::clone(queues.entry(queue_id).or_insert_with(create))
    }

    /// Whether the queue keeps what its entries have no room for, or once did. Light queues have no extension.
    fn has_extension(&self, topic: &str, dir: &Path) -> bool {
        !is_light(topic) && (self.sizes.is_extended || rt::fs::metadata(dir).is_ok())
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
