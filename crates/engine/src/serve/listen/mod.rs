//! Where clients arrive: listeners, the first bytes of a connection, the first datagram of an address.

pub mod accept;
pub mod echo_socket;
pub mod endpoint;
pub mod event_thread;
pub mod incoming;
pub mod listeners;
pub mod own_listener;
pub mod port_socket;
pub mod reserve;
pub mod sockets;
pub mod udp;
