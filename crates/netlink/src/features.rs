//! Device features by name, one bit each (`ETHTOOL_GFEATURES`, `ETHTOOL_SFEATURES`,
//! include/uapi/linux/ethtool.h). Offloads are read and switched through them too: the separate commands for each
//! offload are older and coarser.

use crate::NetlinkError;
use crate::ethtool::call;
use crate::strings;

const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`: the set of strings that names the feature bits.
const FEATURE_NAMES: u32 = 4;
/// More features than any kernel has (6.18: under 70); bounds the memory that a wrong answer can make us
/// allocate.
const MAX_FEATURES: u32 = 1024;

/// The feature bits of one device.
#[derive(Debug)]
pub struct Features {
    names: Vec<String>,
    /// For every 32 features: available, requested, active, never changed.
    blocks: Vec<[u32; 4]>,
}

impl Features {
    /// The features of `device` in the calling thread's namespace.
    ///
    /// # Errors
    /// When there is no such device, or the kernel refuses.
    pub fn of(device: &str) -> Result<Self, NetlinkError> {
        Self::read(&format!("read the features of {device}"), device)
    }

    /// Reads the features of `device`.
    pub(crate) fn read(operation: &str, device: &str) -> Result<Self, NetlinkError> {
        let count = strings::count(operation, device, FEATURE_NAMES)?;
        if count == 0 || count > MAX_FEATURES {
            return Err(NetlinkError::malformed(operation, format!("{count} feature names")));
        }
        let names = strings::names(operation, device, FEATURE_NAMES, count)?;
        let blocks = count.div_ceil(32);
        let mut data = vec![0u8; 8 + 16 * blocks as usize];
        data[4..8].copy_from_slice(&blocks.to_ne_bytes());
        call(operation, device, ETHTOOL_GFEATURES, &mut data)?;
        let words: Vec<u32> = data[8..]
            .chunks_exact(4)
            .filter_map(|w| w.first_chunk())
            .map(|w| u32::from_ne_bytes(*w))
            .collect();
        let blocks = words.chunks_exact(4).filter_map(|block| block.first_chunk().copied());
        Ok(Self { names, blocks: blocks.collect() })
    }

    /// Whether any of the features called `names` is active.
    pub(crate) fn any_active(&self, names: &[&str]) -> bool {
        self.bits(names)
            .any(|bit| self.blocks.get(bit / 32).is_some_and(|b| b[2] >> (bit % 32) & 1 == 1))
    }

    /// The features that can be changed, and whether each was requested. A request takes effect
    /// once the device and its other features allow it.
    pub fn requested(&self) -> impl Iterator<Item = (&str, bool)> {
        self.names.iter().enumerate().filter_map(|(bit, name)| {
            let [available, requested, _active, never] = *self.blocks.get(bit / 32)?;
            let mask = 1 << (bit % 32);
            (available & !never & mask != 0).then_some((name.as_str(), requested & mask != 0))
        })
    }

    /// Requests exactly those of `names` that are `wanted`; all other features stay.
    ///
    /// # Errors
    /// When the kernel refuses, or the device can change none of them.
    pub fn request_exactly(
        &self,
        device: &str,
        names: &[&str],
        wanted: &[&str],
    ) -> Result<(), NetlinkError> {
        let operation = format!("change the features of {device}");
        self.ask(&operation, device, names, |name| wanted.contains(&name))
    }

    /// Switches the features called `names` of `device` on or off, and leaves all others alone.
    /// Skips those that the device can't change; it is an error if it can change none.
    pub(crate) fn request(
        &self,
        operation: &str,
        device: &str,
        names: &[&str],
        on: bool,
    ) -> Result<(), NetlinkError> {
        self.ask(operation, device, names, |_| on)
    }

    fn ask(
        &self,
        operation: &str,
        device: &str,
        names: &[&str],
        on: impl Fn(&str) -> bool,
    ) -> Result<(), NetlinkError> {
        let mut changes = vec![[0u32; 2]; self.blocks.len()];
        for bit in self.bits(names) {
            let (Some(block), Some(change)) =
                (self.blocks.get(bit / 32), changes.get_mut(bit / 32))
            else {
                continue;
            };
            let [available, _requested, _active, never] = *block;
            let mask = (1 << (bit % 32)) & available & !never;
            change[0] |= mask;
            change[1] |= if on(&self.names[bit]) { mask } else { 0 };
        }
        if changes.iter().all(|change| change[0] == 0) {
            let cause = std::io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(NetlinkError::refused(operation, cause));
        }
        let mut data = vec![0u8; 8];
        data[4..].copy_from_slice(&(changes.len() as u32).to_ne_bytes());
        data.extend(changes.as_flattened().iter().flat_map(|word| word.to_ne_bytes()));
        call(operation, device, ETHTOOL_SFEATURES, &mut data)
    }

    fn bits(&self, names: &[&str]) -> impl Iterator<Item = usize> {
        let known = self.names.iter().enumerate();
        known.filter(|(_, name)| names.contains(&name.as_str())).map(|(bit, _)| bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use goodput_testing::in_namespace;

    #[test]
    fn features_have_names_and_one_changes_alone() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            let tso6 = &["tx-tcp6-segmentation"];
            let before = Features::read("try", "left").unwrap();
            assert!(before.any_active(tso6));
            before.request("try", "left", tso6, false).unwrap();
            let after = Features::read("try", "left").unwrap();
            assert!(!after.any_active(tso6) && after.any_active(&["tx-tcp-segmentation"]));
        });
    }

    #[test]
    fn a_feature_that_cannot_change_is_not_supported() {
        in_namespace(|| {
            let lo = Features::read("try", "lo").unwrap();
            let error = lo.request("try", "lo", &["vlan-challenged"], false).unwrap_err();
            assert!(error.not_supported(), "{error}");
        });
    }
}
