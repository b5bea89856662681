//! All consume queues: which there are on disk, and the set in memory.
use crate::consume_queue::ConsumeQueue;
use crate::error::StoreError;
use crate::extension::Extension;
use crate::layout::{self, QueueKind};
use crate::light_queues::is_light;
use crate::open_files::OpenFiles;
use crate::queue_files::files_of;
use crate::recovery::failed;
use crate::tombstones::Tombstones;
use protocol::PhysicalOffset;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Table = BTreeMap<Arc<str>, BTreeMap<i32, Arc<ConsumeQueue>>>;

/// How large files of queues are, and how many of them are open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSizes {
    pub(crate) file_bytes: u64,
    pub(crate) batch_file_bytes: u64,
    pub(crate) extension_file_bytes: u64,
    /// Whether queues get an extension.
    pub(crate) is_extended: bool,
    pub(crate) open_max: usize,
}

#[derive(Debug)]
pub(crate) struct ConsumeQueues {
    /// `root/consumequeue`.
    root: PathBuf,
    /// `root/batchconsumequeue`: the directory of a topic there says that its queues are of that kind.
    batch_root: PathBuf,
    /// `root/consumequeue_ext`.
    extension_root: PathBuf,
    sizes: QueueSizes,
    open_files: Arc<OpenFiles>,
    table: Mutex<Table>,
    batch_topics: Mutex<BTreeSet<Arc<str>>>,
    /// Directories of topics whose queues are of the other kind now: all are made anew from the log, then these go.
    stale: Vec<PathBuf>,
    tombstones: Tombstones,
}

impl ConsumeQueues {
    pub(crate) fn new(root: &Path, sizes: QueueSizes, tombstones: Tombstones) -> ConsumeQueues {
        ConsumeQueues {
            root: root.join(layout::CONSUME_QUEUE_DIR),
            batch_root: root.join(layout::BATCH_QUEUE_DIR),
            extension_root: root.join(layout::EXTENSION_DIR),
            open_files: OpenFiles::new(sizes.open_max),
            sizes,
            table: Mutex::default(),
            batch_topics: Mutex::default(),
            stale: Vec::new(),
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
        let mut queues = ConsumeQueues::new(root, sizes, tombstones);
        if rt::fs::metadata(&queues.batch_root).is_ok() {
            for topic_dir in list_dirs(&queues.batch_root)? {
                let Some(topic) = topic_of(&topic_dir) else { continue };
                queues.batch_topics().insert(Arc::clone(&topic));
                queues.load_topic(&topic, &topic_dir, is_clean)?;
            }
        }
        for topic_dir in list_dirs(&queues.root)? {
            let Some(topic) = topic_of(&topic_dir) else { continue };
            if queues.is_batch(&topic) {
                if !list_dirs(&topic_dir)?.is_empty() {
                    queues.stale.push(topic_dir);
                }
                continue;
            }
            queues.load_topic(&topic, &topic_dir, is_clean)?;
        }
        queues.remove_orphans()?;
        Ok(queues)
    }

    fn load_topic(&self, topic: &Arc<str>, dir: &Path, is_clean: bool) -> Result<(), StoreError> {
        for queue_dir in list_dirs(dir)? {
            match queue_id_of(&queue_dir) {
                Some(queue_id) => self.load_queue(topic, queue_id, &queue_dir, is_clean)?,
                None => tracing::warn!(path = %queue_dir.display(), "not the directory of a queue"),
            }
        }
        Ok(())
    }

    /// From now on the topic's queues are batch queues; false if it has others.
    ///
    /// # Errors
    /// With the path that the disk failed at.
    pub(crate) async fn make_batch_topic(&self, topic: &str) -> Result<bool, (PathBuf, io::Error)> {
        if self.is_batch(topic) {
            return Ok(true);
        }
        if self.has_queues(topic) {
            return Ok(false);
        }
        self.mark_batch(topic).await?;
        Ok(true)
    }

    fn has_queues(&self, topic: &str) -> bool {
        self.lock().get(topic).is_some_and(|queues| !queues.is_empty())
    }

    /// As [`make_batch_topic`](Self::make_batch_topic), before recovery, also where there are queues of the other kind.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) async fn turn_into_batch_topic(&mut self, topic: &str) -> Result<(), StoreError> {
        if self.is_batch(topic) {
            return Ok(());
        }
        let marked = self.mark_batch(topic).await;
        marked.map_err(|(path, source)| StoreError::Io { action: "create", path, source })?;
        if self.lock().remove(topic).is_some() {
            rt::probe!("store.batch_topic.turned");
            tracing::warn!(topic, "the topic's queues are of the other kind now, all queues are made anew");
            self.stale.push(self.root.join(topic));
        }
        Ok(())
    }

