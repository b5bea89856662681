//! Delayed messages, tags, batches and listeners that fail, whatever happens to the servers.

use crate::STAND;

#[test]
fn each_kind_of_message_keeps_its_promise() {
    STAND.holds("each_kind_of_message_keeps_its_promise", 12);
}
