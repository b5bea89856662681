use super::{Config, Role};

const MINIMAL: &str = "
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
";

fn refuse(text: &str, expected: &str) {
    let error = Config::parse(text).expect("well-formed").broker().expect_err("a wrong value");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn apaches_minimal_file_is_accepted_and_what_has_no_effect_is_named() {
    let settings = Config::parse(MINIMAL).expect("well-formed").broker().expect("valid");
    assert_eq!(settings.cluster.broker_name, "broker-a");
    assert_eq!(settings.without_effect, [""; 0]);
    assert_eq!(settings.node.store.retention.reserved.as_secs(), 48 * 3600);
    let more = Config::parse(MINIMAL).expect("well-formed").with("warmMapedFileEnable", "true");
    assert_eq!(more.broker().expect("valid").without_effect, ["warmMapedFileEnable"]);
    assert!(!settings.own_address_known);
}

#[test]
fn a_wrong_value_is_named_with_its_key_and_line() {
    refuse("a=1\nlistenPort=70000", "listenPort=70000 (line 2): expected a port, 0 to 65535");
    refuse("brokerRole=MASTER", "brokerRole=MASTER (line 1): expected ASYNC_MASTER, SYNC_MASTER or SLAVE");
    refuse("brokerRole=SLAVE", "brokerId=0: expected 0 for a master, 1 or more for a slave");
    refuse("brokerId=2", "brokerId=2 (line 1): expected 0 for a master, 1 or more for a slave");
    refuse("autoCreateTopicEnable=yes", "autoCreateTopicEnable=yes (line 1): expected true or false");
    refuse("namesrvAddr=here", "namesrvAddr=here (line 1): expected host:port, several separated by ;");
    refuse("messageDelayLevel=1s 2x", "messageDelayLevel=1s 2x (line 1): expected delays such as 1s 5m 2h");
    refuse("brokerIP1=host", "brokerIP1=host (line 1): expected an IP address");
    refuse("maxIndexNum=1", "maxIndexNum=1 (line 1): expected a number, 2 or more");
    refuse("brokerName=a b", "brokerName=a b (line 1): expected letters, digits, - _ % |, at most 100");
    refuse("\nenableControllerMode = true", "enableControllerMode=true (line 2): not built");
    refuse("listenPort=65535", "listenPort=65535 (line 1): expected a port below 65535, or haListenPort as well");
}

#[test]
fn light_queues_are_kept_with_both_of_their_settings() {
    let settings = |lmq, dispatch| {
        let config = Config::default().with("enableLmq", lmq).with("enableMultiDispatch", dispatch);
        let node = config.broker().expect("valid").node;
        (node.light_queues, node.store.multi_dispatch)
    };
    assert_eq!(settings("true", "true"), (true, true));
    assert_eq!(settings("true", "false"), (true, false));
    assert_eq!(settings("false", "true"), (false, false));
}

#[test]
fn hours_and_levels_of_retention() {
    let retention = |key, value| Config::default().with(key, value).broker().expect("valid").node.store.retention;
    assert_eq!(retention("deleteWhen", "04; 23;").delete_hours, [4, 23].into());
    assert_eq!(retention("hotfireDeleteWhenUtcOffset", "480").utc_offset_minutes, 480);
    let finer = Config::default().with("fileReservedTime", "48").with("hotfireFileReservedTime", "90000");
    assert_eq!(finer.broker().expect("valid").node.store.retention.reserved.as_secs(), 90);
    // Apache's getters clamp.
    assert_eq!(retention("diskMaxUsedSpaceRatio", "99").used_max_percent, 95);
    assert_eq!(retention("diskSpaceWarningLevelRatio", "95").warning_percent, 90);
    assert_eq!(retention("diskSpaceCleanForciblyRatio", "5").forcible_percent, 30);
    refuse("deleteWhen=24", "deleteWhen=24 (line 1): expected hours of the day, 0 to 23, several separated by ;");
    refuse("fileReservedTime=-1", "fileReservedTime=-1 (line 1): expected hours, 0 to 1000000");
}

#[test]
fn ports_and_addresses_follow_from_each_other() {
    let settings = Config::default().with("brokerIP1", "10.0.0.1").with("listenPort", "20911").broker().expect("valid");
    assert_eq!(settings.node.listen.to_string(), "0.0.0.0:20911");
    assert_eq!(settings.node.advertised.to_string(), "10.0.0.1:20911");
    assert_eq!(settings.node.as_master.listen.to_string(), "0.0.0.0:20912");
    assert_eq!(settings.node.ha_advertised.to_string(), "10.0.0.1:20912");
    let namesrv = Config::default().namesrv().expect("valid");
    assert_eq!(namesrv.node.listen.to_string(), "0.0.0.0:9876");
}

#[test]
#[expect(clippy::too_many_lines, reason = "the dump is as long as it is")]
fn the_dump_lists_every_setting_in_force() {
    let broker = Config::parse(MINIMAL).expect("well-formed").dump(Role::Broker).expect("valid");
    insta::assert_snapshot!(broker, @r"
    accessMessageInMemoryMaxRatio=40
    aclEnable=false
    authenticationEnabled=false
    authorizationEnabled=false
    autoCreateSubscriptionGroup=true
    autoCreateTopicEnable=true
    bindAddress=
    brokerClusterName=DefaultCluster
    brokerIP1=
    brokerIP2=
    brokerId=0
    brokerName=broker-a
    brokerPermission=6
    brokerRole=ASYNC_MASTER
    brokerTopicEnable=true
    channelExpiredTimeout=120000
    cleanFileForciblyEnable=true
    cleanResourceInterval=10000
    clusterTopicEnable=true
    coldDataFlowControlEnable=false
    defaultTopicQueueNums=8
    deleteCommitLogFilesInterval=100
    deleteConsumeQueueFilesInterval=100
    deleteFileBatchMax=10
    deleteWhen=04
    diskMaxUsedSpaceRatio=75
    diskSpaceCleanForciblyRatio=85
    diskSpaceWarningLevelRatio=90
    duplicationEnable=false
    enableCalcFilterBitMap=false
    enableConsumeQueueExt=false
    enableControllerMode=false
    enableDLegerCommitLog=false
    enableLmq=false
    enableMultiDispatch=false
    enablePropertyFilter=false
    enableRemoteEscape=false
    enableRocksDBStore=false
    enableSlaveActingMaster=false
    enabledAppendPropCRC=false
    expectConsumerNumUseFilter=32
    fileReservedTime=48
    filterDataCleanTimeSpan=86400000
    filterSupportRetry=false
    flushCommitLogLeastPages=4
    flushCommitLogThoroughInterval=10000
    flushConsumeQueueLeastPages=2
    flushConsumeQueueThoroughInterval=60000
    flushConsumerOffsetInterval=5000
    flushDelayOffsetInterval=10000
    flushDiskType=ASYNC_FLUSH
    flushIntervalCommitLog=500
    flushIntervalConsumeQueue=1000
    forceVerifyPropCRC=false
    haHousekeepingInterval=20000
    haListenPort=0
    haMasterAddress=
    haMaxGapNotInSync=268435456
    haSendHeartbeatInterval=5000
    haTransferBatchSize=32768
    hotfireDamagedLog=REFUSE
    hotfireDeleteWhenUtcOffset=0
    hotfireFileReservedTime=172800000
    hotfireHeldPullsMax=100000
    hotfireHoldTimeMax=60000
    hotfireOpenQueueFilesMax=500
    hotfireRecoverFromSlave=true
    hotfireRecoverFromSlaveTimeout=3000
    hotfireSlaveRetainTime=86400000
    hotfireSlaveSyncPeriod=10000
    hotfireSlaveTruncateMax=268435456
    inSyncReplicas=1
    listenPort=10911
    longPollingEnable=true
    mappedFileSizeCommitLog=1073741824
    mappedFileSizeConsumeQueue=6000000
    mappedFileSizeConsumeQueueExt=50331648
    mappedFileSizeTimerLog=104857600
    mapperFileSizeBatchConsumeQueue=13800000
    maxErrorRateOfBloomFilter=20
    maxFilterMessageSize=16000
    maxHashSlotNum=5000000
    maxIndexNum=20000000
    maxMessageSize=4194304
    maxTransferBytesOnMessageInDisk=65536
    maxTransferBytesOnMessageInMemory=262144
    maxTransferCountOnMessageInDisk=8
    maxTransferCountOnMessageInMemory=32
    messageDelayLevel=1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h
    messageIndexEnable=true
    msgTraceTopicName=RMQ_SYS_TRACE_TOPIC
    namesrvAddr=
    notifyConsumerIdsChangedEnable=true
    recallMessageEnable=false
    regionId=DefaultRegion
    registerBrokerTimeoutMills=24000
    registerNameServerPeriod=30000
    rejectTransactionMessage=false
    shortPollingTimeMills=1000
    slaveReadEnable=false
    slaveTimeout=3000
    storePathCommitLog=
    storePathRootDir=store
    storeReplyMessageEnable=true
    storeType=default
    syncFlushTimeout=5000
    timerFlushIntervalMs=1000
    timerMaxDelaySec=259200
    timerPrecisionMs=1000
    timerRollWindowSlot=172800
    timerWheelEnable=true
    traceOn=true
    traceTopicEnable=false
    transactionCheckInterval=30000
    transactionCheckMax=15
    transactionTimeOut=6000
    transientStorePoolEnable=false
    ");
    let name_server = Config::default().dump(Role::NameServer).expect("valid");
    insta::assert_snapshot!(name_server, @r"
    bindAddress=
    clusterTest=false
    deleteTopicWithBrokerRegistration=false
    enableAllTopicList=true
    enableControllerInNamesrv=false
    enableTopicList=true
    kvConfigPath=
    listenPort=9876
    needWaitForService=false
    orderMessageEnable=false
    returnOrderTopicConfigToBroker=true
    scanNotActiveBrokerInterval=5000
    supportActingMaster=false
    waitSecondsForService=45
    ");
}
