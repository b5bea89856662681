//! A message on its way into the log: limits, record bytes, and the three fields that are known only under the append lock.
use crate::commit_log::Appender;
use crate::consume_queues::is_directory_name;
use crate::error::AppendError;
use crate::layout;
use crate::light_queues::{LIGHT_QUEUE_ID, LightOffsets, without_offsets};
use crate::scan::{has_torn_look, inner_messages, is_queued};
use crate::store::Store;
use bytes::{Bytes, BytesMut};
use protocol::message::property::INNER_BASE;
use protocol::message::record::{
    PROPERTIES_BYTES_MAX, Record, RecordVersion, SEAL_BYTES, has_seal, seal, stamp, with_room_for_seal, without_seal,
};
use protocol::{MessageId, PhysicalOffset, QueueOffset, SysFlag};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Mutex;

const TOPIC_BYTES_MAX: usize = 127;
const RETRY_TOPIC_BYTES_MAX: usize = 255;
const RETRY_PREFIX: &str = "%RETRY%";

/// A message to be stored, as the broker has completed it. The store adds queue offset, physical offset, store time, body
/// checksum and the record version.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Topic, at most 127 bytes (a retry topic: 255).
    pub topic: String,
    /// Queue of the topic, not negative.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// `MessageSysFlag` bits. The two bits that say whether a host is IPv6 are set by the store.
    pub sys_flag: i32,
    /// When the producer made the message, Unix milliseconds by its clock.
    pub born_timestamp: i64,
    /// The producer's address.
    pub born_host: SocketAddr,
    /// This broker's address (`brokerIP1:listenPort`), part of the message id.
    pub store_host: SocketAddr,
    /// How often consumption failed so far.
    pub reconsume_times: i32,
    /// Physical offset of the half message, for the end of a transaction.
    pub prepared_transaction_offset: i64,
    /// Properties exactly as they are stored: `name 0x01 value 0x02 …`.
    pub properties: String,
    /// Body, compressed or not as `sys_flag` says.
    pub body: Bytes,
}

/// Where a message was appended. It is in the page cache, not on disk: see [`Store::flushed`](crate::Store::flushed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Start of its record.
    pub physical: PhysicalOffset,
    /// End of its record: what to wait for.
    pub end: PhysicalOffset,
    /// Its place in the queue; 0 for a half message or a rollback, which have none.
    pub queue_offset: QueueOffset,
    /// Store time, Unix milliseconds by this broker's clock; never lower than that of the record before.
    pub store_timestamp: i64,
    /// The offset message id: store host and physical offset.
    pub message_id: MessageId,
}

impl NewMessage {
    fn check(&self, max_message_size: u32, is_sealed: bool) -> Result<(), AppendError> {
        let limit = usize::try_from(max_message_size).expect("32 bits fit");
        if self.body.len() > limit {
            return Err(AppendError::BodyTooLong { size: self.body.len(), limit });
        }
        let limit = PROPERTIES_BYTES_MAX - if is_sealed { SEAL_BYTES + 1 } else { 0 };
        if self.properties.len() > limit {
            return Err(AppendError::PropertiesTooLong { size: self.properties.len(), limit });
        }
        let limit = if self.topic.starts_with(RETRY_PREFIX) { RETRY_TOPIC_BYTES_MAX } else { TOPIC_BYTES_MAX };
        if self.topic.len() > limit {
            return Err(AppendError::TopicTooLong { size: self.topic.len(), limit });
        }
        if !is_directory_name(&self.topic) {
            return Err(AppendError::TopicName { topic: self.topic.clone() });
        }
        if self.queue_id < 0 {
            return Err(AppendError::QueueId { queue_id: self.queue_id });
        }
        if has_torn_look(self.properties.as_bytes()) {
            return Err(AppendError::PropertiesZero);
        }
        Ok(())
    }

