//! Groups whose members come and go.

use crate::STAND;

#[test]
fn members_come_and_go_without_a_skipped_message() {
    STAND.holds("members_come_and_go_without_a_skipped_message", 10);
}
