//! Reading for those who choose by the properties of a message: several reads of the store become one answer.
use crate::filter::PropertyFilter;
use bytes::Bytes;
use protocol::QueueOffset;
use store::{GetOutcome, GetRequest, GetStatus, ReadError, Store, StoreConfig};

/// Bytes of a queue's entry, in which `maxFilterMessageSize` counts.
const ENTRY_BYTES: u32 = 20;

/// As [`Store::get`], without the messages that the filter does not want: as many wanted ones as the request allows, out of at most as
/// many entries as one read of the store looks at.
pub(crate) async fn read(
    store: &Store,
    config: &StoreConfig,
    mut request: GetRequest,
    filter: &PropertyFilter,
) -> Result<GetOutcome, ReadError> {
    let entries_max = i64::from((config.max_filter_bytes / ENTRY_BYTES).max(request.max_messages));
    let until = request.from + entries_max;
    let mut kept = Kept::new(config, &request);
    let mut look = store.get_where(request.clone(), filter.of_entries()).await?;
    if look.status != GetStatus::Found {
        return Ok(look);
    }
    loop {
        if let Some(next) = kept.take(&mut look, filter) {
            look.next = next;
            break;
        }
        if look.next >= look.max.min(until) || look.next <= request.from {
            break;
        }
        request.from = look.next;
        let further = store.get_where(request.clone(), filter.of_entries()).await?;
        if !matches!(further.status, GetStatus::Found | GetStatus::MessageWasRemoving) {
            break;
        }
        look = further;
    }
    look.status = if kept.records.is_empty() { GetStatus::NoMatchedMessage } else { GetStatus::Found };
    look.body = kept.records.concat().into();
    (look.records, look.offsets) = (kept.records, kept.offsets);
    Ok(look)
}

/// The wanted messages so far.
struct Kept {
    records: Vec<Bytes>,
    offsets: Vec<QueueOffset>,
    bytes: usize,
    messages_max: usize,
    bytes_max: usize,
}

impl Kept {
    fn new(config: &StoreConfig, request: &GetRequest) -> Kept {
        let size = |number: u32| usize::try_from(number).expect("32 bits fit");
        Kept {
            records: Vec::new(),
            offsets: Vec::new(),
            bytes: 0,
            messages_max: size(request.max_messages.min(config.max_transfer_count_memory)),
            bytes_max: size(request.max_bytes.min(config.max_transfer_bytes_memory)),
        }
    }

    /// Takes what is wanted of a read; the offset to go on from if not all of it was looked at, because there is enough.
    fn take(&mut self, look: &mut GetOutcome, filter: &PropertyFilter) -> Option<QueueOffset> {
        for (record, offset) in look.records.drain(..).zip(look.offsets.drain(..)) {
            let is_full =
                self.records.len() >= self.messages_max || self.bytes.saturating_add(record.len()) > self.bytes_max;
            if is_full && !self.records.is_empty() {
                return Some(offset);
            }
            if filter.wants_record(&record) {
                self.bytes += record.len();
                self.records.push(record);
                self.offsets.push(offset);
            }
        }
        None
    }
}
