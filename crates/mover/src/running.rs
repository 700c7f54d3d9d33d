//! A flow on its own thread: how it is started, watched and joined.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use goodput_model::{FlowTotals, Known, Role, Transport};
use rustix::io::Errno;

use crate::affinity::{self, CpusSeen};
use crate::clock::ThreadCpu;
use crate::counters::Counters;
use crate::error::MoveError;
use crate::flow::{Flow, FlowConfig};
use crate::gate::Gate;
use crate::movers::Mover;
use crate::socket;
use crate::stop::Stop;
use crate::udp::waiting::{payload_bytes, waiting_payload};

/// Stack of a flow's thread, bytes: its buffers are on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// A flow that was started. Dropping it lets the thread run on until its [`Stop`]; join it.
#[derive(Debug)]
pub struct RunningFlow {
    config: FlowConfig,
    socket: Arc<OwnedFd>,
    counters: Arc<Counters>,
    cpu: Arc<ThreadCpu>,
    cpus: Arc<CpusSeen>,
    began: Arc<OnceLock<Instant>>,
    over: Arc<OnceLock<Instant>>,
    failed: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), MoveError>>,
}

/// Starts the thread of one flow. It waits at `gate`, then moves payload until the flow's end or
/// `stop`. `socket` is connected; it is put into non-blocking mode and closed with the flow.
///
/// Fails if the mover can't do the flow's task, if a datagram is too short for its header, if the socket refuses its
/// mode or rate, or if no thread can be created.
pub fn start(
    mover: &'static dyn Mover,
    config: FlowConfig,
    socket: OwnedFd,
    gate: Arc<Gate>,
    stop: Arc<Stop>,
) -> io::Result<RunningFlow> {
    check_role(mover, config.role)?;
    check_datagram(&config)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    if let (Role::Sender, Transport::Tcp, Some(rate)) = (config.role, config.transport, config.rate)
    {
        socket::limit_pacing_rate(socket.as_fd(), rate)?;
    }
    if let (Role::Receiver, Transport::Udp, Some(most)) =
        (config.role, config.transport, config.queue_bytes)
    {
        socket::limit_queue(socket.as_fd(), most)?;
    }
    let (socket, counters) =
        (Arc::new(socket), Arc::new(Counters::of(&config.framing, config.shared_rates.len())));
    let (cpu, cpus) = (Arc::new(ThreadCpu::new()), Arc::new(CpusSeen::default()));
    let (began, over) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let flow = Flow {
        config: config.clone(),
        socket: Arc::clone(&socket),
        counters: Arc::clone(&counters),
        stop,
        gate,
        began: Arc::clone(&began),
        over: Arc::clone(&over),
    };
    let failed = Arc::new(AtomicBool::new(false));
    let (inner_cpu, inner_cpus) = (Arc::clone(&cpu), Arc::clone(&cpus));
    let inner_failed = Arc::clone(&failed);
    let thread = Builder::new()
        .name(thread_name(&config))
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let result = run(mover, &flow, &inner_cpu, &inner_cpus);
            inner_failed.store(result.is_err(), Ordering::Release);
            result
        })
        .map_err(|cause| no_thread(&cause))?;
    Ok(RunningFlow { config, socket, counters, cpu, cpus, began, over, failed, thread })
}

fn check_role(mover: &dyn Mover, role: Role) -> io::Result<()> {
    if mover.roles().contains(&role) {
        return Ok(());
    }
    let lacks = if role == Role::Sender { "send" } else { "receive" };
    let words = format!("the mover {} can't {lacks}", mover.id());
    Err(io::Error::new(io::ErrorKind::InvalidInput, words))
}

fn check_datagram(config: &FlowConfig) -> io::Result<()> {
    if (config.role, config.transport) != (Role::Sender, Transport::Udp) {
        return Ok(());
    }
    let (chunk, least) = (config.chunk, config.datagrams().least());
    if chunk >= least {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "a datagram of {chunk} bytes is too small for the {least} bytes that this protocol writes into each; choose a larger --chunk"
        ),
    ))
}

/// At most 15 bytes, the kernel's limit.
fn thread_name(config: &FlowConfig) -> String {
    let role = if config.role == Role::Sender { "send" } else { "recv" };
    format!("flow-{}-{role}", config.id)
}

/// The error for a thread that the system refuses to create, with advice for the user.
pub fn no_thread(cause: &io::Error) -> io::Error {
    let words = format!(
        "can't start a thread: {cause}; use fewer flows, or raise the limit on processes \
         (ulimit -u, pids.max of the control group)"
    );
    io::Error::new(cause.kind(), words)
}

fn run(mover: &dyn Mover, flow: &Flow, cpu: &ThreadCpu, cpus: &CpusSeen) -> Result<(), MoveError> {
    cpu.begin();
    let result = sit_down(flow).and_then(|()| {
        flow.gate.wait(&flow.stop);
        flow.config.bodies.iter().for_each(|bodies| bodies.set_may_decode(mover.decodes()));
        cpus.note_own();
        match flow.config.role {
            Role::Sender => mover.send(flow),
            Role::Receiver => mover.receive(flow),
        }
    });
    if result.as_ref().is_err_and(|why| ends_the_others(&flow.config, why)) {
        flow.stop.abort();
    }
    if matches!(result, Err(MoveError::Aborted { .. })) {
        // Queued data must not linger in the kernel. Fails only if the peer has reset the connection already.
        let _ = rustix::net::sockopt::set_socket_linger(&flow.socket, Some(Duration::ZERO));
    }
    flow.payload_is_over();
    cpus.note_own();
    cpu.end();
    result
}

