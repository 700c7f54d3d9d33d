//! Whether this process may set the socket options of a plan.

use std::net::SocketAddr;

use goodput_model::{SocketOptions, Transport};
use socket2::{Domain, Type};

use super::error::SocketError;
use super::{options, tcp, udp};

/// Sets the options on a socket that goes nowhere. What the kernel refuses to this process, it refuses here, before
/// anyone is asked for a flow. `address` only chooses the IP version; device, local address and port are not tried.
///
/// # Errors
/// As opening a flow.
pub fn check_permitted(
    transport: Transport,
    options: &SocketOptions,
    address: SocketAddr,
) -> Result<(), SocketError> {
    match transport {
        Transport::Tcp => {
            let socket = options::new(Type::STREAM, address, options)?;
            tcp::prepare(&socket, options, address)
        }
        Transport::Udp => {
            let socket = options::new(Type::DGRAM, address, options)?;
            udp::prepare(&socket, options, Domain::for_address(address))
        }
    }
}
