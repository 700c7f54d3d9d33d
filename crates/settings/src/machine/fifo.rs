//! Reads and writes the length of a first-in, first-out queue (tc-bfifo(8)).

use goodput_model::{Bytes, SettingRef};
use goodput_netlink::{Netlink, Qdisc, QdiscOptions};

use super::{device, token_bucket};
use crate::error::{SettingError, from_netlink};
use crate::setting::{Assignment, Machine};
use crate::value;

/// The backend of `qdisc.fifo.limit`.
pub(crate) struct FifoLimit;

impl Machine for FifoLimit {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let (_, limit) = fifo(&mut device::netlink(setting)?, setting)?;
        Ok(limit.to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut netlink = device::netlink(setting)?;
        let (mut qdisc, _) = fifo(&mut netlink, setting)?;
        let limit = parse(setting, value, Unit::of(&qdisc))?;
        if let Some(place) = limit_of(&mut qdisc.options) {
            *place = limit;
        }
        netlink.replace_qdisc(&qdisc).map_err(|e| {
            from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
        })
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let (qdisc, _) = fifo(&mut device::netlink(setting)?, setting)?;
        parse(setting, value, Unit::of(&qdisc)).map(|limit| limit.to_string())
    }

    fn comes_back(&self, setting: &SettingRef) -> Result<(), SettingError> {
        let mut netlink = device::netlink(setting)?;
        let (qdisc, _) = fifo(&mut netlink, setting)?;
        device::refuse_size_table(&mut netlink, setting, &qdisc)
    }

    /// A queue of bytes drops each packet that is longer than it is (net/sched/sch_fifo.c `bfifo_enqueue`).
    fn check_new(
        &self,
        setting: &SettingRef,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), SettingError> {
        let (qdisc, _) = fifo(&mut device::netlink(setting)?, setting)?;
        match Unit::of(&qdisc) {
            Unit::Packets => Ok(()),
            Unit::Bytes => {
                let bytes = parse(setting, value, Unit::Bytes)?;
                token_bucket::check_fits(setting, value, bytes, earlier)
            }
        }
    }
}

/// What the limit counts.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    fn of(qdisc: &Qdisc) -> Self {
        match qdisc.options {
            QdiscOptions::Pfifo { .. } => Self::Packets,
            _ => Self::Bytes,
        }
    }
}

/// Only bytes have units, like `64K`.
fn parse(setting: &SettingRef, value: &str, unit: Unit) -> Result<u32, SettingError> {
    match unit {
        Unit::Packets => {
            let why = format!(
                "this pfifo counts packets: it must be a whole number from 1 to {}",
                u32::MAX
            );
            value::number(setting, value, &(1..=u32::MAX))
                .map_err(|_| value::bad(setting, value, why))
        }
        Unit::Bytes => {
            // Nothing is too small for any packet: with the same bounds as any other value.
            if value.parse() == Ok(Bytes(0)) {
                token_bucket::check_fits(setting, value, 0, &[])?;
            }
            let bytes = value::size(setting, value, u32::MAX.into())?;
            u32::try_from(bytes).map_err(|why| value::bad(setting, value, why.to_string()))
        }
    }
}

/// Whether the limit counts packets; false if there is no such queue.
pub(crate) fn counts_packets(setting: &SettingRef) -> bool {
    let found = device::netlink(setting).and_then(|mut netlink| fifo(&mut netlink, setting));
    found.is_ok_and(|(qdisc, _)| Unit::of(&qdisc) == Unit::Packets)
}

fn limit_of(options: &mut QdiscOptions) -> Option<&mut u32> {
    match options {
        QdiscOptions::Pfifo { limit_packets: limit }
        | QdiscOptions::Bfifo { limit_bytes: limit } => Some(limit),
        _ => None,
    }
}

/// The device's queue and its limit: the root, or the only one.
fn fifo(netlink: &mut Netlink, setting: &SettingRef) -> Result<(Qdisc, u32), SettingError> {
    let words = ("pfifo or bfifo", "such queues");
    device::qdisc(netlink, setting, words, |qdisc| limit_of(&mut qdisc.options.clone()).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_too_long_is_not_called_too_short() {
        let setting: SettingRef = "qdisc.fifo.limit@lo".parse().unwrap();
        let bytes = |value| parse(&setting, value, Unit::Bytes);
        let why = |value| bytes(value).unwrap_err().to_string();
        assert_eq!(bytes("4294967295").unwrap(), u32::MAX);
        assert!(why("5G").contains("it must be 1 to 4294967295 bytes"), "{}", why("5G"));
        assert!(!why("5G").contains("dropped"), "{}", why("5G"));
        assert!(why("0").contains("longer ones than this are dropped"), "{}", why("0"));
    }
}
