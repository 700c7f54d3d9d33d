//! One client: its conversation, its flows, its measurements, its settings.

pub mod client;
pub mod congestion_controls;
pub mod connect;
pub mod flow_deadline;
pub mod gather;
pub mod ports;
pub mod served_client;
pub mod settings;
pub mod shown;
pub mod sign_locks;
pub mod third_party;
pub mod tickets;
pub mod unconfirmed;
