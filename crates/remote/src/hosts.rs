//! Which hosts stand for the ends of a measurement.

use goodput_model::EndName;

use crate::address::Address;
use crate::ssh::Access;

/// Hosts whose settings are changed by SSH, in the place of those of this host and of the far end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    /// Whose settings those of the near end are, if not this host's.
    pub near: Option<Address>,
    /// Whose settings those of the far end are, if goodput there does not change them.
    pub far: Option<Address>,
    /// How they are reached.
    pub access: Access,
}

impl Hosts {
    /// The host that stands for an end, if any does.
    pub fn at(&self, end: EndName) -> Option<&Address> {
        match end {
            EndName::Near => self.near.as_ref(),
            EndName::Far => self.far.as_ref(),
        }
    }
}
