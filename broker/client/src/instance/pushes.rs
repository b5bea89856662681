//! Requests that brokers send to this client.
use crate::instance::{ClientInstance, Inner};
use crate::request_reply::take_reply;
use crate::transaction::answer_check;
use protocol::body::ResetOffsetBody;
use protocol::header::{NotifyConsumerIdsChangedRequest, ResetOffsetRequest};
use protocol::{Command, RequestCode, ResponseCode};
use remoting::{BoxFuture, Connection, Handler};
use std::sync::Weak;
use tracing::{info, warn};

/// Serves them. Holds the client weakly: the client holds the connections that hold this.
pub(crate) struct Pushes {
    client: Weak<Inner>,
}

impl Pushes {
    pub(crate) fn new(client: Weak<Inner>) -> Pushes {
        Pushes { client }
    }

    fn serve(&self, connection: Connection, request: &Command) -> Option<Command> {
        let client = ClientInstance(self.client.upgrade()?);
        match request.request_code() {
            Some(RequestCode::NotifyConsumerIdsChanged) => {
                members_changed(&client, request);
                None
            }
            Some(RequestCode::ResetConsumerClientOffset) => {
                reset_offset(&client, request);
                None
            }
            Some(RequestCode::PushReplyMessageToClient) => Some(take_reply(&client, request)),
            Some(RequestCode::CheckTransactionState) => {
                answer_check(&client, connection, request);
                None
            }
            _ => {
                warn!(code = request.code, "request of a broker is not supported by this client");
                let remark = format!("client does not support request code {}", request.code);
                Some(Command::reply(request, ResponseCode::RequestCodeNotSupported).with_remark(remark))
            }
        }
    }
}

impl Handler for Pushes {
    fn handle(&self, connection: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        // Nothing here waits, so all of it is done before the future exists.
        let answer = self.serve(connection, &request);
        Box::pin(async move { answer })
    }

    fn connection_opened(&self, connection: &Connection) {
        if let Some(inner) = self.client.upgrade() {
            ClientInstance(inner).connected(connection.peer_addr());
        }
    }
}

fn members_changed(client: &ClientInstance, request: &Command) {
    match request.header::<NotifyConsumerIdsChangedRequest>() {
        Ok(header) => {
            if let Some(core) = client.consumer(&header.consumer_group) {
                info!(group = %header.consumer_group, "members changed");
                core.wake_rebalance();
            }
        }
        // The group is of no use if it cannot be read; the news is.
        Err(_) => client.wake_consumers(),
    }
}

fn reset_offset(client: &ClientInstance, request: &Command) {
    let header = match request.header::<ResetOffsetRequest>() {
        Ok(header) => header,
        Err(error) => return warn!(%error, "reset of offsets cannot be read"),
    };
    let body = match protocol::json::from_slice::<ResetOffsetBody>(&request.body) {
        Ok(body) => body,
        Err(error) => return warn!(%error, "table of a reset of offsets cannot be read"),
    };
    if let Some(core) = client.consumer(&header.group) {
        core.reset(&header.topic, body.offset_table);
    }
}
