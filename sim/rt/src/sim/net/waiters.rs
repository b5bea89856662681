//! Tasks that wait for one thing.
use std::task::{Context, Waker};

/// Each waiting task once, in the order of waiting. All are woken: the first that runs finds what the others then wait for again.
#[derive(Debug, Default)]
pub(super) struct Waiters(Vec<Waker>);

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }

    pub(super) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}
