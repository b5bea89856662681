//! Entropy by named streams, so that one extra draw in one place does not shift the draws of another.
//!
//! In simulation a stream is seeded by (world seed, node, name, how often this node asked for that name) and every draw goes into
//! the trace; in production it is seeded by the operating system.

pub use rand::{Rng, RngCore, SeedableRng, seq};

/// A stream of random numbers.
#[derive(Debug)]
pub struct Stream(crate::half::rand::Source);

/// Opens the stream of that name.
pub fn stream(name: &'static str) -> Stream {
    Stream(crate::half::rand::source(name))
}

impl RngCore for Stream {
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
    fn next_u64(&mut self) -> u64 {
        self.0.next()
    }
    fn fill_bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
