//! The control connection of either end: the peer, the client's credentials, and the session that it
//! drives.

pub mod budget;
pub mod conversation;
pub mod credentials;
pub mod dial;
pub mod target;
