//! A server on a host without an agent, which this agent starts by SSH for one test.
//!
//! To log in and to end the server takes seconds, so both are done by threads: meanwhile names are renewed and calls answered.

use std::thread;

use anyhow::{Context, Result, bail};
use goodput_engine::Interrupt;
use goodput_fleet::SshServer;
use goodput_remote::{Access, Address, FarServer};
use tokio::sync::oneshot;

/// Logs in and starts the server. If the user ends the agent meanwhile, the host ends what it has begun as soon as the
/// connection is closed.
pub(super) async fn start(
    address: &Address,
    access: &Access,
    asked: SshServer,
    interrupt: &Interrupt,
) -> Result<FarServer> {
    let (tell, told) = oneshot::channel();
    let (host, access) = (address.clone(), access.clone());
    let work = move || {
        let SshServer { program, port } = asked;
        // If nobody waits any more, the server ends here.
        drop(tell.send(FarServer::start(&host, &access, program.as_deref(), port)));
    };
    let thread = thread::Builder::new().name("ssh".into()).spawn(work);
    thread.with_context(|| format!("can't start the thread that logs in to {address}"))?;
    tokio::select! {
        started = told => Ok(started.with_context(|| format!("the login to {address} broke off"))??),
        () = interrupt.raised() => bail!("the agent was ended while it logged in to {address}"),
    }
}

/// Ends the server, and waits until it is gone: the next test may need its port.
pub(super) async fn end(server: FarServer) {
    let (tell, told) = oneshot::channel();
    let work = move || {
        drop(server);
        let _ = tell.send(());
    };
    // Without a thread, the server has ended already: it was dropped with its work.
    if thread::Builder::new().name("ssh".into()).spawn(work).is_ok() {
        let _ = told.await;
    }
}
