//! How much a world holds: memory that does not grow with what went through it, and no work that grows with the square of what is
//! in it. The same loads in full size: `cargo bench -p rt --profile sim --bench scale`.
mod heap;
mod loads;

use heap::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: u64 = 1 << 20;

/// Both directions have a send and a receive buffer of 64 KiB; the rest is the program's own two, and tasks.
#[test]
fn a_gigabyte_goes_through_a_connection_in_the_memory_of_its_buffers() {
    let few = loads::one_connection(64 * MIB);
    let many = loads::one_connection(1024 * MIB);
    assert!(few.peak_bytes < MIB, "{few:?}");
    assert!(many.peak_bytes <= few.peak_bytes + 4096, "memory grew with what went through: {few:?} {many:?}");
    assert_eq!(many.left_bytes, few.left_bytes);
}

#[test]
fn a_hundred_thousand_timers_fire_in_their_order_and_leave_nothing() {
    let once = loads::timers(100_000, 1);
    let again = loads::timers(100_000, 3);
    assert!(once.peak_bytes < 100_000 * 600, "{once:?}");
    // What is left is room for as many.
    assert!(once.left_bytes < 100_000 * 150, "{once:?}");
    assert_eq!(again.left_bytes, once.left_bytes);
    // A later wave finds that room, and others to run first.
    assert!(again.peak_bytes < once.peak_bytes + once.peak_bytes / 20, "{once:?} {again:?}");
}

#[test]
fn a_thousand_nodes_talk_in_one_world_with_one_of_them_cut_off() {
    let load = loads::nodes(1000);
    assert!(load.peak_bytes < 64 * MIB, "{load:?}");
}