    /// Whether a topic's queues are of another kind than their files.
    pub(crate) fn is_kind_changed(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Removes the files of the former kind, once there are others, durably: until then each start makes these anew.
    pub(crate) fn remove_stale(&mut self) -> Result<(), StoreError> {
        for topic_dir in std::mem::take(&mut self.stale) {
            for dir in list_dirs(&topic_dir)? {
                for path in rt::fs::read_dir(&dir).map_err(failed("list", &dir))? {
                    rt::fs::remove_file(&path).map_err(failed("remove", &path))?;
                }
                rt::fs::remove_dir(&dir).map_err(failed("remove", &dir))?;
            }
        }
        Ok(())
    }

    async fn mark_batch(&self, topic: &str) -> Result<(), (PathBuf, io::Error)> {
        let dir = self.batch_root.join(topic);
        rt::fs::create_dir_durably(&self.batch_root).await.map_err(|source| (self.batch_root.clone(), source))?;
        rt::fs::create_dir_durably(&dir).await.map_err(|source| (dir, source))?;
        self.batch_topics().insert(Arc::from(topic));
        Ok(())
    }

    /// Topics of batch queues, whether they have any yet or not.
    pub(crate) fn is_batch(&self, topic: &str) -> bool {
        self.batch_topics().contains(topic)
    }

    fn batch_topics(&self) -> std::sync::MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.batch_topics.lock().expect("no code that can panic runs under this lock")
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
        let file_bytes = self.kind_of(topic).1;
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

    /// Where directories of topics are.
    pub(crate) fn roots(&self) -> [&Path; 3] {
        [&self.root, &self.batch_root, &self.extension_root]
    }

    pub(crate) fn get(&self, topic: &str, queue_id: i32) -> Option<Arc<ConsumeQueue>> {
        self.lock().get(topic).and_then(|queues| queues.get(&queue_id)).cloned()
    }

    /// The queue, empty and not on disk if it is new. A topic whose first message is a batch as it was sent is one of batch queues.
    pub(crate) fn get_or_create(&self, topic: &str, queue_id: i32, is_batch: bool) -> Arc<ConsumeQueue> {
        match self.get(topic, queue_id) {
            Some(queue) => queue,
            None => {
                if is_batch && !self.lock().contains_key(topic) {
                    self.batch_topics().insert(Arc::from(topic));
                }
                self.insert(&Arc::from(topic), queue_id)
            }
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
        self.batch_topics().remove(topic);
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
                let root = if self.is_batch(&queue.topic) { &self.batch_root } else { &self.root };
                queue.sync(root).await?;
            }
        }
        Ok(())
    }

    fn insert(&self, topic: &Arc<str>, queue_id: i32) -> Arc<ConsumeQueue> {
        let mut table = self.lock();
        let queues = table.entry(Arc::clone(topic)).or_default();
        let create = || {
            let (kind, file_bytes) = self.kind_of(topic);
            let root = if kind == QueueKind::Batch { &self.batch_root } else { &self.root };
            let [dir, extension_dir] =
                [root, &self.extension_root].map(|root| root.join(&**topic).join(queue_id.to_string()));
            let extension = self.has_extension(topic, &extension_dir).then(|| {
                let (file_bytes, is_written) = (self.sizes.extension_file_bytes, self.sizes.is_extended);
                Extension::empty(extension_dir, file_bytes, is_written, Arc::clone(&self.open_files))
            });
            let pool = Arc::clone(&self.open_files);
            Arc::new(ConsumeQueue::empty((Arc::clone(topic), queue_id, kind), dir, file_bytes, pool, extension))
        };
        Arc::clone(queues.entry(queue_id).or_insert_with(create))
    }

    /// The kind of a topic's queues, and how large their files are.
    fn kind_of(&self, topic: &str) -> (QueueKind, u64) {
        match self.is_batch(topic) {
            true => (QueueKind::Batch, self.sizes.batch_file_bytes),
            false => (QueueKind::Simple, self.sizes.file_bytes),
        }
    }

    /// Whether the queue keeps what its entries have no room for, or once did. Light queues and batch queues have no extension.
    fn has_extension(&self, topic: &str, dir: &Path) -> bool {
        !is_light(topic) && !self.is_batch(topic) && (self.sizes.is_extended || rt::fs::metadata(dir).is_ok())
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

fn topic_of(dir: &Path) -> Option<Arc<str>> {
    dir.file_name().and_then(|name| name.to_str()).map(Arc::from)
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
