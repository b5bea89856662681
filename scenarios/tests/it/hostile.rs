//! The promises of fail-over in a world where more goes wrong.

use crate::STAND;

#[test]
fn nothing_promised_is_lost_in_a_hostile_world() {
    STAND.holds("nothing_promised_is_lost_in_a_hostile_world", 20);
}
