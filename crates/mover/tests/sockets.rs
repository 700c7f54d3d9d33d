//! Sockets with options on loopback: set in time, read back, and refused in words.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use goodput_model::{Bytes, Family, SocketOptions, Transport};
use goodput_mover::socket::{
    SocketError, apply_accepted, check_effective, check_permitted, effective, tcp_connect,
    tcp_listen, udp_socket,
};
use socket2::SockRef;

const TIMEOUT: Duration = Duration::from_secs(60);

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn connect(options: &SocketOptions) -> Result<(OwnedFd, TcpStream), SocketError> {
    let listener = TcpListener::from(tcp_listen(any(), options)?);
    let near = tcp_connect(listener.local_addr().expect("bound"), options, TIMEOUT)?;
    Ok((near, listener.accept().expect("accepted").0))
}

/// Runs `work` on a thread without capabilities.
fn without_privileges<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        let none = rustix::thread::CapabilitySet::empty();
        let sets =
            rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).expect("fewer are always allowed");
        work()
    });
    thread.join().expect("it does not panic")
}

fn refused(options: SocketOptions) -> String {
    connect(&options).map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn both_ends_get_what_was_asked_for_before_the_handshake() {
    let options = SocketOptions {
        sndbuf_bytes: Some(Bytes(65536)),
        rcvbuf_bytes: Some(Bytes(131_072)),
        congestion: Some("reno".into()),
        mss_bytes: Some(900),
        dscp: Some(10),
        nodelay: true,
        bind: Some(Ipv4Addr::new(127, 0, 0, 7).into()),
        ..SocketOptions::default()
    };
    let (near, far) = connect(&options).unwrap();
    assert_eq!(far.peer_addr().unwrap().ip(), Ipv4Addr::new(127, 0, 0, 7));
    assert_eq!(apply_accepted(&far, &options).unwrap(), [""; 0], "the listener had it all");
    for socket in [near.as_fd(), far.as_fd()] {
        assert_eq!(check_effective(socket, &options), [""; 0]);
        let has = effective(socket).unwrap();
        assert_eq!((has.sndbuf, has.rcvbuf), (131_072, 262_144));
        assert_eq!(has.congestion.as_deref(), Some("reno"));
        assert!(has.mss.unwrap() <= 900, "{has:?}");
        let socket = SockRef::from(&socket);
        assert_eq!(socket.tos_v4().unwrap() >> 2, 10);
        assert!(socket.tcp_nodelay().unwrap());
    }
}

#[test]
fn both_ends_wait_poll_and_queue_as_asked() {
    let options = SocketOptions {
        notsent_lowat_bytes: Some(Bytes(16_384)),
        busy_poll_us: Some(0),
        priority: Some(5),
        // Sets a priority of its own, which the explicit one replaces.
        dscp: Some(10),
        ..SocketOptions::default()
    };
    let (near, far) = connect(&options).unwrap();
    apply_accepted(&far, &options).unwrap();
    for socket in [near.as_fd(), far.as_fd()] {
        assert_eq!(check_effective(socket, &options), [""; 0]);
        let has = effective(socket).unwrap();
        assert_eq!((has.notsent_lowat, has.busy_poll_us), (Some(16_384), Some(0)));
        assert_eq!((has.priority, has.dscp), (Some(5), Some(10)));
    }
}

#[test]
fn the_privilege_of_a_high_priority_is_named_with_or_without_a_flow() {
    let refused = without_privileges(|| {
        let options = SocketOptions { priority: Some(7), ..SocketOptions::default() };
        let plain = SocketOptions::default();
        [Transport::Tcp, Transport::Udp]
            .iter()
            .for_each(|of| check_permitted(*of, &plain, any()).expect("nothing is asked for"));
        [
            connect(&options).map(|_| ()),
            check_permitted(Transport::Tcp, &options, any()),
            check_permitted(Transport::Udp, &options, any()),
        ]
    });
    for error in refused.map(|refused| refused.expect_err("refused")) {
        assert!(error.is_not_permitted());
        let said = error.to_string();
        let why = said.contains("priority 7") && said.contains("above 6 needs CAP_NET_ADMIN");
        assert!(why, "{said}");
    }
}

/// New kernels let anyone poll for as long as they want.
#[test]
fn the_longest_busy_poll_without_a_privilege_is_named() {
    let tried = without_privileges(|| {
        let options = SocketOptions { busy_poll_us: Some(999_999), ..SocketOptions::default() };
        check_permitted(Transport::Tcp, &options, any())
    });
    if let Err(refused) = tried {
        let said = refused.to_string();
        assert!(refused.is_not_permitted() && said.contains("at most"), "{said}");
        assert!(said.contains(" us, the value of sysctl net.core.busy_read"), "{said}");
    }
}

#[test]
fn what_comes_after_the_handshake_is_doubted() {
    let listener = TcpListener::from(tcp_listen(any(), &SocketOptions::default()).unwrap());
    let address = listener.local_addr().unwrap();
    let near = tcp_connect(address, &SocketOptions::default(), TIMEOUT).unwrap();
    let far = listener.accept().unwrap().0;
    let current = effective(&far).unwrap().congestion.unwrap();
    let other = if current == "reno" { "cubic" } else { "reno" };
    let options = SocketOptions {
        congestion: Some(other.into()),
        rcvbuf_bytes: Some(Bytes(64 << 20)),
        ..SocketOptions::default()
    };
    let doubts = apply_accepted(&far, &options).unwrap();
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    assert!(doubts[0].contains(&format!("began with {current}")), "{doubts:?}");
    assert_eq!(effective(&far).unwrap().congestion.as_deref(), Some(other));
    drop(near);
}

#[test]
fn a_buffer_the_kernel_cut_is_reported_with_the_limit() {
    let asked = SocketOptions { sndbuf_bytes: Some(Bytes(1 << 30)), ..SocketOptions::default() };
    let (near, _far) = connect(&asked).unwrap();
    let doubts = check_effective(&near, &asked);
    assert_eq!(doubts.len(), 1, "{doubts:?}");
    assert!(doubts[0].contains("limited by net.core.wmem_max = "), "{doubts:?}");
}

#[test]
fn mistakes_are_named_with_a_way_out() {
    let options = SocketOptions::default;
    let congestion = refused(SocketOptions { congestion: Some("nosuch".into()), ..options() });
    assert!(congestion.starts_with("can't use congestion control nosuch: "), "{congestion}");
    assert!(congestion.contains("this kernel has: "), "{congestion}");
    let dscp = refused(SocketOptions { dscp: Some(64), ..options() });
    assert!(dscp.contains("code point 64: it is not within 0 to 63"), "{dscp}");
    let family = refused(SocketOptions { family: Some(Family::V6), ..options() });
    assert!(family.contains("not the requested one"), "{family}");
    let device = refused(SocketOptions { device: Some("nosuch0".into()), ..options() });
    assert!(device.contains("bind to device nosuch0"), "{device}");
    let bind =
        refused(SocketOptions { bind: Some(Ipv4Addr::new(192, 0, 2, 1).into()), ..options() });
    assert!(
        bind.contains("bind to 192.0.2.1") && bind.contains("no device of this host"),
        "{bind}"
    );
    let mixed = refused(SocketOptions { bind: Some(Ipv6Addr::LOCALHOST.into()), ..options() });
    assert!(mixed.contains("is not the peer's"), "{mixed}");
}

#[test]
fn ipv6_carries_the_code_point_as_well() {
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    if TcpListener::bind(any).is_err() {
        return goodput_testing::skip("IPv6 on loopback");
    }
    let options = SocketOptions { dscp: Some(34), ..SocketOptions::default() };
    let listener = TcpListener::from(tcp_listen(any, &options).unwrap());
    let near = tcp_connect(listener.local_addr().unwrap(), &options, TIMEOUT).unwrap();
    let far = listener.accept().unwrap().0;
    apply_accepted(&far, &options).unwrap();
    for socket in [near.as_fd(), far.as_fd()] {
        assert_eq!(SockRef::from(&socket).tclass_v6().unwrap() >> 2, 34);
    }
}

#[test]
fn a_refused_port_asks_for_the_server() {
    // Bound, so that it is nobody else's, and refusing, because it does not listen.
    let bound = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    bound.bind(&any().into()).unwrap();
    let free = bound.local_addr().unwrap().as_socket().unwrap();
    let error = tcp_connect(free, &SocketOptions::default(), TIMEOUT).unwrap_err();
    assert!(!error.is_not_permitted());
    let words = std::io::Error::from(error).to_string();
    assert!(words.starts_with(&format!("can't connect to {free}")), "{words}");
    assert!(words.ends_with("is the server running?"), "{words}");
}

#[test]
fn udp_sockets_share_a_port_and_hear_only_their_peer() {
    let options = SocketOptions { dscp: Some(46), ..SocketOptions::default() };
    let local = std::net::UdpSocket::bind(any()).unwrap();
    SockRef::from(&local).set_reuse_address(true).unwrap();
    let port = local.local_addr().unwrap();
    let one = std::net::UdpSocket::from(udp_socket(None, port, &options, false).unwrap());
    let two = std::net::UdpSocket::from(udp_socket(Some(any()), port, &options, false).unwrap());
    let of_one = udp_socket(Some(port), one.local_addr().unwrap(), &options, true).unwrap();
    let of_one = std::net::UdpSocket::from(of_one);
    two.send(b"two").unwrap();
    one.send(b"one").unwrap();
    let mut room = [0; 8];
    assert_eq!(of_one.recv(&mut room).unwrap(), 3);
    assert_eq!(&room[..3], b"one");
    assert_eq!(SockRef::from(&one).tos_v4().unwrap() >> 2, 46);
    assert_eq!(effective(&one).unwrap().congestion, None);
}
