//! The master's end with offsets committed via pull flags: the founding scenario, claim by claim.

use crate::STAND;
use scenarios::suite::progress::ALL;

const SEEDS: u64 = 10;

macro_rules! claims {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                STAND.holds(stringify!($name), SEEDS);
            }
        )*

        #[test]
        fn each_claim_of_the_suite_has_its_test() {
            let tested = [$(stringify!($name)),*];
            for scenario in ALL {
                assert!(tested.contains(&scenario.name), "no test runs {}", scenario.name);
            }
        }
    };
}

claims! {
    commit_flag_of_a_pull_is_stored_at_the_master,
    slave_commits_nothing_that_a_pull_says,
    slave_copy_of_progress_follows_within_its_sync_period,
    consumption_goes_on_from_the_slave_while_the_master_is_away,
    progress_is_regained_after_the_masters_return,
    client_that_dies_during_the_outage_repeats_a_bounded_part,
    rebalance_during_the_outage_skips_nothing,
    progress_survives_power_loss_of_the_master,
    local_progress_survives_a_client_crash,
    with_apaches_rule_progress_made_at_the_slave_is_lost,
    progress_made_at_the_slave_returns_with_the_master,
}
