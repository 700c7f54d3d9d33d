//! From a plan to flows that are open at both ends.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use goodput_kernel::FileMount;
use goodput_model::{EndName, Fetches, Known, Plan, Snapshot};
use goodput_mover::Waiter;
use goodput_wire::session::{Action, Cookie, Input};
use goodput_wire::ticket::{FlowSetup, FlowTicket};

use crate::error::EngineError;
use crate::near::client::{Client, unexpected};
use crate::near::fetch::{self, Fetching};
use crate::near::flows::{Destination, FlowListeners, Opened, open_flows};
use crate::near::host_before::path;
use crate::near::mounted::{self, MountedFlows};
use crate::near::own_check;
use crate::run::movers;
use crate::run::source_ports::{self, Hash, Hashes};
use crate::run::storage::{FileAccess, OpenFiles, for_memory_only};
use crate::threads::blocking;

/// How long a file on a mount may take to open, with the pass before the measurement: less than its session waits.
const MAX_OPENING_TIME: Duration = Duration::from_secs(100);

/// Reports what became known of the requests for a file once all is over, and what the user should know of it.
pub type Concluding = Box<dyn Fn() -> (Fetches, Option<String>) + Send + Sync>;

/// Removes what was stored, and reports in words what could not be removed. Dropping it removes as well.
pub type ScratchRemoval = Box<dyn FnOnce() -> Vec<String> + Send + Sync>;

/// Flows, and what comes with the flows of a file.
#[derive(Default)]
struct Beside {
    log: Option<Concluding>,
    scratch: Option<ScratchRemoval>,
    mount: Option<(FileMount, Snapshot)>,
}

/// Flows that this end has, and what the session said.
pub struct Agreed {
    /// The flows.
    pub opened: Opened,
    /// What becomes known of their requests, if they are of a file.
    pub log: Option<Concluding>,
    /// The mount of the file and what is known about it, if the target is a file on a mount.
    pub mount: Option<(FileMount, Snapshot)>,
    /// Removes what they store at a server of files or on a mount.
    pub scratch: Option<ScratchRemoval>,
    /// What the session said.
    pub heard: AgreedAnswers,
    /// The hashes by which ports were chosen, if they were to be.
    pub hashes: Option<Hashes>,
}

/// What the session said before payload moves.
#[derive(Default)]
pub struct AgreedAnswers {
    notes: Vec<String>,
    ready: bool,
    echo: Option<Cookie>,
    /// How the far end's card spreads received traffic, if it reports that.
    hash: Option<Hash>,
    /// The device at which the far end captures the flows' packets, or why it captures nothing, if it was asked.
    pub capture: Option<Known<String>>,
}

/// Opens and prepares what `plan` reads and writes at this end. Returns the plan as the far end can carry it out.
pub async fn files(client: &mut Client, plan: &Plan) -> Result<(Plan, OpenFiles), EngineError> {
    if plan.storage.is_memory() {
        return Ok((plan.clone(), OpenFiles::default()));
    }
    let opened = OpenFiles::prepare(plan.clone(), EndName::Near, FileAccess::User);
    // Reading a large file takes long, and meanwhile the far end asks whether this end is still there.
    let stores = beside(client, opened, &mut AgreedAnswers::default()).await??;
    let plan =
        if client.far_end().has_files { plan.clone() } else { for_memory_only(plan, &stores)? };
    Ok((plan, stores))
}

/// Proposes a plan and withdraws it before any flow is opened: what the far end can't do of it, it refuses. Plans with
/// files are not proposed, because it would open and make them; nor is anything to a far end for which a conversation is
/// one measurement.
pub async fn ask(client: &mut Client, plan: &Plan) -> Result<(), EngineError> {
    let far_end = client.far_end();
    if !plan.storage.is_memory() || !far_end.takes_any_plan || !far_end.measures_again {
        return Ok(());
    }
    let (plan, _) =
        own_check::movers(&client.target, &Plan { far_capture: false, ..plan.clone() })?;
    let proposed = movers::for_peer(&plan, far_end.chooses_movers)?;
    client.conversation.feed(Input::Propose(Box::new(proposed)));
    order(client).await?;
    client
        .conversation
        .feed(Input::FlowsFailed("the client only asked whether it is possible".into()));
    Ok(())
}

/// Flows that the session wants opened.
pub struct FlowOrder {
    tickets: Vec<FlowTicket>,
    flow_setup: FlowSetup,
    heard: AgreedAnswers,
}

