//! Whatever happens to the servers, each promise holds.

use crate::STAND;

#[test]
fn nothing_promised_is_lost_across_fail_over() {
    STAND.holds("nothing_promised_is_lost_across_fail_over", 12);
}
