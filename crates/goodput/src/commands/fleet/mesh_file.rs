//! The mesh file on disk.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use goodput_fleet::Mesh;

/// Reads a mesh file.
pub(in crate::commands) fn read(path: &Path) -> Result<Mesh> {
    read_with_text(path).map(|(mesh, _)| mesh)
}

/// The same, with the text of the file.
pub(super) fn read_with_text(path: &Path) -> Result<(Mesh, String)> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| format!("can't read the mesh {shown}"))?;
    Ok((Mesh::parse(&shown, &text)?, text))
}
