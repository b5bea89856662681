//! Every claim as a named test over a few seeds; `cargo sim fuzz` runs as many as one likes.

use crate::STAND;
use std::collections::BTreeSet;

macro_rules! claims {
    ($($seeds:literal seeds: $($name:ident,)+)+) => {
        $($(
            #[test]
            fn $name() {
                STAND.holds(stringify!($name), $seeds);
            }
        )+)+

        const TESTED: &[&str] = &[$($(stringify!($name)),+),+];
    };
}

claims! {
    12 seeds:
    nothing_promised_is_lost_across_fail_over,
    each_kind_of_message_keeps_its_promise,
    only_what_has_expired_goes_and_nothing_above_it_is_skipped,
    each_transaction_ends_once_and_as_its_producer_says,
    a_late_member_soon_gets_its_first_message,

    20 seeds:
    nothing_promised_is_lost_in_a_hostile_world,

    10 seeds:
    members_come_and_go_without_a_skipped_message,

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
    slower_member_does_not_set_the_slaves_copy_back,

    calm_cluster_answers_each_send_at_once_and_delivers_it_once,
    what_a_member_has_done_before_it_leaves_is_not_repeated,
    queue_that_was_given_up_is_left_alone,
    member_that_joins_while_a_broker_is_silent_repeats_nothing_old,
    sends_go_on_at_the_other_master,
    who_starts_finds_the_brokers_by_the_other_name_server,
    broker_that_is_back_is_found_whatever_comes_late_from_its_former_life,

    master_that_returns_alone_waits_for_what_its_slave_has,
    lone_master_promises_nothing_of_what_it_may_lose,
    returning_master_takes_nothing_of_another_history,
    longer_slave_follows_its_master_again,
    last_commit_of_a_reader_passes_over_nothing,
    progress_stays_with_a_suffix_that_comes_back,
    reader_above_the_end_gets_what_comes_next,
}

/// Run at each of their points, in `sweep.rs`.
const SWEPT: &[&str] = &[
    "no_crash_point_loses_an_acknowledged_message",
    "what_only_the_master_has_is_not_promised",
    "silent_queues_keep_what_the_checkpoint_claims",
    "a_slave_that_was_cut_stays_cut",
    "a_failed_sync_is_believed_by_nobody",
];

#[test]
fn each_scenario_has_its_test() {
    let tested: BTreeSet<&str> = TESTED.iter().chain(SWEPT).copied().collect();
    let scenarios: BTreeSet<&str> = scenarios::registry().entries().map(|entry| entry.name()).collect();
    assert_eq!(tested, scenarios);
}
