//! The registry of faults that a scenario can have. One file per entry, one list.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer};

mod cpu_quota;
mod ebpf_policer;
mod filter_rules;
mod htb;
mod icmp_filter;
mod link_flap;
mod loss;
mod mtu;
mod offload;
mod oversize;
mod policer;
mod route_advmss;
mod route_mtu;
mod route_window;
mod syn_mss;
mod syn_without;
mod sysctl;
mod tbf;
mod tc;
mod txqueuelen;

use crate::error::LabError;
use crate::host::Host;
use crate::host_name::HostName;
use crate::limits::Limits;
use crate::need::Need;

/// Every kind of fault.
pub const ALL: &[&Kind] = &[
    &cpu_quota::KIND,
    &ebpf_policer::KIND,
    &htb::KIND,
    &icmp_filter::KIND,
    &link_flap::KIND,
    &loss::KIND,
    &mtu::KIND,
    &offload::KIND,
    &oversize::KIND,
    &policer::KIND,
    &route_advmss::KIND,
    &route_mtu::KIND,
    &route_window::KIND,
    &syn_mss::KIND,
    &syn_without::KIND,
    &sysctl::KIND,
    &tbf::KIND,
    &tc::KIND,
    &txqueuelen::KIND,
];

/// A kind of fault: static facts, and how to parse a scenario's table into a fault.
pub struct Kind {
    /// The value of `kind` in a scenario; kebab-case, and the name of its file.
    pub id: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// A table as in a scenario, without its `kind`; the conformance test plants it.
    pub example: &'static str,
    read: fn(toml::Table) -> Result<Arc<dyn Fault>, toml::de::Error>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// When a fault is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantTime {
    /// As soon as the host exists.
    HostUp,
    /// Once goodput runs in the host.
    ProcessRuns,
}

/// Where a fault is planted.
#[derive(Debug, Clone, Copy)]
pub struct FaultTarget<'a> {
    /// The host.
    pub host: &'a Host,
    /// The process of goodput in it, if it is already running.
    pub pid: Option<u32>,
}

/// What undoes a fault when it is dropped; nothing if the fault goes with its host.
pub type Undo = Option<Box<dyn Any + Send>>;

/// One fault, as specified by a scenario.
pub trait Fault: fmt::Debug + Send + Sync {
    /// The host with the fault.
    fn host(&self) -> HostName;

    /// When to plant it.
    fn when(&self) -> PlantTime {
        PlantTime::HostUp
    }

    /// What it needs beyond network namespaces.
    fn needs(&self) -> &'static [Need] {
        &[]
    }

    /// What it leaves of the direction from near to far; by default everything.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Plants it.
    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError>;

    /// The kernel's current state there, in words: differs before and after planting.
    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError>;
}

/// A fault of a scenario with its kind.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Its kind.
    pub kind: &'static Kind,
    /// The fault.
    pub fault: Arc<dyn Fault>,
}

impl<'de> Deserialize<'de> for Planned {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(input)?;
        let id = match table.remove("kind") {
            Some(toml::Value::String(id)) => id,
            Some(_) => return Err(de::Error::custom("kind must be text")),
            None => return Err(de::Error::custom(format!("a fault needs a kind: {}", ids()))),
        };
        let kind = ALL.iter().find(|kind| kind.id == id).ok_or_else(|| {
            de::Error::custom(format!("there is no fault {id:?}; there are {}", ids()))
        })?;
        let fault = (kind.read)(table)
            .map_err(|error| de::Error::custom(format!("fault {id}: {}", error.message())))?;
        Ok(Self { kind, fault })
    }
}

fn ids() -> String {
    ALL.iter().map(|kind| kind.id).collect::<Vec<_>>().join(", ")
}

/// The `read` function of each kind.
fn read<F: Fault + DeserializeOwned + 'static>(
    table: toml::Table,
) -> Result<Arc<dyn Fault>, toml::de::Error> {
    let fault: F = table.try_into()?;
    Ok(Arc::new(fault))
}

#[cfg(test)]
mod conformance;
