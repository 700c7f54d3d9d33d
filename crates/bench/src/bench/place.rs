//! Where a run takes place.

/// Where client and server are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In two network namespaces joined by a veth pair.
    Veth,
    /// In these two, both on the same CPU: what one does with it the other lacks, and it does not matter
    /// where the scheduler puts them.
    OneCpu,
    /// In one, over its loopback device.
    Loopback,
}

impl Place {
    /// What the kept lines call it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::OneCpu => "one-cpu",
            Self::Loopback => "loopback",
        }
    }

    /// What a page calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Veth => "two namespaces, veth",
            Self::OneCpu => "veth, both on one CPU",
            Self::Loopback => "loopback",
        }
    }
}
