//! What users get beyond the promise that nothing is lost, claim by claim.

use crate::STAND;
use scenarios::suite::service::ALL;

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
    calm_cluster_answers_each_send_at_once_and_delivers_it_once,
    what_a_member_has_done_before_it_leaves_is_not_repeated,
    queue_that_was_given_up_is_left_alone,
    member_that_joins_while_a_broker_is_silent_repeats_nothing_old,
    sends_go_on_at_the_other_master,
}
