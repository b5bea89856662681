//! How many copies a put of a SYNC_MASTER waits for. Pure.

/// The configuration behind the rule; the master counts as one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRule {
    /// `inSyncReplicas`. 0 and 1: a put waits for no slave, even at a SYNC_MASTER.
    pub in_sync_replicas: usize,
    /// `minInSyncReplicas`: the floor of the automatic rule.
    pub min_in_sync_replicas: usize,
    /// `enableAutoInSyncReplicas`: need only as many as are in sync now, but not fewer than the floor. Apache heeds it only together
    /// with `enableSlaveActingMaster`, and then also refuses a put that cannot be satisfied; pass `None` to [`copies`](Self::copies) otherwise.
    pub auto_in_sync_replicas: bool,
}

/// Fewer replicas are in sync than a put needs: it is refused before it is stored (IN_SYNC_REPLICAS_NOT_ENOUGH).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{available} replicas are in sync but {needed} are needed")]
pub struct InSyncReplicasNotEnough {
    /// Replicas in sync, the master included.
    pub available: usize,
    /// Replicas needed, the master included.
    pub needed: usize,
}

impl AckRule {
    /// Slaves that must hold a put before it is answered with PUT_OK. `available`: replicas in sync and alive, the master included, in
    /// slave-acting-master mode; `None` in plain classic HA, where a put waits for its time-out instead of being refused.
    ///
    /// # Errors
    /// Only with `available`: too few.
    pub fn copies(&self, available: Option<usize>) -> Result<usize, InSyncReplicasNotEnough> {
        let mut needed = self.in_sync_replicas;
        if let Some(available) = available {
            if self.auto_in_sync_replicas {
                needed = needed.min(available).max(self.min_in_sync_replicas);
            }
            if needed > available {
                return Err(InSyncReplicasNotEnough { available, needed });
            }
        }
        Ok(needed.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::{AckRule, InSyncReplicasNotEnough};

    fn check(rule: (usize, usize, bool), available: Option<usize>, expected: Result<usize, usize>) {
        let (in_sync_replicas, min_in_sync_replicas, auto_in_sync_replicas) = rule;
        let rule = AckRule { in_sync_replicas, min_in_sync_replicas, auto_in_sync_replicas };
        let expected =
            expected.map_err(|needed| InSyncReplicasNotEnough { available: available.unwrap_or_default(), needed });
        assert_eq!(rule.copies(available), expected, "{rule:?} {available:?}");
    }

    #[test]
    fn copies_follow_apaches_table() {
        check((0, 1, false), None, Ok(0));
        check((1, 1, false), None, Ok(0));
        check((2, 1, false), None, Ok(1));
        check((3, 1, true), None, Ok(2));
        check((2, 1, false), Some(1), Err(2));
        check((2, 1, false), Some(2), Ok(1));
        check((3, 1, true), Some(2), Ok(1));
        check((3, 1, true), Some(1), Ok(0));
        check((3, 2, true), Some(1), Err(2));
    }
}
