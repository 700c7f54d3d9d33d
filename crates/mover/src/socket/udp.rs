//! UDP sockets.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use goodput_model::SocketOptions;
use socket2::{Domain, SockAddr, Type};

use super::error::SocketError;
use super::options::{bind_near, check_family, new, set_buffers, set_dscp};

/// A UDP socket, bound to `local` and connected to `peer`, where given. With `reuse`, several
/// sockets share one local port (`SO_REUSEADDR`), and the kernel gives a datagram to the one that
/// is connected to its sender. Without `local` it is the near end's, which takes address and device
/// from `options`.
pub fn udp_socket(
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    options: &SocketOptions,
    reuse: bool,
) -> Result<OwnedFd, SocketError> {
    let address = local.or(peer).unwrap_or_else(|| wildcard(options));
    check_family("use", address, options)?;
    let socket = new(Type::DGRAM, address)?;
    set_buffers(&socket, options)?;
    set_dscp(&socket, options, Domain::for_address(address))?;
    if reuse {
        socket.set_reuse_address(true).map_err(SocketError::of("share", address))?;
    }
    match local {
        Some(local) => {
            socket.bind(&SockAddr::from(local)).map_err(SocketError::of("bind to", local))?;
        }
        None => bind_near(&socket, options, address)?,
    }
    if let Some(peer) = peer {
        socket.connect(&SockAddr::from(peer)).map_err(SocketError::of("send to", peer))?;
    }
    Ok(socket.into())
}

/// Any address of the family that the user wants.
fn wildcard(options: &SocketOptions) -> SocketAddr {
    match (options.family, options.bind) {
        (Some(goodput_model::Family::V6), _) | (_, Some(std::net::IpAddr::V6(_))) => {
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
        }
        _ => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
    }
}
