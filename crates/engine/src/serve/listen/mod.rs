//! Where clients arrive: listeners, the first bytes of a connection, the first datagram of an address.

pub mod accept;
pub mod desks;
pub mod echoes;
pub mod front;
pub mod listeners;
pub mod own_listener;
pub mod reserve;
pub mod sockets;
pub mod stranger;
pub mod udp;