    fn into_record(mut self, is_sealed: bool) -> Record {
        if let Some(properties) = without_offsets(&self.properties) {
            self.properties = properties;
        }
        let properties = match is_sealed {
            true => with_room_for_seal(&self.properties),
            false if has_seal(&self.properties) => without_seal(&self.properties),
            false => self.properties,
        };
        Record {
            version: RecordVersion::for_topic(&self.topic),
            queue_id: self.queue_id,
            flag: self.flag,
            // Places and store time follow under the append lock.
            queue_offset: QueueOffset::ZERO,
            physical_offset: PhysicalOffset::ZERO,
            sys_flag: SysFlag(self.sys_flag).with_hosts(self.born_host.ip(), self.store_host.ip()),
            born_timestamp: self.born_timestamp,
            born_host: self.born_host,
            store_timestamp: 0,
            store_host: self.store_host,
            reconsume_times: self.reconsume_times,
            prepared_transaction_offset: self.prepared_transaction_offset,
            body: self.body,
            topic: self.topic,
            properties: properties.into(),
        }
    }
}

/// Encode buffers, so that an append allocates nothing in the long run.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<BytesMut>>);

impl Buffers {
    /// More would only be kept after a burst.
    const COUNT_MAX: usize = 16;
    /// Larger ones would hold memory for rare messages.
    const BYTES_MAX: usize = 1 << 20;

    fn take(&self) -> BytesMut {
        self.0.lock().expect("no code that can panic runs under this lock").pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: BytesMut) {
        buffer.clear();
        let mut buffers = self.0.lock().expect("no code that can panic runs under this lock");
        if buffers.len() < Self::COUNT_MAX && buffer.capacity() <= Self::BYTES_MAX {
            buffers.push(buffer);
        }
    }
}

impl Store {
    /// Appends a message to the log, in the page cache: see [`Store::flushed`]. Its queue offset is taken from then on, whatever
    /// becomes of its flush or replication.
    ///
    /// # Errors
    /// Nothing of the message is in the log, now or after a crash.
    pub fn append(&self, message: NewMessage) -> Result<Appended, AppendError> {
        self.check_new(std::slice::from_ref(&message))?;
        let mut record = message.into_record(self.config.seal_records);
        let mut appended = self.append_records(std::slice::from_mut(&mut record))?;
        Ok(appended.pop().expect("one message has one place"))
    }

    /// Appends messages of one queue, next to each other in one segment, all or none.
    ///
    /// # Errors
    /// As [`Store::append`]; and [`AppendError::BadBatch`].
    pub fn append_batch(&self, messages: Vec<NewMessage>) -> Result<Vec<Appended>, AppendError> {
        self.check_new(&messages)?;
        let mut records =
            messages.into_iter().map(|message| message.into_record(self.config.seal_records)).collect::<Vec<_>>();
        self.append_records(&mut records)
    }

    fn check_new(&self, messages: &[NewMessage]) -> Result<(), AppendError> {
        let Some(first) = messages.first() else { return Err(AppendError::BadBatch) };
        if let Some(used_percent) = self.retention.full() {
            rt::probe!("store.append.disk_full");
            return Err(AppendError::DiskFull { used_percent });
        }
        let is_one_queue = |message: &NewMessage| message.topic == first.topic && message.queue_id == first.queue_id;
        if messages.len() > 1 && !messages.iter().all(|m| is_one_queue(m) && is_queued(SysFlag(m.sys_flag))) {
            return Err(AppendError::BadBatch);
        }
        messages.iter().try_for_each(|message| message.check(self.config.max_message_size, self.config.seal_records))
    }

    fn append_records(&self, records: &mut [Record]) -> Result<Vec<Appended>, AppendError> {
        let mut buffer = self.buffers.take();
        let result = self.append_encoded(records, &mut buffer);
        self.buffers.give_back(buffer);
        if let Ok(Some(last)) = result.as_ref().map(|appended| appended.last()) {
            self.appended(last.end);
        }
        result
    }

