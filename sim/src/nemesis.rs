//! The one who lets a schedule of faults loose on named nodes, and heals them.

use crate::atlas::Atlas;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::fault::stage::Stage;
use crate::report::Effect;
use rt::sync::CancellationToken;
use rt::task::JoinHandle;
use rt::world::NodeId;
use std::sync::Arc;
use thiserror::Error;

/// A schedule that names something which nobody put on the stage.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// A node.
    #[error("fault {fault:?} names node {node:?}, which this run does not have")]
    UnknownNode {
        /// The fault.
        fault: String,
        /// The name.
        node: String,
    },
    /// A configuration that is not one of its node's, or the one that it has without faults.
    #[error("fault {fault:?} wants configuration {configuration:?} of node {node:?}, whose other ones are {others:?}")]
    UnknownConfiguration {
        /// The fault.
        fault: String,
        /// The node.
        node: String,
        /// The name.
        configuration: String,
        /// What it could have named.
        others: Vec<String>,
    },
}

/// Knows the nodes and how each is started again.
#[derive(Debug)]
pub struct Nemesis {
    stage: Stage,
    desk: Desk,
}

impl Nemesis {
    /// One who knows no node yet. `observe` is told what happens to which node: give it [`Recorder::node`](crate::history::Recorder::node).
    pub fn new(desk: &Desk, observe: impl Fn(&str, &str) + Send + Sync + 'static) -> Nemesis {
        Nemesis { stage: Stage::new(desk, Arc::new(observe)), desk: desk.clone() }
    }

    /// Adds a node. `boot` starts its program, with [`rt::world::spawn_on`]; it is called after each fault that took the node down.
    #[must_use]
    pub fn node(self, name: &str, node: NodeId, boot: impl Fn() + Send + Sync + 'static) -> Nemesis {
        self.configured_node(name, node, &["the only one"], move |_| boot())
    }

    /// As [`node`](Self::node), for a program that may be started with several `configurations`. `boot` is given the name of the one
    /// that counts: the first, or what a [`reconfigure`](crate::fault::reconfigure) fault names.
    ///
    /// # Panics
    /// If there is none, or two of one name.
    #[must_use]
    pub fn configured_node(
        mut self,
        name: &str,
        node: NodeId,
        configurations: &[&str],
        boot: impl Fn(&str) + Send + Sync + 'static,
    ) -> Nemesis {
        self.stage.add(name, node, configurations, Arc::new(boot));
        self
    }

    /// Says what faults may damage; without it, they damage nothing that was synced.
    #[must_use]
    pub fn atlas(mut self, atlas: &Atlas) -> Nemesis {
        self.stage.set_atlas(atlas.clone());
        self
    }

    /// Whether the stage has everything that the fault names.
    fn check(&self, fault: &Fault) -> Result<(), ScheduleError> {
        if let Some(node) = fault.fault.nodes().into_iter().find(|node| !self.stage.knows(node)) {
            return Err(ScheduleError::UnknownNode { fault: fault.to_string(), node: node.to_owned() });
        }
        if let Some((node, configuration)) = fault.fault.configuration()
            && let others = self.stage.other_configurations(node)
            && !others.iter().any(|other| other == configuration)
        {
            return Err(ScheduleError::UnknownConfiguration {
                fault: fault.to_string(),
                node: node.to_owned(),
                configuration: configuration.to_owned(),
                others: others.to_vec(),
            });
        }
        Ok(())
    }

    /// Lets the faults loose; times in them count from now.
    pub fn release(self, schedule: &[Fault]) -> Result<Loose, ScheduleError> {
        schedule.iter().try_for_each(|fault| self.check(fault))?;
        let Nemesis { stage, desk } = self;
        // Each fault has its meter before it begins: a run that ends early still tells which faults had no effect.
        let first = desk.add_effects(schedule.iter().map(Fault::no_effect_yet));
        let start = |(index, fault): (usize, &Fault)| {
            let (stage, desk, fault) = (stage.clone(), desk.clone(), fault.clone());
            rt::task::spawn(async move {
                let amount = fault.run(&stage).await;
                desk.set_effect(first + index, amount);
            })
        };
        let tasks = schedule.iter().enumerate().map(start).collect();
        Ok(Loose { healing: stage.healing().clone(), tasks, desk, first })
    }
}

/// Faults that are loose.
#[derive(Debug)]
#[must_use = "faults heal by `heal` or `ended` only"]
pub struct Loose {
    healing: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    desk: Desk,
    first: usize,
}

impl Loose {
    /// Waits until each fault has come and healed by its own schedule. A fault that waits for an event which never occurs keeps it
    /// waiting for ever: prefer [`heal`](Self::heal) after the workload.
    pub async fn ended(self) -> Vec<Effect> {
        for task in self.tasks {
            // A panic in one is a finding, which has ended the run.
            let _ = task.await;
        }
        self.desk.effects().split_off(self.first)
    }

    /// Heals all of them now, those that have not begun included, and gives what each did.
    pub async fn heal(self) -> Vec<Effect> {
        self.healing.cancel();
        self.ended().await
    }
}
