//! Counters of hosts reached by SSH during a run: read right before and right after it.

use std::time::Instant;

use goodput_model::{BitRate, EndName, Known, Record};
use goodput_remote::{Counted, Counters, PollingRates};

use super::Arm;
use super::appliers::Appliers;
use super::polled_runs::PolledRun;
use crate::error::EngineError;

/// A watched run.
pub(super) struct Watch {
    began: Vec<Began>,
}

/// The counters of one host at the beginning.
struct Began {
    end: EndName,
    device: Option<String>,
    counters: Counters,
    polling: Option<PollingRates>,
    at: Instant,
}

/// What the host that stands for one end counted during a run.
pub struct Watched {
    /// The end that it stands for.
    pub end: EndName,
    /// What it counted.
    pub counted: Counted,
    device: Option<String>,
    polling: Option<PollingRates>,
}

impl Watch {
    /// Reads the counters of the hosts that the arms have changed, or that were reached ([`Appliers::reach`]).
    pub(super) async fn begin(appliers: &mut Appliers, arms: &[Arm]) -> Result<Self, EngineError> {
        let mut began = Vec::new();
        for end in [EndName::Near, EndName::Far] {
            let device = device(arms, end);
            let of = device.clone();
            let read = appliers.ask(end, move |host| {
                let polling = match &of {
                    Some(device) => host.polling(device)?,
                    None => None,
                };
                Ok((host.counters(of.as_deref())?, polling))
            });
            let Some((counters, polling)) = read.await? else { continue };
            began.push(Began { end, device, counters, polling, at: Instant::now() });
        }
        Ok(Self { began })
    }

    /// Reads the counters again.
    pub(super) async fn end(self, appliers: &mut Appliers) -> Result<Vec<Watched>, EngineError> {
        let mut watched = Vec::new();
        for Began { end, device, counters, polling, at } in self.began {
            let of = device.clone();
            let read = appliers.ask(end, move |host| host.counters(of.as_deref())).await?;
            let Some(after) = read else { continue };
            let counted = after.since(&counters, at.elapsed().as_secs_f64());
            watched.push(Watched { end, counted, device, polling });
        }
        Ok(watched)
    }
}

impl Watched {
    /// A host that counted only its CPU time.
    #[cfg(test)]
    pub(super) fn made_up(end: EndName, cpu_s: Known<f64>) -> Self {
        let nothing = Counters::missing("made up");
        let counted = Counted { cpu_s, ..nothing.since(&nothing, 1.0) };
        Self { end, counted, device: None, polling: None }
    }

    /// The run of a host whose card is polled; `None` if no card is polled.
    pub(super) fn polled_run(&self, goodput: BitRate) -> Option<PolledRun> {
        Some(PolledRun {
            goodput,
            device: self.device.clone()?,
            rates: self.polling?,
            packets_per_s: self.counted.packets_per_s.value().copied(),
        })
    }
}

/// The device of that end that the arms change, if they change one.
fn device(arms: &[Arm], end: EndName) -> Option<String> {
    let settings = arms.iter().flat_map(|arm| &arm.0).map(|(setting, _)| setting);
    let of_end =
        settings.filter(|setting| setting.end == end && !setting.name.starts_with("route"));
    let scope = of_end.filter_map(|setting| setting.scope.as_deref()).next()?;
    Some(scope.split_once(':').map_or(scope, |(device, _class)| device).into())
}

/// Adds to a record what its far end did not report but that host did. The near end's host is not the one that goodput
/// runs on.
pub(super) fn complete(record: &mut Record, watched: &[Watched]) {
    for host in watched.iter().filter(|host| host.end == EndName::Far) {
        let reported = &mut record.result.far.host_cpu_percent;
        if let (Known::Missing(_), Known::Value(_)) = (&*reported, &host.counted.cpu_percent) {
            *reported = host.counted.cpu_percent.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_that_of_the_end_s_settings() {
        let arm = |settings: &[&str]| {
            Arm(settings.iter().map(|name| (name.parse().unwrap(), String::new())).collect())
        };
        let arms = [arm(&["offload.tso@eth0", "far:polling@em0"])];
        assert_eq!(device(&arms, EndName::Near).as_deref(), Some("eth0"));
        assert_eq!(device(&arms, EndName::Far).as_deref(), Some("em0"));
        assert_eq!(
            device(&[arm(&["far:qdisc.htb.rate@v0:1:10"])], EndName::Far).as_deref(),
            Some("v0")
        );
        let none = [arm(&["far:route.window@10.0.0.0/8", "far:sysctl.net.inet.tcp.recvspace"])];
        assert_eq!(device(&none, EndName::Far), None);
    }
}
