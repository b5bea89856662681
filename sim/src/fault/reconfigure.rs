//! The operator starts the program again with another version of its configuration, and later with the first one.

use super::stop::stop_in_order;
use super::{Act, stage::Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ends the program of a node and starts it at once with the configuration of that name; the end of the fault does the same with what
/// counted before. Whoever starts the program meanwhile, such as the end of a crash, starts it with that configuration too; of several
/// reconfigurations of one node the last one begun that is not over counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconfigure {
    /// Whose.
    pub node: String,
    /// One of those that the scenario has named for the node ([`Nemesis::configured_node`](crate::nemesis::Nemesis::configured_node)),
    /// but not the first.
    pub configuration: String,
    /// How the program ends, both times.
    pub by: Ending,
}

/// How an operator ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// At once, as by `kill -9`.
    Crash,
    /// The program is asked to end, and killed if it does not.
    Stop {
        /// How long it may take.
        #[serde(with = "crate::duration")]
        grace: Duration,
    },
}

impl Reconfigure {
    async fn restart(&self, stage: &Stage) {
        match self.by {
            Ending::Crash => stage.take_down(&self.node, rt::world::crash),
            Ending::Stop { grace } => stop_in_order(stage, &self.node, grace).await,
        };
        stage.bring_up(&self.node);
    }
}

impl Act for Reconfigure {
    const UNIT: &'static str = "reconfigured starts";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    fn configuration(&self) -> Option<(&str, &str)> {
        Some((&self.node, &self.configuration))
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let configured = stage.configure(&self.node, &self.configuration);
        self.restart(stage).await;
        stage.hold(lasts).await;
        let (starts, runs_on) = stage.restore(&self.node, configured);
        if !runs_on {
            self.restart(stage).await;
        }
        starts
    }
}
