use super::{Empty, Header, PullSysFlag, RegisterBrokerRequest, ResetOffsetRequest};
use crate::frame::ExtFields;

#[test]
fn defaults_stand_in_for_what_is_absent_or_empty() {
    let fields: ExtFields =
        [("topic", "T"), ("group", "G"), ("timestamp", "-1"), ("queueId", ""), ("offset", "")].into_iter().collect();
    let header = ResetOffsetRequest::decode(&fields).unwrap();
    assert_eq!((header.queue_id, header.offset, header.force), (-1, None, false));
}

#[test]
fn requirements_are_told() {
    let required: Vec<_> = RegisterBrokerRequest::FIELDS.iter().filter(|field| field.required).map(|f| f.key).collect();
    assert_eq!(required, ["brokerName", "brokerAddr", "clusterName", "haServerAddr", "brokerId"]);
    assert!(Empty::FIELDS.is_empty());
}

#[test]
fn pull_flags() {
    let flag = PullSysFlag(7);
    assert!(flag.commits_offset() && flag.may_suspend() && flag.has_subscription() && !flag.is_lite_pull());
    assert!(!flag.without(PullSysFlag::COMMIT_OFFSET).commits_offset());
    assert!(flag.with(PullSysFlag::LITE_PULL).is_lite_pull());
}
