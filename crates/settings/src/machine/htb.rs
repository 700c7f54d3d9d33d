//! Reads and writes one number of a class of the hierarchy token bucket (tc-htb(8)); everything
//! else in the class stays.

use goodput_model::SettingRef;
use goodput_netlink::classes::handle_text;
use goodput_netlink::{Class, HtbClass, Netlink};

use super::{device, shaped};
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;

/// One of the two buckets of a class.
pub(crate) struct Bucket {
    rate: fn(&mut HtbClass) -> &mut u64,
    burst: fn(&mut HtbClass) -> &mut u32,
}

const RATE: Bucket =
    Bucket { rate: |htb| &mut htb.rate_bytes_per_s, burst: |htb| &mut htb.burst_bytes };
const CEIL: Bucket =
    Bucket { rate: |htb| &mut htb.ceil_bytes_per_s, burst: |htb| &mut htb.cburst_bytes };

/// The backend of a bucket's rate.
pub(crate) struct ClassRate(Bucket);

/// The backend of a bucket's size.
pub(crate) struct ClassBurst(Bucket);

/// The guaranteed rate of a class.
pub(crate) static CLASS_RATE: ClassRate = ClassRate(RATE);
/// The rate that a class may reach by borrowing.
pub(crate) static CLASS_CEIL: ClassRate = ClassRate(CEIL);
/// How much a class may send at once at its rate.
pub(crate) static CLASS_BURST: ClassBurst = ClassBurst(RATE);
/// How much a class may send at once at its ceiling.
pub(crate) static CLASS_CBURST: ClassBurst = ClassBurst(CEIL);

impl Machine for ClassRate {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let mut found = Found::of(setting)?;
        Ok(shaped::rate_text(*(self.0.rate)(&mut found.htb)))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut found = Found::of(setting)?;
        let burst = *(self.0.burst)(&mut found.htb);
        let (rate, burst) = shaped::rate_and_burst(setting, value, burst)?;
        *(self.0.rate)(&mut found.htb) = rate;
        *(self.0.burst)(&mut found.htb) = burst;
        found.write(setting, value)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        shaped::rate(setting, value).map(shaped::rate_text)
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let mut htb = Found::of(setting)?.htb;
        Ok(shaped::with_burst(*(self.0.rate)(&mut htb), *(self.0.burst)(&mut htb)))
    }

    fn same(&self, one: &str, other: &str) -> bool {
        shaped::same_rate(one, other)
    }
}

impl Machine for ClassBurst {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let mut found = Found::of(setting)?;
        Ok((self.0.burst)(&mut found.htb).to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut found = Found::of(setting)?;
        *(self.0.burst)(&mut found.htb) = shaped::burst(setting, value)?;
        found.write(setting, value)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let mut htb = Found::of(setting)?.htb;
        *(self.0.burst)(&mut htb) = shaped::burst(setting, value)?;
        Ok((self.0.burst)(&mut htb.as_read_back()).to_string())
    }

    fn same(&self, one: &str, other: &str) -> bool {
        shaped::same_burst(one, other)
    }
}

/// The backend of both buckets' sizes at once: `BURST CBURST`, or one number if they are
/// equal. For a class that may not borrow, the smaller one applies.
pub(crate) struct ClassBursts;

impl Machine for ClassBursts {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        Ok(bursts_text(&Found::of(setting)?.htb))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut found = Found::of(setting)?;
        set_bursts(setting, value, &mut found.htb)?;
        found.write(setting, value)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let mut htb = Found::of(setting)?.htb;
        set_bursts(setting, value, &mut htb)?;
        Ok(bursts_text(&htb.as_read_back()))
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let htb = Found::of(setting)?.htb;
        Ok(format!("{} {}", htb.burst_bytes, htb.cburst_bytes))
    }

    fn same(&self, one: &str, other: &str) -> bool {
        let (one, other) = (halves(one), halves(other));
        shaped::same_burst(one.0, other.0) && shaped::same_burst(one.1, other.1)
    }
}

fn halves(value: &str) -> (&str, &str) {
    value.split_once(' ').unwrap_or((value, value))
}

fn bursts_text(htb: &HtbClass) -> String {
    match (htb.burst_bytes, htb.cburst_bytes) {
        (burst, cburst) if burst == cburst => burst.to_string(),
        (burst, cburst) => format!("{burst} {cburst}"),
    }
}

fn set_bursts(setting: &SettingRef, value: &str, htb: &mut HtbClass) -> Result<(), SettingError> {
    let (burst, cburst) = halves(value);
    htb.burst_bytes = shaped::burst(setting, burst)?;
    htb.cburst_bytes = shaped::burst(setting, cburst)?;
    Ok(())
}

/// The class that a setting names.
struct Found {
    netlink: Netlink,
    index: u32,
    class: Class,
    htb: HtbClass,
}

impl Found {
    fn of(setting: &SettingRef) -> Result<Self, SettingError> {
        let wanted = handle(setting)?;
        let mut netlink = device::netlink(setting)?;
        let index = device::index(&mut netlink, setting)?;
        let all = netlink
            .classes(index)
            .map_err(|e| from_netlink(setting, "read its classes", device::name(setting), e))?;
        let htb = all.iter().filter(|class| class.htb.is_some());
        let present = htb.map(|class| handle_text(class.handle)).collect();
        let found = all.into_iter().find(|class| class.handle == wanted);
        match found.and_then(|class| Some((class.htb?, class))) {
            Some((htb, class)) => Ok(Self { netlink, index, class, htb }),
            None => Err(SettingError::Gone {
                setting: setting.clone(),
                what: device::missing(
                    &format!("htb class {} on {}", handle_text(wanted), device::name(setting)),
                    present,
                    device::ONE_OF_THESE,
                ),
            }),
        }
    }

    fn write(mut self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let Class { handle, parent, .. } = self.class;
        self.netlink.replace_htb_class(self.index, handle, parent, &self.htb).map_err(|e| {
            let operation = format!("change it to {value:?}");
            from_netlink(setting, operation, device::scope(setting), e)
        })
    }
}

/// The class after the device's colon, in hexadecimal as in tc(8).
fn handle(setting: &SettingRef) -> Result<u32, SettingError> {
    let number = |text: &str| u32::from(u16::from_str_radix(text, 16).unwrap_or(0));
    let class = device::scope(setting).split_once(':').and_then(|(_, class)| class.split_once(':'));
    match class.map(|(major, minor)| (number(major), number(minor))) {
        Some((major @ 1.., minor @ 1..)) => Ok(major << 16 | minor),
        _ => Err(SettingError::Scope {
            setting: setting.clone(),
            why: "which class? write it like qdisc.htb.burst@eth0:1:10".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_stands_behind_its_device_in_hexadecimal() {
        let read = |scope: &str| handle(&format!("qdisc.htb.rate@{scope}").parse().unwrap());
        assert_eq!(read("eth0:1:1a").unwrap(), 0x1_001a);
        for scope in ["eth0", "eth0:", "eth0:1", "eth0:1:", "eth0:0:1", "eth0:1:g", "eth0:1:10000"]
        {
            assert!(matches!(read(scope), Err(SettingError::Scope { .. })), "{scope}");
        }
    }
}
