//! The kernel's sources of facts, one file each, and the snapshot that queries them all.

mod bus;
mod cgroup;
mod channels;
mod class;
mod coalescing;
mod conntrack;
mod cpu;
mod driver;
mod eee;
mod fec;
mod filters;
mod frequency;
mod interrupts;
mod link;
mod memory;
mod mount;
mod napi;
mod negotiation;
mod neighbour;
mod netstat;
mod nfs;
mod nftables;
mod numa;
mod offload;
mod pause;
mod pressure;
mod process;
mod qdisc;
mod qstats;
mod ring;
mod route;
mod schedule;
mod snmp;
mod sockstat;
mod softirq;
mod softnet;
mod standard;
mod steering;
mod sysctl;
mod wireless;

pub use cpu::host_busy;

use goodput_model::{Missing, Snapshot};

use crate::Context;

/// One place where the kernel keeps facts. Its id is the first part of their names.
pub trait Source: Sync {
    /// The area: all its facts are named `id.…`.
    fn id(&self) -> &'static str;

    /// What it reports, in one phrase.
    fn summary(&self) -> &'static str;

    /// Whether it works here, and if not, why.
    fn can_run(&self, context: &Context) -> Result<(), Missing>;

    /// Records its facts, or why single ones are missing. An error stands for all of them.
    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing>;

    /// Whether its fact of this name, without the area, keeps its value until somebody changes it, or the network gives the
    /// host something else. Neither a counter does, however rarely it grows, nor what moves by itself.
    fn lasts(&self, _name: &str) -> bool {
        false
    }
}

/// All sources.
pub const ALL: &[&dyn Source] = &[
    &bus::Bus,
    &cgroup::Cgroup,
    &channels::ChannelsSource,
    &class::ClassesSource,
    &coalescing::CoalescingSource,
    &conntrack::Conntrack,
    &cpu::Cpu,
    &driver::Driver,
    &eee::EeeSource,
    &fec::FecSource,
    &filters::FiltersSource,
    &frequency::Frequency,
    &interrupts::Interrupts,
    &link::LinkSource,
    &memory::Memory,
    &mount::MountSource,
    &napi::Napi,
    &negotiation::Negotiation,
    &neighbour::Neighbour,
    &netstat::Netstat,
    &nfs::Nfs,
    &nftables::Nftables,
    &numa::Numa,
    &offload::OffloadSource,
    &pause::PauseSource,
    &pressure::PressureSource,
    &process::Process,
    &qdisc::QdiscSource,
    &qstats::Qstats,
    &ring::Ring,
    &route::RouteSource,
    &schedule::Schedule,
    &snmp::Snmp,
    &sockstat::Sockstat,
    &softirq::Softirq,
    &softnet::SoftnetSource,
    &standard::Standard,
    &steering::Steering,
    &sysctl::Sysctl,
    &wireless::Wireless,
];

/// Everything that this host currently knows about the path and itself, and why the rest is missing.
pub fn snapshot(context: &Context) -> Snapshot {
    let context = context.resolved();
    let mut snapshot = Snapshot::default();
    ALL.iter().for_each(|source| ask(*source, &context, &mut snapshot));
    snapshot
}

/// The current CPU times and the peak of memory, recorded in `snapshot`. A whole snapshot costs some milliseconds of
/// CPU, more than a short transfer. A caller leaves this cost out by recording these last before the transfer and first
/// after it.
pub fn usage(context: &Context, snapshot: &mut Snapshot) {
    let sources: [&dyn Source; 2] = [&cpu::Cpu, &process::Process];
    sources.iter().for_each(|source| ask(*source, context, snapshot));
}

/// Whether the fact `area.name` is a setting or a lasting state, see [`Source::lasts`]. A fact of an unknown area is not.
pub fn lasts(fact: &str) -> bool {
    let Some((area, name)) = fact.split_once('.') else { return false };
    ALL.iter().any(|source| source.id() == area && source.lasts(name))
}

fn ask(source: &dyn Source, context: &Context, snapshot: &mut Snapshot) {
    let asked = source.can_run(context);
    if let Err(why) = asked.and_then(|()| source.snapshot(context, snapshot)) {
        snapshot.lacks(source.id(), why.to_string());
    }
}

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod live;
