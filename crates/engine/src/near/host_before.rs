//! This host on the path to the target, before payload moves.

use std::net::{IpAddr, SocketAddr};

use goodput_kernel::Context;
use goodput_model::{EndName, Plan, Snapshot};

use super::client::Client;
use crate::error::EngineError;
use crate::run::affinity::Affinity;
use crate::run::observe::observe;

/// The path to `peer`, by the plan's device.
pub fn path(peer: Option<SocketAddr>, plan: &Plan) -> Context {
    let path = peer.map_or_else(Context::default, Context::towards);
    Context { device: plan.socket.device.clone(), ..path }
}

/// A snapshot that was taken early.
pub struct HostBefore {
    context: Context,
    before: Snapshot,
}

impl HostBefore {
    /// Takes the snapshot before the flows exist, if the far end sends as soon as it has them: its payload must not
    /// wait for the snapshot.
    pub async fn early(client: &Client, plan: &Plan) -> Result<Option<Self>, EngineError> {
        let Some(peer) = client.addresses.first() else { return Ok(None) };
        if client.far_end().awaits_begin {
            return Ok(None);
        }
        let context = path(Some(*peer), plan);
        let before = observe(plan.observe, context.clone()).await?;
        Ok(Some(Self { context, before }))
    }

    /// The snapshot, if it covers the path to the peer that the flows then reached.
    pub fn towards(self, peer: IpAddr) -> Option<Snapshot> {
        (self.context.peer == Some(peer)).then_some(self.before)
    }
}

/// The CPUs of this end's flows, on the path to the target.
pub async fn affinity(client: &Client, plan: &Plan) -> Result<Affinity, EngineError> {
    let context = path(client.addresses.first().copied(), plan);
    Affinity::of(plan, EndName::Near, &context)
        .await
        .map_err(|why| EngineError::Flow(format!("near end: {why}")))
}
