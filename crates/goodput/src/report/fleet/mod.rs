//! What is shown of a mesh of hosts.

pub mod matrix;
pub mod plan;
pub mod turn;
