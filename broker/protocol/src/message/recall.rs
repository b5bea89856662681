//! The handle by which a timer message is recalled (`RecallMessageHandle`): opaque to clients, made and read by brokers.
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;

/// What a handle says: `v1 topic broker moment key`, in Base64 for URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallHandle {
    /// Topic of the message.
    pub topic: String,
    /// Name of the broker that has it.
    pub broker_name: String,
    /// A moment inside of the message's slot, Unix milliseconds.
    pub deliver_ms: i64,
    /// Unique key of the message.
    pub unique_key: String,
}

impl RecallHandle {
    /// As it is sent.
    #[must_use]
    pub fn encode(&self) -> String {
        let RecallHandle { topic, broker_name, deliver_ms, unique_key } = self;
        URL_SAFE.encode(format!("v1 {topic} {broker_name} {deliver_ms} {unique_key}"))
    }

    /// Reads what a client gave back; `None` if no broker made it.
    #[must_use]
    pub fn decode(text: &str) -> Option<RecallHandle> {
        let text = String::from_utf8(URL_SAFE.decode(text).ok()?).ok()?;
        let fields: Vec<&str> = text.split(' ').collect();
        let ["v1", topic, broker_name, deliver_ms, unique_key] = fields[..] else { return None };
        Some(RecallHandle {
            topic: topic.to_owned(),
            broker_name: broker_name.to_owned(),
            deliver_ms: deliver_ms.parse().ok()?,
            unique_key: unique_key.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RecallHandle;

    /// Of a handle that Apache's broker 5.3.3 made.
    #[test]
    fn a_handle_has_apaches_bytes() {
        let text = "djEgV2lyZUV4dHJhIGdvbGRlbi1hIDE3OTU5NzM3OTEwMDEgN0YwMDAwMDE0ODIwNUZGRDJCMjc5M0Y3ODEzRDAwMTE=";
        let handle = RecallHandle {
            topic: "WireExtra".to_owned(),
            broker_name: "golden-a".to_owned(),
            deliver_ms: 1_795_973_791_001,
            unique_key: "7F00000148205FFD2B2793F7813D0011".to_owned(),
        };
        assert_eq!(RecallHandle::decode(text), Some(handle.clone()));
        assert_eq!(handle.encode(), text);
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        for bad in ["", "?", "djEgYQ==", "djIgYSBiIDEgYw==", "djEgYSBiIHggYw=="] {
            assert_eq!(RecallHandle::decode(bad), None, "{bad}");
        }
    }
}
