//! The mesh file: what is written there, what it means, and what is wrong with it.

mod checked;
mod error;
mod file;
mod named;
mod values;

pub use checked::{Mesh, Pair, Site};
pub use error::MeshError;
pub use values::Window;
