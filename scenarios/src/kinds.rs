//! The kinds of messages: with a tag, delayed by a level or a timer, sent in one batch or in a transaction; and what the listeners of a group do to them.
//!
//! What a message is stands in its name: `producer-1.0.17#Aa@2` has the tag `Aa` and waits for delay level 2, `producer-1.0.18@7s` waits for
//! seven seconds of its own; what follows a `!` is what becomes of its [transaction](crate::transactions). So a history says it, and judges need nothing else.

use crate::plan::{Clients, Operation, Plan};
use crate::transactions::{Fate, has_transactions, open_max};
use serde::{Deserialize, Serialize};
use sim::fault::Kind as Fault;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// `messageDelayLevel`: seconds that a message of level 1, 2, … is held back. RocketMQ's first six.
const LEVEL_SECONDS: [u64; 6] = [1, 5, 10, 30, 60, 120];
/// A timer goes by whole seconds (`timerPrecisionMs`): its messages come when the second of their moment is over.
pub const TIMER_STEP: Duration = Duration::from_secs(1);
/// The level of a first retry when nobody says another; each further one is a level higher.
const FIRST_RETRY_LEVEL: i32 = 3;
/// Tries of a message, the first one included, when its consumer does not say: `retryMaxTimes` and one.
const TRIES_DEFAULT: i32 = 17;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kind<'a> {
    /// What becomes of its transaction; none: it is sent in none.
    pub fate: Option<Fate>,
    /// Its tag.
    pub tag: Option<&'a str>,
    /// Its delay level; 0 for none.
    pub level: i32,
    /// The seconds of its timer; 0 for none.
    pub seconds: u32,
}

impl Kind<'_> {
    /// What the message of that name is.
    pub fn of(key: &str) -> Kind<'_> {
        let (name, wait) = key.rsplit_once('@').unwrap_or((key, ""));
        let (level, seconds) = match wait.strip_suffix('s') {
            Some(seconds) => (0, seconds.parse().unwrap_or(0)),
            None => (wait.parse().unwrap_or(0), 0),
        };
        let (name, tag) = name.split_once('#').map_or((name, None), |(name, tag)| (name, Some(tag)));
        let fate = name.rsplit_once('!').and_then(|(_, fate)| Fate::of(fate));
        Kind { fate, tag, level, seconds }
    }

    /// Whether it is stored first where it waits, and then once more where it is read.
    pub fn is_moved(self) -> bool {
        self.fate.is_some() || self.wait().is_some()
    }

    /// How long a broker holds it back; none: it does not.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Kind { level: 1.., .. } => Some(delay(self.level)),
            Kind { seconds: 1.., .. } => Some(Duration::from_secs(self.seconds.into())),
            _ => None,
        }
    }
}

/// The end of a name.
impl Display for Kind<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let Some(fate) = self.fate {
            write!(out, "!{fate}")?;
        }
        if let Some(tag) = self.tag {
            write!(out, "#{tag}")?;
        }
        if self.level > 0 {
            write!(out, "@{}", self.level)?;
        } else if self.seconds > 0 {
            write!(out, "@{}s", self.seconds)?;
        }
        Ok(())
    }
}

/// How long a level holds a message back.
///
/// # Panics
/// If there is no such level; plans use the first six.
pub fn delay(level: i32) -> Duration {
    let place = usize::try_from(level - 1).expect("levels begin at 1");
    Duration::from_secs(LEVEL_SECONDS[place])
}

