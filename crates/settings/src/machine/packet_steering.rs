//! Reads and writes the CPUs that a device's received packets are spread over
//! (Documentation/networking/scaling.rst, "RPS: Receive Packet Steering").

use goodput_model::SettingRef;

use super::sysfs;
use crate::error::SettingError;
use crate::setting::Machine;
use crate::value::bad;

/// The backend of `rps.cpus`: one mask where all queues have the same, else one a queue, with
/// spaces between.
pub(crate) struct PacketSteering;

impl Machine for PacketSteering {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let mut masks = sysfs::receive_queues(setting)?
            .iter()
            .map(|queue| sysfs::read(setting, &file(queue)).map(|mask| joined(&mask)))
            .collect::<Result<Vec<String>, _>>()?;
        if masks.windows(2).all(|pair| pair[0] == pair[1]) {
            masks.truncate(1);
        }
        Ok(masks.join(" "))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let masks: Vec<&str> = value.split(' ').collect();
        for (number, queue) in sysfs::receive_queues(setting)?.iter().enumerate() {
            let mask = if masks.len() == 1 { masks.first() } else { masks.get(number) };
            if let Some(mask) = mask {
                #[cfg(test)]
                crate::testing::step();
                sysfs::write(setting, &file(queue), &split(mask))?;
            }
        }
        Ok(())
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        let mask = |value: &str, number| {
            let masks: Vec<&str> = value.split(' ').collect();
            let own = if masks.len() == 1 { masks.first() } else { masks.get(number) };
            own.map(|mask| (*mask).to_owned())
        };
        let queues = values.iter().chain([&now]).map(|value| value.split(' ').count()).max();
        (0..queues.unwrap_or(1))
            .all(|number| values.iter().any(|value| mask(value, number) == mask(now, number)))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let hexadecimal = |mask: &str| {
            !mask.is_empty() && mask.len() <= 1024 && mask.bytes().all(|b| b.is_ascii_hexdigit())
        };
        if !hexadecimal(value) {
            let why = "it must be a hexadecimal mask of CPUs like f, or 0 for none";
            return Err(bad(setting, value, why));
        }
        let all = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let mask = joined(value);
        match highest(&all) {
            Some(highest) if bits(&mask) > highest + 1 => {
                Err(bad(setting, value, format!("the last CPU here is {highest}")))
            }
            _ => Ok(mask),
        }
    }
}

fn file(queue: &str) -> String {
    format!("queues/{queue}/rps_cpus")
}

/// A mask without the commas that the kernel writes after every 32 bits, and without zeros in
/// front.
fn joined(mask: &str) -> String {
    let digits = mask.replace(',', "").to_ascii_lowercase();
    let short = digits.trim_start_matches('0');
    if short.is_empty() { "0".into() } else { short.into() }
}

/// The same with its commas, which the kernel wants (lib/bitmap-str.c `bitmap_parse`).
fn split(mask: &str) -> String {
    let mut words: Vec<&[u8]> = mask.as_bytes().rchunks(8).collect();
    words.reverse();
    let words: Vec<_> = words.into_iter().map(String::from_utf8_lossy).collect();
    words.join(",")
}

/// Bits up to and with the highest that is set, in a mask without zeros in front.
fn bits(mask: &str) -> usize {
    let first = mask.chars().next().and_then(|c| c.to_digit(16)).unwrap_or(0);
    (mask.len() - 1) * 4 + (u32::BITS - first.leading_zeros()) as usize
}

/// The highest number in a list like `0-3,8`.
fn highest(list: &str) -> Option<usize> {
    list.trim().split([',', '-']).filter_map(|number| number.parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_many_cpus_are_joined_and_split_again() {
        for (kernel, ours) in [
            ("00", "0"),
            ("03", "3"),
            ("00000001,00000000", "100000000"),
            ("ff,00000001", "ff00000001"),
        ] {
            assert_eq!(joined(kernel), ours);
            assert_eq!(joined(&split(ours)), ours);
        }
        assert_eq!(split("100000000"), "1,00000000");
    }

    #[test]
    fn the_highest_cpu_of_a_mask_is_known() {
        assert_eq!(["0", "1", "3", "f", "10", "8000"].map(bits), [0, 1, 2, 4, 5, 16]);
        assert_eq!((highest("0-3,8\n"), highest("0"), highest("")), (Some(8), Some(0), None));
    }
}