impl FlowOrder {
    /// The cookie of the echoes that the far end answers, if it answers any.
    pub fn echo(&self) -> Option<Cookie> {
        self.heard.echo
    }
}

/// Waits for the session to order the flows of the proposed plan.
pub async fn order(client: &mut Client) -> Result<FlowOrder, EngineError> {
    let mut heard = AgreedAnswers::default();
    loop {
        match client.next().await? {
            Action::OpenFlows { tickets, flow_setup } => {
                return Ok(FlowOrder { tickets, flow_setup, heard });
            }
            other => heard.take(client, other)?,
        }
    }
}

/// Opens the flows of `plan` as ordered. If that fails, the session may know another way.
pub async fn flows(
    client: &mut Client,
    plan: &Plan,
    order: FlowOrder,
) -> Result<Agreed, EngineError> {
    let FlowOrder { mut tickets, mut flow_setup, mut heard } = order;
    let hashes = hashes(client, plan, &mut heard).await;
    let (opened, Beside { log, scratch, mount }) = loop {
        let hashes = hashes.as_ref();
        let failure = match open(client, plan, tickets, flow_setup, hashes, &mut heard).await {
            Ok(opened) => break opened,
            Err(failure) => failure,
        };
        client.conversation.feed(Input::FlowsFailed(failure.to_string()));
        match client.conversation.said() {
            Some(Action::OpenFlows { tickets: others, flow_setup: other }) => {
                (tickets, flow_setup) = (others, other);
            }
            _ => return Err(failure),
        }
    };
    // Further measurements go to the same machine; its usual port is that of the target. A file server may have
    // redirected this end to another machine.
    if log.is_none()
        && let Some(mut address) = opened.peer
    {
        address.set_port(client.target.port);
        client.addresses = vec![address];
    }
    client.conversation.feed(Input::FlowsReady);
    Ok(Agreed { opened, log, scratch, mount, heard, hashes })
}

/// The hashes of both ends, if `plan` has ports chosen by them.
async fn hashes(client: &Client, plan: &Plan, heard: &mut AgreedAnswers) -> Option<Hashes> {
    if !plan.socket.spread_ports {
        return None;
    }
    let near = source_ports::own(plan, &path(client.addresses.first().copied(), plan)).await;
    let unreported = "its protocol does not report how its card spreads flows over receive queues";
    let far = heard.hash.take().unwrap_or_else(|| Known::missing(unreported));
    Some(Hashes { near, far })
}

/// Waits until the far end has the flows too. Returns what the session wants the user to know.
pub async fn ready(
    client: &mut Client,
    mut heard: AgreedAnswers,
) -> Result<Vec<String>, EngineError> {
    while !heard.ready {
        let action = client.next().await?;
        heard.take(client, action)?;
    }
    Ok(heard.notes)
}

impl AgreedAnswers {
    fn take(&mut self, client: &Client, action: Action) -> Result<(), EngineError> {
        match action {
            Action::PeerReady => self.ready = true,
            Action::Note(text) => self.notes.push(text),
            Action::Echo(cookie) => self.echo = Some(cookie),
            Action::PeerHash(hash) => self.hash = Some(hash),
            Action::PeerCaptures(capture) => self.capture = Some(capture),
            other => return Err(unexpected(&client.target, &other)),
        }
        Ok(())
    }
}

async fn open(
    client: &mut Client,
    plan: &Plan,
    tickets: Vec<FlowTicket>,
    flow_setup: FlowSetup,
    hashes: Option<&Hashes>,
    heard: &mut AgreedAnswers,
) -> Result<(Opened, Beside), EngineError> {
    match flow_setup {
        FlowSetup::Connect { .. } if client.target.mounted.is_some() => {
            open_mounted(client, plan, tickets, heard).await
        }
        FlowSetup::Connect { .. } if client.target.file.is_some() => {
            fetch(client, plan, tickets, heard).await
        }
        FlowSetup::Connect { port, apart } => {
            let addresses = at_port(&client.addresses, port);
            let ports = hashes.map(|hashes| {
                let local = plan.socket.bind.or(client.local.map(|local| local.ip()));
                hashes.ports(plan, &tickets, local, (addresses.first(), apart))
            });
            let destination =
                Destination { protocol: client.target.protocol, addresses, apart, ports };
            let plan = plan.clone();
            let opening = blocking(move || open_flows(&destination, &plan, &tickets));
            let opened = beside(client, opening, heard).await??;
            let opened = opened.map_err(|failure| unreached(client, failure))?;
            Ok((opened, Beside::default()))
        }
        FlowSetup::Listen { first_port } => {
            let peer = client.addresses.first().copied();
            let peer = peer.ok_or_else(|| EngineError::Target("no address to await".into()))?;
            let listeners = FlowListeners::open(plan, &tickets, client.local, peer, first_port)?;
            client.conversation.feed(Input::Expecting { data_port: None });
            Ok((beside(client, listeners.take(), heard).await??, Beside::default()))
        }
        flow_setup @ (FlowSetup::Arrive | FlowSetup::ThisConnection { .. }) => {
            Err(unexpected(&client.target, &Action::OpenFlows { tickets, flow_setup }))
        }
    }
}

