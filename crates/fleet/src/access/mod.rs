//! Where things of a fleet are on the bus, and what each of its users may use there.

pub mod places;
mod rights;
mod server;

pub use rights::Login;
pub use server::server_file;
