//! Generic checkers. Each takes what happened as plain data and answers with violations; none knows a world or a program.
//!
//! | checker | question |
//! |---|---|
//! | [`total_queue`] | is each acknowledged element delivered, none invented, none repeated beyond what is allowed? |
//! | [`monotonic`] | does a value that may only grow ever go back? |
//! | [`linearizable`] | is there one order of the operations that explains every answer of a register, a queue, or a model of your own? |
//! | [`lost_update`] | did an update write over one that it had not seen? |
//! | [`recovery`] | does the system serve again within its bound after the faults have healed? |

pub mod linearizable;
pub mod lost_update;
pub mod monotonic;
pub mod recovery;
pub mod total_queue;
