//! The claims that Hotfire makes about its broker, run in the simulator.
//!
//! **Owns** what a run is (plans, how they are drawn, clusters, workloads), the oracle (`invariant`), and the suites: each scenario
//! is a claim that a user of RocketMQ may rely on. The servers and clients inside are the production code, booted by
//! `broker::run` as in production.
//!
//! **Must never know** how faults are applied, seeds are forked or tables drawn: that is `sim`. It sees both `sim` and `broker`; nothing
//! else does.
//!
//! | module | what it gives |
//! |---|---|
//! | [`plan`], [`draw`] | what one run does, as data; how it is drawn from a seed |
//! | [`variation`], [`simpler`](mod@simpler), [`neighbour`](mod@neighbour) | how plans are varied: simpler ones for a failing one, those near a known one |
//! | [`kinds`], [`ledger`], [`kinds_look`] | tags, delays, batches and failures; what a master's log says of them; what a look shows |
//! | [`transactions`] | messages that their producers commit or roll back |
//! | [`machines`], [`node_config`] | the nodes, and the configuration text of each server |
//! | [`producers`], [`consumers`], [`observer`] | who sends, who consumes, who looks |
//! | [`consumed`] | what groups have finished, from look to look |
//! | [`expiry`] | what brokers removed because it had expired |
//! | [`operation`], [`evidence`] | the history's vocabulary; what judges look at |
//! | [`invariant`], [`faults`] | the oracle, one property a file; what faults excuse |
//! | [`system_states`] | what a guided campaign looks for |
//! | [`run`](mod@run) | boot, safety phase, healing, liveness phase, verdict |
//! | [`frames`], [`chronicle`], [`breach`] | a run in words: messages, operations, states, charts, the events a verdict speaks of |
//! | [`suite`] | the scenarios, and the registry that the binary and the tests share |

#[cfg(not(madsim))]
compile_error!(
    "the scenarios run in the simulator only, and this build lost `--cfg madsim`: a RUSTFLAGS variable in the environment replaces the \
     flags of .cargo/config.toml; unset it. (For a production build leave this package out: `cargo prod build -p broker`.)"
);

pub mod breach;
pub mod chronicle;
pub mod consumed;
pub mod consumers;
pub mod disk_losses;
pub mod draw;
pub mod evidence;
pub mod expiry;
pub mod faults;
pub mod frames;
pub mod invariant;
pub mod kinds;
pub mod kinds_look;
pub mod ledger;
pub mod machines;
pub mod neighbour;
pub mod node_config;
pub mod observer;
pub mod operation;
pub mod plan;
pub mod producers;
pub mod run;
pub mod simpler;
pub mod suite;
pub mod system_states;
pub mod transactions;
pub mod variation;

pub use suite::registry;