/// Flows from a file server.
async fn fetch(
    client: &mut Client,
    plan: &Plan,
    tickets: Vec<FlowTicket>,
    heard: &mut AgreedAnswers,
) -> Result<(Opened, Beside), EngineError> {
    let (target, plan, addresses) = (client.target.clone(), plan.clone(), client.addresses.clone());
    // Dropping this future drops the waiter, which ends the work.
    let waiter = Waiter::default();
    let awaited = waiter.awaited();
    let opening = blocking(move || fetch::open(&target, &addresses, &plan, &tickets, &awaited));
    let opened = beside(client, opening, heard).await;
    drop(waiter);
    let Fetching { opened, log, scratch } = opened???;
    let log: Concluding = Box::new(move || (log.conclude(), log.change()));
    let scratch = scratch.map(|scratch| -> ScratchRemoval { Box::new(move || scratch.remove()) });
    Ok((opened, Beside { log: Some(log), scratch, mount: None }))
}

/// Flows from a file on a mount.
async fn open_mounted(
    client: &mut Client,
    plan: &Plan,
    tickets: Vec<FlowTicket>,
    heard: &mut AgreedAnswers,
) -> Result<(Opened, Beside), EngineError> {
    let (target, plan) = (client.target.mounted.clone().unwrap_or_default(), plan.clone());
    let waiter = Waiter::default();
    let awaited = waiter.awaited();
    let path = target.path.clone();
    let opening = blocking(move || mounted::open(&target, &plan, &tickets, &awaited));
    let opened = beside(client, in_time(&path, opening), heard).await;
    drop(waiter);
    let MountedFlows { opened, log, mount, facts, scratch } = opened???;
    let log: Concluding = Box::new(move || (log.conclude(), None));
    let scratch = scratch.map(|scratch| -> ScratchRemoval { Box::new(move || scratch.remove()) });
    Ok((opened, Beside { log: Some(log), scratch, mount: Some((mount, facts)) }))
}

/// Waits until the file at `path` is open. Nothing but the kernel ends a call to a dead mount.
async fn in_time<T>(
    path: &Path,
    opening: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let opened = tokio::time::timeout(MAX_OPENING_TIME, opening).await;
    opened.unwrap_or_else(|_| {
        let (path, seconds) = (path.display(), MAX_OPENING_TIME.as_secs());
        Err(EngineError::Flow(format!(
            "{path} can't be opened: its server or disk has not answered for {seconds} s; see `dmesg`"
        )))
    })
}

/// Without a control connection, the first flow is what reaches the target, or does not.
fn unreached(client: &Client, failure: EngineError) -> EngineError {
    if client.target.protocol.has_control {
        return failure;
    }
    EngineError::Target(format!("{}: {failure}", client.target))
}

fn at_port(addresses: &[SocketAddr], port: Option<u16>) -> Vec<SocketAddr> {
    let at = |address: &SocketAddr| {
        let mut address = *address;
        address.set_port(port.unwrap_or(address.port()));
        address
    };
    addresses.iter().map(at).collect()
}

/// Keeps the conversation going while `work` is done: the far end may need an answer, or may turn the flows away.
async fn beside<T>(
    client: &mut Client,
    work: impl Future<Output = T>,
    heard: &mut AgreedAnswers,
) -> Result<T, EngineError> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            action = client.next() => heard.take(client, action?)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_mount_that_does_not_answer_is_named() {
        let path = Path::new("/mnt/nas/file");
        let never = std::future::pending::<Result<(), EngineError>>();
        let why = in_time(path, never).await.unwrap_err().to_string();
        assert!(why.contains("/mnt/nas/file can't be opened"), "{why}");
        assert_eq!(in_time(path, async { Ok(7) }).await.unwrap(), 7);
    }
}
