//! Reads and writes one number of a token bucket filter (tc-tbf(8)); everything else stays.

use goodput_model::SettingRef;
use goodput_netlink::{Netlink, Qdisc, QdiscOptions, Tbf};

use super::{device, jam, shaped};
use crate::error::{SettingError, from_netlink};
use crate::setting::{Assignment, Machine};
use crate::value;

/// The backend of one size of a device's token bucket.
pub(crate) struct TokenBucket {
    get: fn(&Tbf) -> u32,
    set: fn(&mut Tbf, u32),
}

/// The bucket's size.
pub(crate) static BURST: TokenBucket =
    TokenBucket { get: |tbf| tbf.burst_bytes, set: |tbf, bytes| tbf.burst_bytes = bytes };

/// The length of the queue in front of it.
pub(crate) static LIMIT: TokenBucket =
    TokenBucket { get: |tbf| tbf.limit_bytes, set: |tbf, bytes| tbf.limit_bytes = bytes };

impl Machine for TokenBucket {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let (_, tbf) = bucket(&mut device::netlink(setting)?, setting)?;
        Ok((self.get)(&tbf).to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut netlink = device::netlink(setting)?;
        let (qdisc, from) = bucket(&mut netlink, setting)?;
        let mut to = from.clone();
        (self.set)(&mut to, shaped::burst(setting, value)?);
        change(&mut netlink, setting, value, (&qdisc, &from, &to))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let (_, mut tbf) = bucket(&mut device::netlink(setting)?, setting)?;
        (self.set)(&mut tbf, shaped::burst(setting, value)?);
        Ok((self.get)(&tbf.as_read_back()).to_string())
    }

    fn comes_back(&self, setting: &SettingRef) -> Result<(), SettingError> {
        comes_back(setting)
    }

    /// Each change fills the bucket, also one that alters no number (net/sched/sch_tbf.c `tbf_change` sets `q->tokens`).
    fn starts_anew(&self) -> bool {
        true
    }

    /// A bucket and its queue drop each packet that is longer than they are (net/sched/sch_tbf.c `tbf_enqueue`,
    /// net/sched/sch_fifo.c `bfifo_enqueue`).
    fn check_new(
        &self,
        setting: &SettingRef,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), SettingError> {
        check_fits(setting, value, shaped::burst(setting, value)?, earlier)
    }

    fn same(&self, one: &str, other: &str) -> bool {
        shaped::same_burst(one, other)
    }
}

/// Refuses `bytes` for a bucket or a queue that drops each longer packet, if the device has longer ones.
pub(super) fn check_fits(
    setting: &SettingRef,
    value: &str,
    bytes: u32,
    earlier: &[Assignment],
) -> Result<(), SettingError> {
    let least = device::largest_packet(setting, mtu_after(setting, earlier))?;
    if bytes >= least {
        return Ok(());
    }
    let why = format!(
        "packets of {} have up to {least} bytes, and longer ones than this are dropped; it must be {least} to {}",
        device::name(setting),
        u32::MAX
    );
    Err(value::bad(setting, value, why))
}

/// The MTU that `earlier` gives the device of `setting`, if it does.
fn mtu_after(setting: &SettingRef, earlier: &[Assignment]) -> Option<u32> {
    let is_its =
        |one: &SettingRef| one.name == "link.mtu" && device::name(one) == device::name(setting);
    earlier.iter().rev().find(|(one, _)| is_its(one))?.1.parse().ok()
}

/// The backend of the rate of a device's token bucket.
pub(crate) struct BucketRate;

impl Machine for BucketRate {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let (_, tbf) = bucket(&mut device::netlink(setting)?, setting)?;
        Ok(shaped::rate_text(tbf.rate_bytes_per_s))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut netlink = device::netlink(setting)?;
        let (qdisc, from) = bucket(&mut netlink, setting)?;
        let (rate, burst) = shaped::rate_and_burst(setting, value, from.burst_bytes)?;
        let mut to = from.clone();
        (to.rate_bytes_per_s, to.burst_bytes) = (rate, burst);
        change(&mut netlink, setting, value, (&qdisc, &from, &to))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        shaped::rate(setting, value).map(shaped::rate_text)
    }

    fn comes_back(&self, setting: &SettingRef) -> Result<(), SettingError> {
        comes_back(setting)
    }

    /// Each change fills the bucket, also one that alters no number (net/sched/sch_tbf.c `tbf_change` sets `q->tokens`).
    fn starts_anew(&self) -> bool {
        true
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let (_, tbf) = bucket(&mut device::netlink(setting)?, setting)?;
        Ok(shaped::with_burst(tbf.rate_bytes_per_s, tbf.burst_bytes))
    }

    fn same(&self, one: &str, other: &str) -> bool {
        shaped::same_rate(one, other)
    }
}

fn change(
    netlink: &mut Netlink,
    setting: &SettingRef,
    value: &str,
    (qdisc, from, to): (&Qdisc, &Tbf, &Tbf),
) -> Result<(), SettingError> {
    let changed = jam::change(netlink, qdisc, from, to).map_err(|e| {
        from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
    })?;
    if changed { Ok(()) } else { Err(jammed(setting, value)) }
}

