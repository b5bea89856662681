//! The newcomer's example.

use crate::STAND;

#[test]
fn a_late_member_soon_gets_its_first_message() {
    STAND.holds("a_late_member_soon_gets_its_first_message", 12);
}