/// The kinds of the messages of one burst, over and over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kinds {
    /// Message *n* has the *n*-th of these; an empty text is no tag.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Message *n* has the *n*-th of these; 0 is no delay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<i32>,
    /// Message *n* waits for the *n*-th of these seconds, unless it has a level; 0 is no timer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<u32>,
    /// The transaction of message *n* ends as the *n*-th of these says; an empty text is no transaction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fates: Vec<String>,
    /// How long a local transaction takes: none, one or two times that, by the message's number.
    #[serde(with = "sim::duration", skip_serializing_if = "Duration::is_zero")]
    pub local: Duration,
    /// So many are sent at once, as a batch; none of them waits, whatever its level, timer or fate. Below 2: each by itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub batch: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Kinds {
    /// Whether all are plain messages, each by itself.
    pub fn is_plain(&self) -> bool {
        *self == Kinds::default()
    }

    /// The kind of message `number`.
    pub fn of(&self, number: u32) -> Kind<'_> {
        let place = usize::try_from(number).expect("a number of messages");
        let tag = self.tags.get(place % self.tags.len().max(1)).map(String::as_str);
        let tag = tag.filter(|tag| !tag.is_empty());
        if self.batch > 1 {
            return Kind { tag, ..Kind::default() };
        }
        let level = self.levels.get(place % self.levels.len().max(1)).copied().unwrap_or(0);
        let seconds = self.timers.get(place % self.timers.len().max(1)).copied().unwrap_or(0);
        let fate = self.fates.get(place % self.fates.len().max(1)).and_then(|fate| Fate::of(fate));
        Kind { fate, tag, level, seconds: if level > 0 { 0 } else { seconds } }
    }
}

/// What a listener cannot consume at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failing {
    /// Of so many messages one fails.
    pub one_in: u32,
    /// So often.
    pub times: i32,
    /// The delay level that the listener asks for; 0 leaves it to the broker.
    pub level: i32,
    /// Retries before the message is buried in the dead letter topic (`maxReconsumeTimes`); none: the broker's number.
    pub retries_max: Option<i32>,
}

impl Failing {
    /// Whether a listener fails on this message when it has come back so often.
    pub fn fails(&self, key: &str, reconsume_times: i32) -> bool {
        // The number at the end of a name, so that the messages of a queue are not all of one sort.
        let digits = key
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0_u32, |sum, digit| sum.wrapping_mul(31).wrapping_add(u32::from(digit)));
        reconsume_times < self.times && digits.is_multiple_of(self.one_in.max(1))
    }

    /// The level at which a message waits that was handed back when it had come back so often.
    pub fn level_after(&self, reconsume_times: i32) -> i32 {
        if self.level > 0 { self.level } else { FIRST_RETRY_LEVEL + reconsume_times }
    }

    /// Retries before a message is buried.
    pub fn retries(&self) -> i32 {
        self.retries_max.unwrap_or(TRIES_DEFAULT - 1)
    }

    /// The longest time that a message spends waiting for its retries.
    fn wait_max(&self) -> Duration {
        (0..self.times.min(self.retries())).map(|times| delay(self.level_after(times))).sum()
    }
}

/// Whether some messages of the plan are not plain, or a group does more than to consume all of them.
pub fn has_kinds(plan: &Plan) -> bool {
    let varied = |operation: &Operation| matches!(operation, Operation::Send { kinds, .. } if !kinds.is_plain());
    plan.operations.iter().any(varied)
        || plan.clients.consumers.iter().any(|consumer| !consumer.tags.is_empty() || consumer.failing.is_some())
}

/// What the group subscribes to; empty: everything.
pub fn subscription<'a>(clients: &'a Clients, group: &str) -> &'a [String] {
    clients.consumers.iter().find(|consumer| consumer.group == group).map_or(&[], |consumer| &consumer.tags)
}

/// Whether the group subscribes to the message of that name.
pub fn is_wanted(clients: &Clients, group: &str, key: &str) -> bool {
    let tags = subscription(clients, group);
    tags.is_empty() || Kind::of(key).tag.is_some_and(|tag| tags.iter().any(|wanted| wanted == tag))
}

/// How the group's listeners fail.
pub fn failing(clients: &Clients, group: &str) -> Option<Failing> {
    clients.consumers.iter().find(|consumer| consumer.group == group).and_then(|consumer| consumer.failing)
}

/// The end of a probe's name: what each group subscribes to, if there is such a thing.
pub fn probe_kind(clients: &Clients) -> Kind<'_> {
    let tag = clients.consumers.iter().find_map(|consumer| consumer.tags.first());
    Kind { tag: tag.map(String::as_str), ..Kind::default() }
}

