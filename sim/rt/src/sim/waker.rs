//! Wakers without memory: the data pointer is `generation << 32 | slot`, an integer that is never dereferenced. Clone is a copy,
//! drop does nothing, a waker of an ended task wakes nobody.
use super::world::try_world;
use std::task::{RawWaker, RawWakerVTable, Waker};

const _: () = assert!(usize::BITS == 64, "a waker packs two 32-bit numbers into a pointer");

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| {});

/// The waker of the task in `slot`, as long as the slot has that generation.
#[inline]
pub(super) fn waker(slot: u32, generation: u32) -> Waker {
    let data = std::ptr::without_provenance::<()>((generation as usize) << 32 | slot as usize);
    // SAFETY: the functions never dereference the data, hold no resource, and do nothing on a thread without a world.
    unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
}

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &VTABLE)
}

fn wake(data: *const ()) {
    if let Some(world) = try_world() {
        let packed = data.addr();
        world.executor.wake(packed as u32, (packed >> 32) as u32);
    }
}
