//! The connections to the kernel that the areas share.

use std::io;

use goodput_model::SettingRef;
use goodput_netlink::{Link, Netlink, NetlinkError};

use crate::error::{SettingError, from_io, from_netlink};
use crate::machine::sysfs::{View, hidden};

/// This namespace.
pub(super) struct Host {
    pub(super) netlink: Netlink,
    pub(super) links: Vec<Link>,
    pub(super) sysfs: View,
}

/// Why something could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the device is gone")]
    Gone,
    #[error("/sys shows another network namespace")]
    Hidden,
    #[error("it was not saved in a form that can be written back")]
    Unreadable,
}

impl Trouble {
    /// The same as an error of a setting.
    pub(super) fn of(self, setting: &SettingRef) -> SettingError {
        let operation = "read what changes with it";
        match self {
            Self::Netlink(cause) => from_netlink(setting, operation, "device", cause),
            Self::Io(cause) => from_io(setting, operation, "file", cause),
            Self::Hidden => hidden(setting),
            Self::Gone | Self::Unreadable => {
                from_io(setting, operation, "device", io::Error::from_raw_os_error(libc::ENODEV))
            }
        }
    }
}

impl Host {
    pub(super) fn open() -> Result<Self, Trouble> {
        let mut netlink = Netlink::open()?;
        let links = netlink.links()?;
        Ok(Self { netlink, links, sysfs: View::open() })
    }

    /// The link called `name`.
    pub(super) fn link(&self, name: &str) -> Result<&Link, Trouble> {
        self.links.iter().find(|link| link.name == name).ok_or(Trouble::Gone)
    }
}
