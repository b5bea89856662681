//! What brokers say: registration, goodbye, signs of life.

use std::time::Duration;

use bytes::Bytes;
use protocol::body::{BrokerMemberGroupBody, DataVersion, RegisterBrokerBody};
use protocol::header::{
    BrokerHeartbeatRequest, GetBrokerMemberGroupRequest, QueryDataVersionRequest, QueryDataVersionResponse,
    RegisterBrokerRequest, RegisterBrokerResponse, UnregisterBrokerRequest,
};
use protocol::{Command, json};
use remoting::Connection;
use tracing::{info, warn};

use super::{Answer, Refused, Shared, success};
use crate::kv_config::NAMESPACE_ORDER_TOPIC_CONFIG;
use crate::route_table::{BrokerKey, Registered, Registration};

/// From this version (3.0.11) on the body is a whole registration; before it was the topics alone.
const VERSION_WITH_BODY: i32 = 37;
/// First byte of every zlib stream that Java writes; no JSON begins with it.
const ZLIB_FIRST_BYTE: u8 = 0x78;

impl Shared {
    pub(super) fn register_broker(&self, connection: &Connection, request: &Command) -> Answer {
        let header: RegisterBrokerRequest = request.header()?;
        if header.body_crc32 != 0 && i64::from(header.body_crc32) != i64::from(protocol::message::crc32(&request.body))
        {
            return Err(Refused::Checksum);
        }
        let body = decode_body(request, header.compressed)?;
        let key = BrokerKey::new(&header.broker_name, &header.broker_addr);
        let registration = self.registration(header, body, connection);
        let (broker_id, version) = (registration.broker_id, registration.data_version.counter);
        let now = self.now();
        let (registered, was_known) = {
            let mut routes = self.routes();
            let was_known = routes.is_live(&key);
            let registered = routes.register(registration, now);
            (registered, was_known)
        };
        // The end of a connection is told once; what is registered after that would stay until it expires.
        if connection.is_closed() {
            self.connection_lost(connection);
        }
        let registered = registered?;
        if registered.outdated {
            warn!(broker = %key.name, addr = %key.addr, broker_id, "registration passed over: its id belongs to a newer master");
        } else if !was_known {
            info!(broker = %key.name, addr = %key.addr, broker_id, version, "broker registered");
        }
        Ok(self.registered(request, registered))
    }

    fn registration(
        &self,
        header: RegisterBrokerRequest,
        body: RegisterBrokerBody,
        connection: &Connection,
    ) -> Registration {
        let wrapper = body.topic_config_serialize_wrapper;
        let stated = header.heartbeat_timeout_millis.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
        Registration {
            cluster: header.cluster_name,
            name: header.broker_name,
            addr: header.broker_addr,
            broker_id: header.broker_id,
            ha_server_addr: header.ha_server_addr,
            zone: header.zone_name,
            expiry: stated.map_or(self.broker_expiry, Duration::from_millis),
            acting_master: header.enable_acting_master,
            data_version: wrapper.data_version,
            topics: wrapper.topic_config_table,
            mappings: wrapper.topic_queue_mapping_info_map.unwrap_or_default(),
            filter_servers: Some(body.filter_server_list),
            delete_missing_topics: self.answers.delete_missing_topics,
            connection: connection.id().as_u64(),
        }
    }

    fn registered(&self, request: &Command, registered: Registered) -> Command {
        let header =
            RegisterBrokerResponse { ha_server_addr: registered.ha_server_addr, master_addr: registered.master_addr };
        let reply = success(request).with_header(&header);
        let order = self.answers.order_config_to_brokers.then(|| self.kv().namespace(NAMESPACE_ORDER_TOPIC_CONFIG));
        match order.flatten() {
            Some(table) => reply.with_body(written(&table)),
            None => reply,
        }
    }

    pub(super) fn unregister_broker(&self, connection: &Connection, request: &Command) -> Answer {
        let header: UnregisterBrokerRequest = request.header()?;
        let key = BrokerKey::new(header.broker_name, header.broker_addr);
        let removed = self.routes().unregister(&key, connection.id().as_u64());
        info!(broker = %key.name, addr = %key.addr, removed, "broker said goodbye");
        Ok(success(request))
    }

    pub(super) fn broker_heartbeat(&self, connection: &Connection, request: &Command) -> Answer {
        let header: BrokerHeartbeatRequest = request.header()?;
        let key = BrokerKey::new(header.broker_name, header.broker_addr);
        self.heard(&key, connection);
        Ok(success(request))
    }

    pub(super) fn query_data_version(&self, connection: &Connection, request: &Command) -> Answer {
        let header: QueryDataVersionRequest = request.header()?;
        let theirs: DataVersion = json::from_slice(&request.body)?;
        let key = BrokerKey::new(header.broker_name, header.broker_addr);
        let ours = self.heard(&key, connection);
        let reply = success(request).with_header(&QueryDataVersionResponse { changed: ours != Some(theirs) });
        Ok(match ours {
            Some(version) => reply.with_body(written(&version)),
            None => reply,
        })
    }

    fn heard(&self, key: &BrokerKey, connection: &Connection) -> Option<DataVersion> {
        let version = self.routes().heartbeat(key, connection.id().as_u64(), self.now());
        if connection.is_closed() {
            self.connection_lost(connection);
        }
        version
    }

    pub(super) fn member_group(&self, request: &Command) -> Answer {
        let header: GetBrokerMemberGroupRequest = request.header()?;
        let broker_member_group = self.routes().member_group(&header.cluster_name, &header.broker_name);
        Ok(success(request).with_body(written(&BrokerMemberGroupBody { broker_member_group })))
    }
}

/// Brokers of 5.3 that compress do not say so, hence the look at the bytes.
fn decode_body(request: &Command, says_compressed: bool) -> Result<RegisterBrokerBody, Refused> {
    if request.body.is_empty() {
        return Ok(RegisterBrokerBody::default());
    }
    if request.version < VERSION_WITH_BODY {
        let topic_config_serialize_wrapper = json::from_slice(&request.body)?;
        return Ok(RegisterBrokerBody { topic_config_serialize_wrapper, ..RegisterBrokerBody::default() });
    }
    let compressed = says_compressed || request.body.first() == Some(&ZLIB_FIRST_BYTE);
    Ok(RegisterBrokerBody::decode(&request.body, compressed, request.version)?)
}

pub(super) fn written(body: &impl serde::Serialize) -> Bytes {
    json::to_vec(body).expect("bodies of this package can be written").into()
}
