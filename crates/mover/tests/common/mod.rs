//! Flows for the tests, both ends in one process: over loopback, or between two namespaces if loopback does not serve
//! the mover.

pub mod veth;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use goodput_model::{Role, SocketOptions, Transport};
use goodput_mover::socket::{tcp_connect, tcp_listen};
use goodput_mover::{Counters, FlowConfig, Gate, MoveError, Mover, RunningFlow, Stop, find, start};
use veth::Veth;

/// A sender and a receiver, connected, waiting at one gate.
pub struct Pair {
    pub sender: RunningFlow,
    pub receiver: RunningFlow,
    pub gate: Arc<Gate>,
    stop: Arc<Stop>,
    /// Where the flow runs, if not here.
    _hosts: Option<Veth>,
}

/// One flow whose peer is a bare socket that does nothing.
pub struct Alone {
    pub flow: RunningFlow,
    pub gate: Arc<Gate>,
    pub stop: Arc<Stop>,
    /// Where the flow runs, if not here.
    _hosts: Option<Veth>,
}

/// How a flow ended and what it had counted.
pub struct Ended {
    pub result: Result<(), MoveError>,
    pub counters: Arc<Counters>,
}

impl Pair {
    /// The mover at both ends, or the plain one at the end that it is not for. `adjust` may change the plan
    /// of each.
    pub fn start(
        mover: &'static dyn Mover,
        transport: Transport,
        adjust: impl Fn(&mut FlowConfig),
    ) -> Self {
        let at = |role| if mover.roles().contains(&role) { mover } else { plain(transport) };
        Self::start_two([at(Role::Sender), at(Role::Receiver)], transport, adjust)
    }

    /// The same with a mover for each end, the sender's first.
    pub fn start_two(
        movers: [&'static dyn Mover; 2],
        transport: Transport,
        adjust: impl Fn(&mut FlowConfig),
    ) -> Self {
        let (hosts, ends) = ends_for(movers[0], transport);
        Self::start_between(hosts, ends, movers, transport, adjust)
    }

    /// The same over two connected sockets, the sender's first, which is at the near one of `hosts`, if there are any.
    pub fn start_between(
        hosts: Option<Veth>,
        (near, far): (OwnedFd, OwnedFd),
        movers: [&'static dyn Mover; 2],
        transport: Transport,
        adjust: impl Fn(&mut FlowConfig),
    ) -> Self {
        let (gate, stop) =
            (Arc::new(Gate::default()), Arc::new(Stop::new().expect("two descriptors")));
        let flow = |role, socket| {
            let mover = if role == Role::Sender { movers[0] } else { movers[1] };
            let mut config = config(role, transport);
            adjust(&mut config);
            start_at(hosts.as_ref(), mover, config, socket, (&gate, &stop))
        };
        let (sender, receiver) = (flow(Role::Sender, near), flow(Role::Receiver, far));
        Self { sender, receiver, gate, stop, _hosts: hosts }
    }

    /// `adjust` may change the plan of the flow.
    pub fn start_alone(
        mover: &'static dyn Mover,
        transport: Transport,
        role: Role,
        adjust: impl Fn(&mut FlowConfig),
    ) -> (Alone, OwnedFd) {
        let (hosts, (near, far)) = ends_for(mover, transport);
        let (gate, stop) =
            (Arc::new(Gate::default()), Arc::new(Stop::new().expect("two descriptors")));
        let mut config = config(role, transport);
        adjust(&mut config);
        let flow = start_at(hosts.as_ref(), mover, config, near, (&gate, &stop));
        (Alone { flow, gate, stop, _hosts: hosts }, far)
    }

    /// Ends both ends politely, with all the time they need.
    pub fn finish(&self) {
        self.stop.finish(Duration::from_secs(60));
    }

    pub fn join(self) -> (Ended, Ended) {
        // In this order, because a sender may wait until the receiver's socket is closed.
        let received = ended(self.receiver);
        (ended(self.sender), received)
    }
}

/// Starts a flow, a sender at the near one of these hosts.
fn start_at(
    hosts: Option<&Veth>,
    mover: &'static dyn Mover,
    config: FlowConfig,
    socket: OwnedFd,
    (gate, stop): (&Arc<Gate>, &Arc<Stop>),
) -> RunningFlow {
    let role = config.role;
    let start = || start(mover, config, socket, Arc::clone(gate), Arc::clone(stop));
    let started = match hosts.filter(|_| role == Role::Sender) {
        Some(hosts) => hosts.near(start),
        None => start(),
    };
    started.expect("a thread")
}

/// Two connected sockets over which a mover can send, and the hosts that have them, if not this one.
fn ends_for(sender: &dyn Mover, transport: Transport) -> (Option<Veth>, (OwnedFd, OwnedFd)) {
    if sender.id() != "xdp" {
        return (None, sockets(transport));
    }
    let hosts = Veth::new();
    let ends = hosts.sockets(false);
    (Some(hosts), ends)
}

fn plain(transport: Transport) -> &'static dyn Mover {
    let id = if transport == Transport::Tcp { "copy" } else { "datagram" };
    find(id).expect("it is in the list")
}

/// What a flow does unless a test changes it.
pub fn config(role: Role, transport: Transport) -> FlowConfig {
    let chunk = if transport == Transport::Tcp { 64 * 1024 } else { 1400 };
    FlowConfig::new(role, transport, chunk)
}

fn ended(flow: RunningFlow) -> Ended {
    let counters = Arc::clone(flow.counters());
    Ended { result: flow.join(), counters }
}

/// Two connected sockets on loopback.
pub fn sockets(transport: Transport) -> (OwnedFd, OwnedFd) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if transport == Transport::Udp {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind(any).expect("a UDP socket"));
        near.connect(far.local_addr().expect("bound")).expect("connected");
        far.connect(near.local_addr().expect("bound")).expect("connected");
        return (near.into(), far.into());
    }
    streams(&SocketOptions::default())
}

/// Two connected TCP sockets on loopback, with options.
pub fn streams(options: &SocketOptions) -> (OwnedFd, OwnedFd) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::from(tcp_listen(any, options).expect("a listener"));
    let address = listener.local_addr().expect("bound");
    let near = tcp_connect(address, options, Duration::from_secs(60)).expect("connected");
    (near, listener.accept().expect("accepted").0.into())
}

/// Waits for a condition.
#[track_caller]
pub fn patience(condition: impl Fn() -> bool) {
    goodput_testing::wait_for("the condition of the test", condition);
}
