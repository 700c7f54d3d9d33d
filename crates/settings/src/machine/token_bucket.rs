//! Reads and writes one size of a token bucket filter (tc-tbf(8)); everything else of it stays.

use goodput_model::SettingRef;
use goodput_netlink::{Netlink, Qdisc, QdiscOptions, Tbf};

use super::{device, jam};
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
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
        (self.set)(&mut to, bytes(setting, value)?);
        let changed = jam::change(&mut netlink, &qdisc, &from, &to).map_err(|e| {
            from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
        })?;
        if changed { Ok(()) } else { Err(jammed(setting, value)) }
    }

    /// The kernel keeps a burst as the time that it takes at the rate, in steps of 64 ns.
    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let (_, mut tbf) = bucket(&mut device::netlink(setting)?, setting)?;
        (self.set)(&mut tbf, bytes(setting, value)?);
        Ok((self.get)(&tbf.as_read_back()).to_string())
    }
}

fn jammed(setting: &SettingRef, value: &str) -> SettingError {
    SettingError::BadValue {
        setting: setting.clone(),
        value: value.into(),
        why:
            "packets longer than it keep coming and would jam the queue; stop what sends them, or \
              switch segmentation off (offload.tso, offload.gso)"
                .into(),
    }
}

fn bytes(setting: &SettingRef, value: &str) -> Result<u32, SettingError> {
    let bytes = value::size(setting, value, u32::MAX.into())?;
    Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// The device's token bucket: the root one, or the only one.
fn bucket(netlink: &mut Netlink, setting: &SettingRef) -> Result<(Qdisc, Tbf), SettingError> {
    let index = device::index(netlink, setting)?;
    let device = device::name(setting);
    let all =
        netlink.qdiscs(index).map_err(|e| from_netlink(setting, "read its qdiscs", device, e))?;
    let kinds: Vec<String> = all.iter().map(|qdisc| qdisc.kind.clone()).collect();
    let mut buckets: Vec<(Qdisc, Tbf)> = all.into_iter().filter_map(with_bucket).collect();
    buckets.sort_by_key(|(qdisc, _)| !qdisc.is_root());
    match buckets.len() {
        0 => Err(SettingError::Gone {
            operation: "find it".into(),
            setting: setting.clone(),
            what: device::missing("tbf at", device, kinds),
        }),
        count if count > 1 && !buckets[0].0.is_root() => Err(SettingError::Scope {
            setting: setting.clone(),
            why: format!("{device} has {count} token buckets, none of them at its root"),
        }),
        _ => Ok(buckets.swap_remove(0)),
    }
}

fn with_bucket(qdisc: Qdisc) -> Option<(Qdisc, Tbf)> {
    match qdisc.options.clone() {
        QdiscOptions::Tbf(tbf) => Some((qdisc, tbf)),
        _ => None,
    }
}
