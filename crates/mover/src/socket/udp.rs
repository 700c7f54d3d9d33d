//! UDP sockets.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use goodput_model::SocketOptions;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::error::SocketError;
use super::options::{
    bind_device, bind_near, check_family, check_scope, from_free_port, new, set_any, set_buffers,
    set_udp,
};

/// Default receive buffer, bytes: with the kernel's overhead about 40 ms of a full-size stream at 1 Gbit/s, or 10 ms of
/// a million small datagrams per second.
const DEFAULT_RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// A UDP socket connected to `peer`. With `reuse`, several sockets share one local port (`SO_REUSEADDR`), and the
/// kernel delivers a datagram to the socket that is connected to its sender.
///
/// A socket without its own local port (`local` absent, or with port 0) belongs to the end that opens the flow, the
/// near end: `device` applies to it, and so do `bind` and `source_port` if `local` is absent.
pub fn udp_socket(
    local: Option<SocketAddr>,
    peer: SocketAddr,
    options: &SocketOptions,
    reuse: bool,
) -> Result<OwnedFd, SocketError> {
    check_family("send to", peer, options)?;
    check_scope("send to", peer, options)?;
    from_free_port(options, |options| open(local, peer, options, reuse))
}

fn open(
    local: Option<SocketAddr>,
    peer: SocketAddr,
    options: &SocketOptions,
    reuse: bool,
) -> Result<OwnedFd, SocketError> {
    let socket = new(Type::DGRAM, peer, options)?;
    prepare(&socket, options, Domain::for_address(peer))?;
    if reuse {
        socket.set_reuse_address(true).map_err(SocketError::of("share the port for", peer))?;
    }
    match local {
        None => bind_near(&socket, options, peer)?,
        Some(local) => {
            if local.port() == 0 {
                bind_device(&socket, options)?;
            }
            socket.bind(&SockAddr::from(local)).map_err(SocketError::of("bind to", local))?;
        }
    }
    socket.connect(&SockAddr::from(peer)).map_err(SocketError::of("send to", peer))?;
    Ok(socket.into())
}

/// A UDP socket at `address` that is not connected yet, for a flow that the peer opens. `bind` and `device` are not
/// used.
pub fn udp_listen(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, SocketError> {
    check_family("receive at", address, options)?;
    let socket = new(Type::DGRAM, address, options)?;
    prepare(&socket, options, Domain::for_address(address))?;
    socket.bind(&SockAddr::from(address)).map_err(SocketError::of("receive at", address))?;
    Ok(socket.into())
}

/// Sets on a bound socket what the port's own socket did not have.
pub fn apply_datagram(socket: impl AsFd, options: &SocketOptions) -> Result<(), SocketError> {
    let socket = SockRef::from(&socket);
    let family = socket.domain().map_err(SocketError::of("ask the IP version of", "a socket"))?;
    prepare(&socket, options, family)
}

pub(super) fn prepare(
    socket: &Socket,
    options: &SocketOptions,
    family: Domain,
) -> Result<(), SocketError> {
    set_udp_buffers(socket, options)?;
    set_udp(socket, options)?;
    set_any(socket, options, family)
}

/// Both buffers. Without a requested receive buffer, sets one that outlasts the pauses of a busy reader. The kernel
/// does not enlarge UDP buffers on its own, and a loss in this host's socket says nothing about the path.
fn set_udp_buffers(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    set_buffers(socket, options)?;
    if options.rcvbuf_bytes.is_none() {
        // A smaller buffer is the best that can be had then; the record has what is in effect.
        let _ = super::set_receive_buffer(socket.as_fd(), DEFAULT_RECEIVE_BUFFER_BYTES);
    }
    Ok(())
}