    fn append_encoded(&self, records: &mut [Record], buffer: &mut BytesMut) -> Result<Vec<Appended>, AppendError> {
        // Checksums and copies are made before the lock is taken.
        let mut places = self.encode(records, buffer)?;
        let is_queued = is_queued(records[0].sys_flag);
        let mut appended = Vec::with_capacity(records.len());
        {
            let mut appender = self.log.lock();
            appender.admit(&self.poison, self.dispatched_end())?;
            let next = match is_queued {
                true => appender.next_offset(&records[0].topic, records[0].queue_id),
                false => QueueOffset::ZERO,
            };
            let light = self.take_light_offsets(&appender, records)?;
            let offsets = take_offsets(records, next)?;
            if !light.is_empty() || records.iter().any(|record| record.sys_flag.has(SysFlag::INNER_BATCH)) {
                places = self.encode(records, buffer)?;
            }
            let first = &records[0];
            let segment = self.log.make_room(&mut appender, buffer.len())?;
            let store_timestamp = appender.stamp();
            let base = appender.end();
            for (place, queue_offset) in places.into_iter().zip(offsets) {
                let [physical, end] =
                    [place.start, place.end].map(|at| base + i64::try_from(at).expect("in a segment"));
                stamp(&mut buffer[place.clone()], queue_offset, physical, store_timestamp);
                if self.config.seal_records {
                    seal(&mut buffer[place]);
                }
                let message_id = MessageId::new(first.store_host, physical);
                appended.push(Appended { physical, end, queue_offset, store_timestamp, message_id });
            }
            self.log.write(&mut appender, &segment, buffer, buffer.len())?;
            if is_queued {
                let messages = records.iter().map(|record| inner_messages(record.sys_flag, &record.properties));
                appender.raise_next(&first.topic, first.queue_id, next + messages.sum());
            }
            for (queue, next) in light.next() {
                appender.raise_next(queue, LIGHT_QUEUE_ID, next);
            }
        }
        Ok(appended)
    }

    /// Writes the records one behind the other into `buffer`; returns where each lies.
    fn encode(&self, records: &[Record], buffer: &mut BytesMut) -> Result<Vec<Range<usize>>, AppendError> {
        buffer.clear();
        let mut places = Vec::with_capacity(records.len());
        for record in records {
            let start = buffer.len();
            record.encode(buffer)?;
            places.push(start..buffer.len());
        }
        let segment_size = self.log.segment_size();
        if (buffer.len() + layout::BLANK_HEADER) as u64 > segment_size {
            return Err(AppendError::TooLongForSegment { size: buffer.len(), segment_size });
        }
        Ok(places)
    }

    /// Puts the offsets of the light queues into the records that name some; that makes them longer.
    fn take_light_offsets(&self, appender: &Appender, records: &mut [Record]) -> Result<LightOffsets, AppendError> {
        let mut light = LightOffsets::default();
        if !self.config.multi_dispatch || !is_queued(records[0].sys_flag) {
            return Ok(light);
        }
        for record in records {
            let first = |name: &str| appender.next_offset(name, LIGHT_QUEUE_ID);
            let Some(properties) = light.take(&record.topic, &record.properties, first) else { continue };
            set_properties(record, properties)?;
            let limit = usize::try_from(self.config.max_message_size).expect("32 bits fit");
            if record.encoded_bytes() > limit {
                return Err(AppendError::LightRecordTooLong { size: record.encoded_bytes(), limit });
            }
        }
        Ok(light)
    }
}

/// The queue offset of each record; one that holds a batch says it besides in a property, for who makes queues of it.
fn take_offsets(records: &mut [Record], first: QueueOffset) -> Result<Vec<QueueOffset>, AppendError> {
    let mut next = first;
    let mut offsets = Vec::with_capacity(records.len());
    for record in records {
        offsets.push(next);
        if record.sys_flag.has(SysFlag::INNER_BATCH) {
            let base = format!("{INNER_BASE}\u{1}{next}\u{2}");
            set_properties(record, [base.as_bytes(), &record.properties].concat())?;
        }
        next = next + inner_messages(record.sys_flag, &record.properties);
    }
    Ok(offsets)
}

/// Properties that became longer under the append lock.
fn set_properties(record: &mut Record, properties: Vec<u8>) -> Result<(), AppendError> {
    if properties.len() > PROPERTIES_BYTES_MAX {
        return Err(AppendError::PropertiesTooLong { size: properties.len(), limit: PROPERTIES_BYTES_MAX });
    }
    record.properties = properties.into();
    Ok(())
}
