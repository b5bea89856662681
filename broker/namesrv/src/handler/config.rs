//! The key-value configuration, and the name server's own.

use protocol::Command;
use protocol::header::{
    DeleteKvConfigRequest, GetKvConfigRequest, GetKvConfigResponse, GetKvListByNamespaceRequest, PutKvConfigRequest,
};

use super::brokers::written;
use super::{Answer, Refused, Shared, success};

impl Shared {
    pub(super) async fn put_kv(&self, request: &Command) -> Answer {
        let header: PutKvConfigRequest = request.header()?;
        self.kv().put(&header.namespace, &header.key, &header.value);
        self.persist_kv().await?;
        Ok(success(request))
    }

    pub(super) fn get_kv(&self, request: &Command) -> Answer {
        let GetKvConfigRequest { namespace, key } = request.header()?;
        let value = self.kv().get(&namespace, &key).map(str::to_owned);
        match value {
            Some(_) => Ok(success(request).with_header(&GetKvConfigResponse { value })),
            None => Err(Refused::NoConfig { namespace, key }),
        }
    }

    pub(super) async fn delete_kv(&self, request: &Command) -> Answer {
        let header: DeleteKvConfigRequest = request.header()?;
        self.kv().delete(&header.namespace, &header.key);
        self.persist_kv().await?;
        Ok(success(request))
    }

    pub(super) fn kv_namespace(&self, request: &Command) -> Answer {
        let GetKvListByNamespaceRequest { namespace } = request.header()?;
        let table = self.kv().namespace(&namespace);
        match table {
            Some(table) => Ok(success(request).with_body(written(&table))),
            None => Err(Refused::NoConfig { namespace, key: String::new() }),
        }
    }

    async fn persist_kv(&self) -> Result<(), Refused> {
        Ok(self.kv_file.write(|| self.kv().to_json()).await?)
    }

    /// The configuration as properties text, under RocketMQ's keys.
    pub(super) fn properties(&self, request: &Command) -> Answer {
        let answers = &self.answers;
        let wait = answers.wait_for_service;
        let lines = [
            ("deleteTopicWithBrokerRegistration", answers.delete_missing_topics.to_string()),
            ("enableAllTopicList", answers.all_topic_list.to_string()),
            ("enableTopicList", answers.topic_list.to_string()),
            ("kvConfigPath", self.kv_file.path_text()),
            ("needWaitForService", wait.is_some().to_string()),
            ("orderMessageEnable", answers.order_message.to_string()),
            ("returnOrderTopicConfigToBroker", answers.order_config_to_brokers.to_string()),
            ("supportActingMaster", answers.acting_master.to_string()),
            ("waitSecondsForService", wait.map_or(0, |wait| wait.as_secs()).to_string()),
        ];
        let text: String = lines.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        Ok(success(request).with_body(text))
    }
}
