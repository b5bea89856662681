//! A table of sessions: one that was not renewed for two seconds is over.

use super::{RUN, SECOND};
use proptest::strategy::BoxedStrategy;
use rt::rand::Rng;
use rt::time::{Instant, interval, sleep, unix_ms};
use sim::desk::Desk;
use sim::fault::Fault;
use sim::nemesis::Nemesis;
use sim::verdict::Violation;
use std::collections::BTreeMap;
use std::time::Duration;

pub const CLAIM: &str = "a session that is over is not accepted";

const LIFE: Duration = Duration::from_secs(2);
/// The table is swept that often.
const SWEEP: Duration = Duration::from_millis(500);

pub fn faults() -> BoxedStrategy<Vec<Fault>> {
    super::faults(&["clock_step", "clock_drift", "clock_freeze", "suspend", "pause"], &["server"])
}

/// When a session was renewed, by both clocks; which one counts is the bug.
#[derive(Debug, Clone, Copy)]
struct Renewed {
    own: Instant,
    wall_ms: i64,
}

impl Renewed {
    fn now() -> Renewed {
        Renewed { own: Instant::now(), wall_ms: unix_ms() }
    }

    fn is_over(&self, planted: bool) -> bool {
        if planted { unix_ms() - self.wall_ms > LIFE.as_millis() as i64 } else { self.own.elapsed() > LIFE }
    }
}

/// Sessions are renewed and used at random; a use is accepted if the table has the session.
async fn serve(desk: Desk, planted: bool) {
    let mut random = rt::rand::stream("users");
    let mut sessions: BTreeMap<u8, Renewed> = BTreeMap::new();
    let mut sweep = interval(SWEEP);
    loop {
        rt::select! {
            _ = sweep.tick() => sessions.retain(|_, renewed| !renewed.is_over(planted)),
            () = sleep(SECOND / 20) => {
                let user = random.random_range(0..8);
                if random.random_bool(0.3) {
                    sessions.insert(user, Renewed::now());
                } else if let Some(renewed) = sessions.get(&user).filter(|renewed| !renewed.is_over(planted)) {
                    let age = renewed.own.elapsed();
                    if age > LIFE {
                        let summary = format!("session {user} is accepted {} ms after it was renewed", age.as_millis());
                        return desk.violated(Violation::new(CLAIM, summary));
                    }
                    desk.count("accepted", 1);
                }
            }
        }
    }
}

pub async fn run(desk: Desk, faults: &[Fault], planted: bool) {
    let server = rt::world::add_node("server");
    drop(rt::world::spawn_on(server, serve(desk.clone(), planted)));
    let nemesis = Nemesis::new(&desk, |_, _| {}).node("server", server, || {});
    let loose = nemesis.release(faults).expect("faults name this node");
    sleep(RUN).await;
    loose.heal().await;
}
