//! Values of the files by which the packets of a queue are steered: masks of CPUs or of queues, and the length of a flow
//! table (Documentation/networking/scaling.rst).

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::value::{self, bad};

/// Most entries of a queue's flow table: at 16 bytes each the kernel allocates 256 MiB.
const MAX_ENTRIES: u64 = 1 << 24;

/// A hexadecimal mask as it reads back, if it has no bit above `last`; `of` is what it is a mask of.
///
/// # Errors
/// When it is no mask, or has such a bit.
pub fn mask(
    setting: &SettingRef,
    value: &str,
    of: &str,
    last: Option<usize>,
) -> Result<String, SettingError> {
    let digits = |mask: &str| mask.bytes().all(|b| b.is_ascii_hexdigit());
    if value.is_empty() || value.len() > 1024 || !digits(value) {
        let why = format!("it must be a hexadecimal mask of {of}s like f, or 0 for none");
        return Err(bad(setting, value, why));
    }
    let mask = joined(value);
    match last {
        Some(last) if bits(&mask) > last + 1 => {
            Err(bad(setting, value, format!("the last {of} here is {last}")))
        }
        _ => Ok(mask),
    }
}

/// A number of entries as it reads back: the kernel rounds it to a power of two (`store_rps_dev_flow_table_cnt`,
/// net/core/net-sysfs.c).
///
/// # Errors
/// When it is no number, or too large.
pub fn entries(setting: &SettingRef, value: &str) -> Result<String, SettingError> {
    let entries = value::number(setting, value, &(0..=MAX_ENTRIES))?;
    Ok(if entries == 0 { 0 } else { entries.next_power_of_two() }.to_string())
}

/// A mask without the commas that the kernel writes after every 32 bits, and without leading zeros.
pub fn joined(mask: &str) -> String {
    let digits = mask.replace(',', "").to_ascii_lowercase();
    let short = digits.trim_start_matches('0');
    if short.is_empty() { "0".into() } else { short.into() }
}

/// The mask with its commas, which the kernel expects (lib/bitmap-str.c `bitmap_parse`).
pub fn split(mask: &str) -> String {
    let mut words: Vec<&[u8]> = mask.as_bytes().rchunks(8).collect();
    words.reverse();
    let words: Vec<_> = words.into_iter().map(String::from_utf8_lossy).collect();
    words.join(",")
}

/// The mask as the kernel prints it beside `like`, a mask of as many bits: with leading zeros and commas.
pub fn printed(mask: &str, like: &str) -> String {
    let digits = like.bytes().filter(|b| *b != b',').count();
    split(&format!("{mask:0>digits$}"))
}

/// Number of bits up to the highest that is set, in a mask without leading zeros.
fn bits(mask: &str) -> usize {
    let first = mask.chars().next().and_then(|c| c.to_digit(16)).unwrap_or(0);
    (mask.len() - 1) * 4 + (u32::BITS - first.leading_zeros()) as usize
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
            assert_eq!(printed(ours, kernel), kernel);
        }
        assert_eq!(split("100000000"), "1,00000000");
    }

    #[test]
    fn the_highest_cpu_of_a_mask_is_known() {
        assert_eq!(["0", "1", "3", "f", "10", "8000"].map(bits), [0, 1, 2, 4, 5, 16]);
    }
}