/// Refuses a bucket if a change of it would also alter something else. Each change gives the bucket's limit to a queue of
/// packets or bytes inside (net/sched/sch_tbf.c `tbf_change`, net/sched/sch_fifo.c `fifo_set_limit`); a bucket's own queue
/// is not listed.
fn comes_back(setting: &SettingRef) -> Result<(), SettingError> {
    let mut netlink = device::netlink(setting)?;
    let (qdisc, _) = bucket(&mut netlink, setting)?;
    device::refuse_size_table(&mut netlink, setting, &qdisc)?;
    let all = netlink.qdiscs(qdisc.index);
    let all =
        all.map_err(|e| from_netlink(setting, "read its qdiscs", device::name(setting), e))?;
    // The upper half of a class's number is its discipline's.
    let is_inside = |one: &&Qdisc| one.parent >> 16 == qdisc.handle >> 16 && !one.is_default();
    let why = "each change would also set the limit of the queue inside the bucket, which would not come back; remove that \
               queue first";
    match all.iter().filter(is_inside).any(|one| one.kind.get(1..5) == Some("fifo")) {
        true => Err(SettingError::Irreversible { setting: setting.clone(), why }),
        false => Ok(()),
    }
}

fn jammed(setting: &SettingRef, value: &str) -> SettingError {
    SettingError::BadValue {
        setting: setting.clone(),
        value: value.into(),
        why:
            "nothing leaves its queue, and a longer packet there would block it for ever; look what stops the queue, or try again"
                .into(),
    }
}

/// The device's token bucket: the root, or the only one.
fn bucket(netlink: &mut Netlink, setting: &SettingRef) -> Result<(Qdisc, Tbf), SettingError> {
    device::qdisc(netlink, setting, ("tbf", "token buckets"), |qdisc| match &qdisc.options {
        QdiscOptions::Tbf(tbf) => Some(tbf.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use goodput_netlink::Netlink;

    use crate::Changes;
    use crate::testing::{guard, in_scene};

    fn tc(words: &str) -> String {
        let output = std::process::Command::new("tc").args(words.split(' ')).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn what_a_change_would_take_along_for_ever_is_refused_before() {
        in_scene(|state_dir| {
            let bucket = "handle 7: tbf rate 100mbit burst 64k limit 300k";
            for (made, inside, settings, words) in [
                (
                    format!("stab overhead 14 linklayer ethernet {bucket}"),
                    None,
                    &["qdisc.tbf.rate@eth0=50mbit", "qdisc.tbf.limit@eth0=100K"][..],
                    "table of sizes",
                ),
                (
                    "stab overhead 14 linklayer ethernet handle 7: pfifo limit 9".into(),
                    None,
                    &["qdisc.fifo.limit@eth0=10"],
                    "table of sizes",
                ),
                (
                    bucket.into(),
                    Some("parent 7:1 handle 8: pfifo limit 7"),
                    &["qdisc.tbf.rate@eth0=50mbit", "qdisc.tbf.burst@eth0=30K"],
                    "limit of the queue inside",
                ),
            ] {
                tc(&format!("qdisc replace dev eth0 root {made}"));
                inside.map(|inside| tc(&format!("qdisc add dev eth0 {inside}")));
                let before = tc("-d qdisc show dev eth0");
                let mut changes = Changes::begin(state_dir, guard()).unwrap();
                for assignment in settings {
                    let (setting, value) = assignment.split_once('=').unwrap();
                    let refused = changes.apply(&setting.parse().unwrap(), value).unwrap_err();
                    assert!(refused.to_string().contains(words), "{assignment}: {refused}");
                }
                assert_eq!(tc("-d qdisc show dev eth0"), before);
                drop(changes);
                tc("qdisc del dev eth0 root");
            }
        });
    }

    /// What waits in the queue after a few full packets of 1514 bytes, bytes.
    fn backlog_after(packets: u64) -> u64 {
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        for _ in 0..packets {
            socket.send_to(&[0; 1472], "192.0.2.9:9").unwrap();
        }
        let mut netlink = Netlink::open().unwrap();
        let index = netlink.link("eth0").unwrap().index;
        let all = netlink.qdiscs(index).unwrap();
        all.iter().find(|qdisc| qdisc.kind == "tbf").unwrap().stats.backlog_bytes
    }

    #[test]
    fn a_bucket_is_full_again_although_its_limit_stays() {
        in_scene(|state_dir| {
            // By itself it fills in 150 s.
            tc("qdisc replace dev eth0 root tbf rate 800bit burst 15000 limit 100000");
            let limit = "qdisc.tbf.limit@eth0".parse().unwrap();
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            for bytes in ["50000", "50000", "100000", "100000", "50000"] {
                changes.apply(&limit, bytes).unwrap();
                assert_eq!(backlog_after(8), 0, "{bytes}");
            }
            assert_ne!(backlog_after(8), 0);
            assert!(changes.restore().is_clean());
        });
    }

    #[test]
    fn a_bucket_with_its_own_queue_comes_back() {
        in_scene(|state_dir| {
            let before = tc("-d qdisc show dev eth0");
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&"qdisc.tbf.rate@eth0".parse().unwrap(), "50mbit").unwrap();
            assert!(changes.restore().is_clean());
            assert_eq!(tc("-d qdisc show dev eth0"), before);
        });
    }
}
