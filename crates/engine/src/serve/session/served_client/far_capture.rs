//! A capture of the headers of one measurement's packets, for its client.

use std::net::IpAddr;
use std::sync::Arc;

use goodput_capture::block::Frame;
use goodput_capture::{CaptureHelper, FlowCapture, FlowPorts, OpenedCapture};
use goodput_kernel::Context;
use goodput_model::{
    Connection, FarHeads, Known, MAX_HEADS_BYTES, PacketHead, PacketHeads, Transport,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::AUDIT;
use crate::serve::session::client::ConnectedClient;
use crate::threads::blocking;

/// Captures at the same time: each has a ring of 8 MiB, and keeps 8 MiB of heads.
pub const MOST_CAPTURES: usize = 4;

/// A capture for a client. Dropping it ends it, and what was captured is gone.
pub(super) struct FarCapture {
    stage: Stage,
    _turn: OwnedSemaphorePermit,
}

enum Stage {
    /// Packets of the client's host fill the ring; which of them are of its flows is not known yet.
    Opened(OpenedCapture),
    /// Packets of its flows are kept.
    Running(FlowCapture<PacketHeads>),
    /// It can't go on.
    Failed(String),
}

impl FarCapture {
    /// Opens a capture on the path to the client, if the client may have one. Also returns the name of the device, or why
    /// nothing is captured.
    pub(super) fn open(
        client: &ConnectedClient,
        context: &Context,
    ) -> impl Future<Output = (Option<Self>, Known<String>)> + use<> {
        let (peer, by) = (client.info.peer, client.who());
        let permitted = client.may_capture().map_err(String::from);
        let permitted = permitted.and_then(|helper| Ok((helper, turn(&client.shared.captures)?)));
        let context = context.clone();
        async move {
            let outcome = match permitted {
                Ok((helper, turn)) => Self::opened(helper, turn, context, peer.ip()).await,
                Err(why) => Err(why),
            };
            match outcome {
                Ok((capture, device)) => {
                    tracing::info!(target: AUDIT, %peer, %by, "captures its packets on {device}");
                    (Some(capture), Known::Value(device))
                }
                Err(why) => {
                    tracing::info!(%peer, %by, "captures nothing for it: {why}");
                    (None, Known::missing(why))
                }
            }
        }
    }

    async fn opened(
        helper: Arc<CaptureHelper>,
        turn: OwnedSemaphorePermit,
        context: Context,
        peer: IpAddr,
    ) -> Result<(Self, String), String> {
        let opening = blocking(move || -> Result<_, String> {
            let device = context.device_name().map_err(|why| why.to_string())?;
            let opened = helper.open(&device, peer.to_canonical());
            Ok((opened.map_err(|why| why.to_string())?, device))
        });
        let (opened, device) = opening.await.map_err(|why| why.to_string())??;
        Ok((Self { stage: Stage::Opened(opened), _turn: turn }, device))
    }

    /// Keeps packets of these flows from now on.
    pub(super) fn begin(&mut self, flows: &[Connection], transport: Transport) {
        let ports = |flow: &Connection| FlowPorts {
            is_tcp: transport == Transport::Tcp,
            own: flow.local.port(),
            peer: flow.remote.port(),
        };
        let flows: Vec<_> = flows.iter().map(ports).collect();
        let unready = Stage::Failed("it had begun before".into());
        if let Stage::Opened(opened) = std::mem::replace(&mut self.stage, unready) {
            self.stage = match opened.start(flows, PacketHeads::default(), keep) {
                Ok(running) => Stage::Running(running),
                Err(cause) => Stage::Failed(format!("can't start a thread: {cause}")),
            };
        }
    }

    /// Ends. Returns what was captured.
    pub(super) async fn finish(self) -> FarHeads {
        let failed = |why: String| FarHeads { failure: Some(why), ..FarHeads::default() };
        let running = match self.stage {
            Stage::Running(running) => running,
            Stage::Opened(_) => return failed("its flows never began".into()),
            Stage::Failed(why) => return failed(why),
        };
        match blocking(move || running.finish()).await {
            Ok(Ok(found)) => FarHeads {
                heads: found.kept,
                dropped: found.dropped,
                not_kept: found.not_kept,
                failure: found.failure,
            },
            Ok(Err(why)) => failed(why.into()),
            Err(why) => failed(why.to_string()),
        }
    }
}

fn turn(captures: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, String> {
    Arc::clone(captures).try_acquire_owned().map_err(|_| {
        format!("this server captures for {MOST_CAPTURES} other measurements now; try again later")
    })
}

/// Keeps a packet, if there is still room.
fn keep(heads: &mut PacketHeads, frame: &Frame<'_>) -> bool {
    let Frame { at_ns, head, bytes, is_outgoing, .. } = *frame;
    heads.push(&PacketHead { at_ns, bytes, is_outgoing, head }, MAX_HEADS_BYTES)
}
