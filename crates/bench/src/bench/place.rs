//! Where a run takes place.

/// Where client and server are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In two network namespaces joined by a veth pair.
    Veth,
    /// In these two, both on the same CPU: each takes CPU time from the other, and the scheduler's placement does not
    /// matter.
    OneCpu,
    /// In one namespace, over its loopback device.
    Loopback,
}

impl Place {
    /// Its name in the kept lines.
    pub fn id(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::OneCpu => "one-cpu",
            Self::Loopback => "loopback",
        }
    }

    /// Its name on a page.
    pub fn words(self) -> &'static str {
        match self {
            Self::Veth => "two namespaces, veth",
            Self::OneCpu => "veth, both on one CPU",
            Self::Loopback => "loopback",
        }
    }
}
