//! The control connection of either end: whom it reaches, what proves who asks, and the session that it drives.

pub mod budget;
pub mod conversation;
pub mod credentials;
pub mod dial;
pub mod target;
