//! Which hosts take the place of the ends of a measurement.

use goodput_model::EndName;

use crate::address::Address;
use crate::ssh::Access;

/// Hosts reached by SSH whose settings are changed instead of this host's and the far end's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    /// The host whose settings count as the near end's, if not this host.
    pub near: Option<Address>,
    /// The host whose settings count as the far end's, if goodput there does not change them.
    pub far: Option<Address>,
    /// How they are reached.
    pub access: Access,
}

impl Hosts {
    /// The host that takes the place of an end, if any.
    pub fn at(&self, end: EndName) -> Option<&Address> {
        match end {
            EndName::Near => self.near.as_ref(),
            EndName::Far => self.far.as_ref(),
        }
    }

    /// The same, as commands name it.
    pub fn named(&self, end: EndName) -> Option<String> {
        self.at(end).map(ToString::to_string)
    }
}
