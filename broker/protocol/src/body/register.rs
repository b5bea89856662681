//! Body of REGISTER_BROKER, as JSON and in the compressed form that brokers with `compressedRegister` send.
//!
//! ```text
//! zlib of:  len i32, DataVersion JSON | topics i32, ( len i32, line )* | len i32, filter servers JSON
//!           from 5.0.0 on: mappings i32, ( len i32, TopicQueueMappingInfo JSON )*
//! line:     name readQueues writeQueues perm filterType [attributes JSON]
//! ```

use super::{TopicConfig, TopicConfigSerializeWrapper, TopicQueueMappingInfo, body};
use crate::error::RegisterBodyError;
use crate::header::TopicFilterType;
use crate::json;
use crate::lossy::lossy;
use crate::message::CompressionType;
use crate::message::compression::decompress;

/// Bounds a registration once it is decompressed: enough for a hundred thousand topics.
const PLAIN_BYTES_MAX: usize = 32 << 20;
/// From this version (5.0.0) on, mappings of static topics follow.
const VERSION_WITH_MAPPINGS: i32 = 413;

body! {
    /// Body of REGISTER_BROKER.
    RegisterBrokerBody {
        /// Filter servers; no longer used.
        filter_server_list: Vec<String>,
        /// Topics of the broker.
        topic_config_serialize_wrapper: TopicConfigSerializeWrapper,
    }
}

impl RegisterBrokerBody {
    /// Reads either form; `version` is the sender's.
    ///
    /// # Errors
    /// The bytes are neither.
    pub fn decode(bytes: &[u8], compressed: bool, version: i32) -> Result<Self, RegisterBodyError> {
        if !compressed {
            return Ok(json::from_slice(bytes)?);
        }
        let plain = decompress(bytes, CompressionType::Zlib, PLAIN_BYTES_MAX)?;
        let mut parts = Parts { rest: &plain };
        let mut wrapper = TopicConfigSerializeWrapper {
            data_version: json::from_slice(parts.next("data version")?)?,
            ..TopicConfigSerializeWrapper::default()
        };
        for _ in 0..parts.count("topics")? {
            let topic = topic(&lossy(parts.next("topic")?))?;
            wrapper.topic_config_table.insert(topic.topic_name.clone(), topic);
        }
        let filter_server_list = json::from_slice(parts.next("filter servers")?)?;
        if version >= VERSION_WITH_MAPPINGS {
            let mappings = wrapper.topic_queue_mapping_info_map.get_or_insert_default();
            for _ in 0..parts.count("mappings")? {
                let mapping: TopicQueueMappingInfo = json::from_slice(parts.next("mapping")?)?;
                mappings.insert(mapping.topic.clone(), mapping);
            }
        }
        Ok(Self { filter_server_list, topic_config_serialize_wrapper: wrapper })
    }
}

fn topic(line: &str) -> Result<TopicConfig, RegisterBodyError> {
    let malformed = || RegisterBodyError::Topic { line: line.chars().take(64).collect() };
    let mut words = line.splitn(6, ' ');
    let mut word = || words.next().ok_or_else(malformed);
    let number = |word: &str| word.parse::<i32>().map_err(|_| malformed());
    let name = word()?;
    let (read, write, perm) = (number(word()?)?, number(word()?)?, number(word()?)?);
    let topic_filter_type = match word()? {
        "MULTI_TAG" => TopicFilterType::MultiTag,
        _ => TopicFilterType::SingleTag,
    };
    let attributes = match word() {
        Ok(text) if !text.is_empty() => json::from_str(text)?,
        _ => std::collections::BTreeMap::new(),
    };
    let base = TopicConfig::new(name, read).with_perm(perm);
    Ok(TopicConfig { write_queue_nums: write, topic_filter_type, attributes, ..base })
}

struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    /// A number of parts. Not trusted with memory: each part is read before room is made for it.
    fn count(&mut self, part: &'static str) -> Result<usize, RegisterBodyError> {
        let (word, rest) = self.rest.split_first_chunk::<4>().ok_or(RegisterBodyError::Truncated { part })?;
        self.rest = rest;
        usize::try_from(i32::from_be_bytes(*word)).map_err(|_| RegisterBodyError::Truncated { part })
    }

    fn next(&mut self, part: &'static str) -> Result<&'a [u8], RegisterBodyError> {
        let bytes = self.count(part)?;
        let (head, rest) = self.rest.split_at_checked(bytes).ok_or(RegisterBodyError::Truncated { part })?;
        self.rest = rest;
        Ok(head)
    }
}