/// Whether the measurement can't go on without this flow. A peer that went away may still report why.
fn ends_the_others(config: &FlowConfig, why: &MoveError) -> bool {
    why.is_of_this_host() && !(config.may_be_lost && why.is_of_one_connection())
}

/// Moves to its CPU before it touches its working memory.
fn sit_down(flow: &Flow) -> Result<(), MoveError> {
    let Some(cpu) = flow.config.pin else { return Ok(()) };
    let failed = |cause: Errno| {
        flow.stop.abort();
        MoveError::Pin { flow: flow.config.id, cpu, cause: cause.into() }
    };
    affinity::pin(cpu).map_err(failed)
}

impl RunningFlow {
    /// Its configuration.
    pub fn config(&self) -> &FlowConfig {
        &self.config
    }

    /// Its counts so far; may be kept beyond [`RunningFlow::join`].
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Payload bytes of the datagrams that have come, before the gate is open. 0 for a flow that receives none, or if the
    /// kernel doesn't show them.
    pub fn waiting_datagram_bytes(&self) -> u64 {
        let config = &self.config;
        if (config.role, config.transport) != (Role::Receiver, Transport::Udp) {
            return 0;
        }
        let mut datagrams = config.datagrams();
        let early = config.early.datagrams.iter();
        let early: u64 = early.map(|one| payload_bytes(one, datagrams.as_mut())).sum();
        early + waiting_payload(self.socket(), datagrams.as_mut()).unwrap_or(0)
    }

    /// Its socket, to query the kernel. Open until the flow is joined or dropped.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// CPU time of its thread, user and system, microseconds; still correct after its end.
    pub fn cpu_us(&self) -> Known<u64> {
        self.cpu.used_us()
    }

    /// Time that its thread was ready to run but waited for a CPU, microseconds; still correct after its end.
    pub fn cpu_wait_us(&self) -> Known<u64> {
        self.cpu.waited_us()
    }

    /// Notes the CPU that its thread is on now.
    pub fn look_where(&self) {
        // Only a running thread is certain to own its id.
        if let Some(cpu) = self.cpu.thread().and_then(affinity::cpu_of)
            && self.cpu.thread().is_some()
        {
            self.cpus.note(cpu);
        }
    }

    /// CPUs on which its thread was seen so far: when it began, whenever [`RunningFlow::look_where`] was called, and at
    /// its end. In rising order.
    pub fn seen_on(&self) -> Vec<u16> {
        self.cpus.seen()
    }

    /// The peer's report on this flow, sent on the flow itself. `None` if there is none.
    pub fn reported_by_peer(&self) -> Option<FlowTotals> {
        self.counters.reported_by_peer().cloned()
    }

    /// Whether its thread has ended, well or not.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Whether its thread has ended with an error. [`RunningFlow::join`] has the error.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// When its payload's clock began, if [`announces_its_beginning`]; `None` until this is known, and if the clock begins
    /// with the gate.
    ///
    /// [`announces_its_beginning`]: goodput_framing::Layout::announces_its_beginning
    pub fn began_at(&self) -> Option<Instant> {
        self.began.get().copied()
    }

    /// When it had moved its last payload. `None` until this is known, or if its thread panicked.
    pub fn finished_at(&self) -> Option<Instant> {
        self.over.get().copied()
    }

    /// The socket. It stays open until this is dropped as well.
    pub fn shared_socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }

    /// Waits for its end and closes the socket, if nobody else keeps it.
    pub fn join(self) -> Result<(), MoveError> {
        let flow = self.config.id;
        self.thread.join().unwrap_or(Err(MoveError::Panicked { flow }))
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use goodput_model::{Role, Transport};

    use super::*;
    use crate::{Gate, Stop};

    #[test]
    fn only_a_flow_that_may_be_lost_leaves_the_others_alone() {
        let ends = |may_be_lost, cause: Errno| {
            let base = FlowConfig::new(Role::Sender, Transport::Tcp, 1000);
            let why = MoveError::System { flow: 0, operation: "send", cause: cause.into() };
            ends_the_others(&FlowConfig { may_be_lost, ..base }, &why)
        };
        assert!(!ends(true, Errno::TIMEDOUT) && !ends(true, Errno::HOSTUNREACH));
        assert!(ends(false, Errno::TIMEDOUT), "its part would be missed");
        assert!(ends(true, Errno::NOMEM), "this host failed");
    }

    /// The other flows would go on for the whole of a measurement that has failed.
    #[test]
    fn a_flow_that_this_host_can_not_carry_ends_the_others() {
        let (near, far) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (near, far) = (near.unwrap(), far.unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().unwrap()));
        let config = |role, chunk| FlowConfig {
            framing: goodput_framing::iperf3(false),
            ..FlowConfig::new(role, Transport::Udp, chunk)
        };
        let (too_long, receiver) = (config(Role::Sender, 65_530), config(Role::Receiver, 100));
        let mover = crate::find("datagram").unwrap();
        let start = |config, socket: UdpSocket| {
            start(mover, config, socket.into(), Arc::clone(&gate), Arc::clone(&stop)).unwrap()
        };
        let (other, fails) = (start(receiver, far), start(too_long, near));
        gate.open();
        let why = fails.join().unwrap_err().to_string();
        assert!(why.contains("smaller --chunk"), "{why}");
        assert!(other.join().unwrap_err().is_abort());
    }
}
