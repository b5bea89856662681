//! Keep-alive, as Linux's `tcp_keepalive_timer` does it: an idle peer is asked, and one that does not answer is given up.
use super::Net;
use super::connection::End;
use super::event::{ConnectionId, NetworkEvent};
use super::pipe::Fin;
use super::stream::TcpStream;
use super::window_probe::Probed;
use crate::keep_alive::KeepAlive;
use crate::sim::world::World;
use std::io;

/// Keep-alive of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    options: KeepAlive,
    /// When its timer fires; an event of another time is void.
    at: u64,
    /// Probes since the peer was last heard.
    unanswered: u32,
}

/// Turns keep-alive on, with these options and from now on, or off (`None`), as it is at first.
///
/// While nothing is on its way, a peer of which nothing was heard for [`KeepAlive::idle`] is asked; see there. A stream that waits for an
/// acknowledgement is given up by its retransmission timer instead.
///
/// # Errors
/// `InvalidInput`: an option out of its bounds. `NotConnected`: the stream's process is gone.
pub fn set_keep_alive(stream: &TcpStream, options: Option<KeepAlive>) -> io::Result<()> {
    let options = options.map(KeepAlive::checked).transpose()?;
    stream.with_connection(|world, net, id, side| net.set_keep_alive(world, id, side, options))
}

/// As [`set_keep_alive`] left it.
pub fn keep_alive(stream: &TcpStream) -> io::Result<Option<KeepAlive>> {
    stream
        .with_connection(|_, net, id, side| net.connections.at(id).keep_alive[side].as_ref().map(|watch| watch.options))
}

impl Net {
    fn set_keep_alive(&mut self, world: &World, id: ConnectionId, side: usize, options: Option<KeepAlive>) {
        let watch = options.map(|options| Box::new(Watch { options, at: 0, unanswered: 0 }));
        self.connections.at(id).keep_alive[side] = watch;
        if let Some(options) = options {
            self.keep_alive_after(world, id, side, world.now.get() + nanos(options.idle));
        }
    }

    fn keep_alive_after(&mut self, world: &World, id: ConnectionId, side: usize, at: u64) {
        if let Some(watch) = &mut self.connections.at(id).keep_alive[side] {
            watch.at = at;
            Net::schedule(world, at, NetworkEvent::KeepAlive { connection: id, side: side as u8 });
        }
    }

    /// The keep-alive timer fires.
    pub(super) fn keep_alive_due(&mut self, world: &World, id: ConnectionId, side: usize) {
        let now = world.now.get();
        let connection = self.connections.at(id);
        let Some(watch) = &mut connection.keep_alive[side] else { return };
        if watch.at != now || connection.end[side] != End::Open {
            return;
        }
        let options = watch.options;
        let heard_at = connection.heard_at[side];
        let pipe = &connection.pipe[side];
        let busy = pipe.unsent() > 0 || pipe.flying() > 0 || pipe.fin == Fin::Sent || pipe.retry.at.is_some();
        if busy {
            return self.keep_alive_after(world, id, side, now + nanos(options.idle));
        }
        if now - heard_at < nanos(options.idle) {
            watch.unanswered = 0;
            return self.keep_alive_after(world, id, side, heard_at + nanos(options.idle));
        }
        if watch.unanswered >= options.probes {
            self.effects.streams_timed_out += 1;
            self.reset_towards(world, id, 1 - side);
            return self.fail(world, id, side, io::ErrorKind::TimedOut);
        }
        let answered = self.probe(world, id, side) == Probed::Answered;
        let connection = self.connections.at(id);
        if answered {
            connection.heard_at[side] = now;
        }
        if let Some(watch) = &mut connection.keep_alive[side] {
            watch.unanswered = if answered { 0 } else { watch.unanswered + 1 };
        }
        let wait = if answered { options.idle } else { options.interval };
        self.keep_alive_after(world, id, side, now + nanos(wait));
    }
}

/// It was checked to be at most some hours.
fn nanos(duration: std::time::Duration) -> u64 {
    duration.as_secs() * 1_000_000_000
}
