//! The mesh file: what is written there, what it means, and what is wrong with it.

mod by_ssh;
mod checked;
mod error;
mod file;
mod named;
mod place;
mod server;
mod values;

pub use by_ssh::{SSH, SSH_PROGRAMS, SshServer};
pub(crate) use checked::neither_calls;
pub use checked::{Mesh, Pair, Site, check_site_name};
pub use error::MeshError;
pub use server::FOREIGN_PROTOCOLS;
pub(crate) use server::host_of;
pub(crate) use values::MAX_LENGTH_S;
pub use values::Window;
