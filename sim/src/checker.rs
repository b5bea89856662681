//! Generic checkers. Each takes what happened as plain data and answers with violations; none knows a world or a program.
//!
//! | checker | question |
//! |---|---|
//! | [`total_queue`] | is each acknowledged element delivered, none invented, none repeated beyond what is allowed? |
//! | [`monotonic`] | does a value that may only grow ever go back? |
//! | [`linearizable`] | is there one order of the operations that explains every answer? |
//! | [`recovery`] | does the system serve again within its bound after the faults have healed? |

pub mod linearizable;
pub mod monotonic;
pub mod recovery;
pub mod total_queue;