/// How much longer than a plain message one of the plan may take to be consumed: its transaction, its delay, then all of its retries, each once more if
/// a clock is set back meanwhile, how far clocks were ahead of a timer, and the broker's pause after a failed delivery.
pub fn wait_max(plan: &Plan) -> Duration {
    let kinds = plan.operations.iter().filter_map(|operation| match operation {
        Operation::Send { kinds, .. } => Some(kinds),
        _ => None,
    });
    let waits = kinds.flat_map(|kinds| {
        let levels = kinds.levels.iter().filter(|level| **level > 0).map(|level| delay(*level));
        levels.chain(kinds.timers.iter().map(|seconds| Duration::from_secs((*seconds).into()) + TIMER_STEP))
    });
    let sent = waits.max().unwrap_or_default();
    let retried =
        plan.clients.consumers.iter().filter_map(|consumer| consumer.failing).map(|failing| failing.wait_max());
    let after_an_error = if has_kinds(plan) { Duration::from_secs(10) } else { Duration::ZERO };
    let sets_clocks = plan.faults.iter().any(|fault| matches!(fault.fault, Fault::ClockStep(_)));
    let waits = (open_max(plan) + sent + retried.max().unwrap_or_default()) * if sets_clocks { 2 } else { 1 };
    waits + clocks_ahead(plan) + after_an_error
}

/// A moment is one by the clock of the broker that took the message, and so is the age of a half. If that was ahead and is set right, the message is late by as much.
fn clocks_ahead(plan: &Plan) -> Duration {
    let has_moments = has_transactions(plan)
        || plan.operations.iter().any(
        |operation| matches!(operation, Operation::Send { kinds, .. } if kinds.timers.iter().any(|seconds| *seconds > 0)),
    );
    let ahead = plan.faults.iter().filter_map(|fault| match &fault.fault {
        Fault::ClockStep(step) if has_moments && !step.back => Some(step.by),
        _ => None,
    });
    ahead.sum()
}

#[cfg(test)]
mod tests {
    use super::{Failing, Kind, Kinds};
    use crate::transactions::Fate;
    use std::time::Duration;

    #[test]
    fn a_name_says_what_its_message_is() {
        for kind in [
            Kind::default(),
            Kind { tag: Some("Aa"), ..Kind::default() },
            Kind { level: 2, ..Kind::default() },
            Kind { tag: Some("BB"), level: 4, ..Kind::default() },
            Kind { tag: Some("BB"), seconds: 17, ..Kind::default() },
            Kind { fate: Some(Fate { commits: true, asked: 0 }), ..Kind::default() },
            Kind { fate: Some(Fate { commits: false, asked: 2 }), tag: Some("C"), level: 1, seconds: 0 },
        ] {
            let name = format!("producer-1.0.17{kind}");
            assert_eq!(Kind::of(&name), kind, "{name}");
        }
    }

    #[test]
    fn kinds_come_over_and_over_and_batches_do_not_wait() {
        let kinds = Kinds {
            tags: vec!["a".into(), String::new()],
            levels: vec![0, 0, 3],
            timers: vec![0, 9, 9],
            fates: vec![String::new(), String::new(), "r1".into(), "c".into()],
            local: Duration::ZERO,
            batch: 0,
        };
        let names: Vec<String> = (0..6).map(|number| kinds.of(number).to_string()).collect();
        assert_eq!(names, ["#a", "@9s", "!r1#a@3", "!c", "#a@9s", "@3"]);
        assert_eq!(Kinds { batch: 2, ..kinds }.of(2).to_string(), "#a");
        assert_eq!(Kinds::default().of(7), Kind::default());
    }

    #[test]
    fn a_message_fails_a_few_times_and_waits_longer_each_time() {
        let failing = Failing { one_in: 1, times: 2, level: 0, retries_max: Some(1) };
        assert_eq!([0, 1, 2].map(|times| failing.fails("m.1", times)), [true, true, false]);
        assert_eq!([0, 1].map(|times| failing.level_after(times)), [3, 4]);
        assert_eq!(failing.wait_max().as_secs(), 10, "the second failure buries it");
    }
}
