//! UDP sockets.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use goodput_model::SocketOptions;
use socket2::{Domain, SockAddr, SockRef, Type};

use super::error::SocketError;
use super::options::{bind_device, bind_near, check_family, new, set_buffers, set_dscp};

/// A UDP socket connected to `peer`. With `reuse`, several sockets share one local port
/// (`SO_REUSEADDR`), and the kernel gives a datagram to the one that is connected to its sender.
///
/// A socket without a local port of its own (`local` absent, or with port 0) belongs to the end that
/// opens the flow, the near end: `device` holds for it, and `bind` where `local` is absent.
pub fn udp_socket(
    local: Option<SocketAddr>,
    peer: SocketAddr,
    options: &SocketOptions,
    reuse: bool,
) -> Result<OwnedFd, SocketError> {
    check_family("send to", peer, options)?;
    let socket = new(Type::DGRAM, peer)?;
    set_buffers(&socket, options)?;
    set_dscp(&socket, options, Domain::for_address(peer))?;
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

/// A UDP socket at `address` that is not connected yet: for a flow that the peer opens. `bind` and
/// `device` are not used.
pub fn udp_listen(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, SocketError> {
    check_family("receive at", address, options)?;
    let socket = new(Type::DGRAM, address)?;
    set_buffers(&socket, options)?;
    set_dscp(&socket, options, Domain::for_address(address))?;
    socket.bind(&SockAddr::from(address)).map_err(SocketError::of("receive at", address))?;
    Ok(socket.into())
}

/// Sets on a bound socket what the port's own did not have.
pub fn apply_datagram(socket: impl AsFd, options: &SocketOptions) -> Result<(), SocketError> {
    let socket = SockRef::from(&socket);
    let family = socket.domain().map_err(SocketError::of("ask the IP version of", "a socket"))?;
    set_buffers(&socket, options)?;
    set_dscp(&socket, options, family)
}
