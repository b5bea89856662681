//! The key-value configuration: namespaces of keys and values. RocketMQ itself uses one, for the queues of ordered topics.

use std::collections::BTreeMap;

use protocol::JsonError;
use protocol::body::KvTable;
use serde::{Deserialize, Serialize};

/// Namespace of the order configuration: topic to `brokerName:queues;…`.
pub const NAMESPACE_ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

/// All namespaces. Its JSON is RocketMQ's `kvConfig.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KvConfig {
    config_table: BTreeMap<String, BTreeMap<String, String>>,
}

impl KvConfig {
    /// Reads the file's text.
    ///
    /// # Errors
    /// The text is damaged.
    pub fn from_json(bytes: &[u8]) -> Result<Self, JsonError> {
        protocol::json::from_slice(bytes)
    }

    /// The file's text.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        protocol::json::to_vec(self).expect("a table of texts can be written")
    }

    /// Sets a value.
    pub fn put(&mut self, namespace: &str, key: &str, value: &str) {
        self.config_table.entry(namespace.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
    }

    /// A value.
    #[must_use]
    pub fn get(&self, namespace: &str, key: &str) -> Option<&str> {
        self.config_table.get(namespace)?.get(key).map(String::as_str)
    }

    /// Removes a value.
    pub fn delete(&mut self, namespace: &str, key: &str) {
        if let Some(values) = self.config_table.get_mut(namespace) {
            values.remove(key);
        }
    }

    /// All values of a namespace.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Option<KvTable> {
        Some(KvTable { table: self.config_table.get(namespace)?.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::KvConfig;

    #[test]
    fn text_of_the_file() {
        let mut config = KvConfig::default();
        config.put("ORDER_TOPIC_CONFIG", "T", "b:4");
        config.put("N", "k", "v");
        config.delete("N", "k");
        let text = String::from_utf8(config.to_json()).unwrap();
        insta::assert_snapshot!(text, @r#"{"configTable":{"N":{},"ORDER_TOPIC_CONFIG":{"T":"b:4"}}}"#);
        assert_eq!(KvConfig::from_json(text.as_bytes()), Ok(config));
        assert!(KvConfig::from_json(b"{\"configTable\":").is_err());
    }
}
