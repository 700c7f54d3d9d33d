//! The part of the namespace that a setting may affect.

use std::path::PathBuf;

use crate::sysctl_cell;

/// The part of the namespace that a setting may affect beside its own value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Footprint {
    /// None.
    Nothing,
    /// Everything about its device, and about the devices above it or that it is part of.
    Device,
    /// The same, and these parameters of the whole host, as files below /proc/sys.
    DeviceAnd(Vec<PathBuf>),
    /// The addresses, routes and rules of the namespace.
    Routes,
    /// These parameters, as files below /proc/sys: the kernel is known to alter them along with the setting.
    Sysctls(Vec<PathBuf>),
    /// Everything.
    Namespace,
}

impl Footprint {
    /// Whether the footprint covers a cell. Journals of older versions have cells of a whole directory.
    pub(crate) fn covers(&self, cell: &str) -> bool {
        match self {
            Self::Sysctls(_) => self.parameters().any(|name| name == cell),
            _ => true,
        }
    }

    /// The names of the cells that are certain to be altered.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = String> {
        let files = match self {
            Self::Sysctls(files) | Self::DeviceAnd(files) => files.as_slice(),
            _ => &[],
        };
        files.iter().filter_map(|file| sysctl_cell::name(file))
    }
}
