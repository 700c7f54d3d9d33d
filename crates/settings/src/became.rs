//! What the kernel made of the values that it was asked for.

use std::collections::HashMap;

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::value::is_rounded;

/// What the values of one run became, rounded or not. Whoever notes a change notes what its value became the last time:
/// a run that is killed in the middle of the change may leave that. The first time it may leave any number that the
/// kernel can make of the value ([`crate::value::may_have_become`]).
#[derive(Debug, Default)]
pub struct Became(HashMap<(SettingRef, String), String>);

impl Became {
    /// What the kernel made of `wanted` the last time, which may be `wanted` itself.
    pub fn last(&self, setting: &SettingRef, wanted: &str) -> Option<&String> {
        self.0.get(&(setting.clone(), wanted.to_owned()))
    }

    /// Judges what was read back after `wanted` was written, and returns what is in effect: another number than the
    /// wanted one is the kernel's rounding.
    ///
    /// # Errors
    /// If anything else than another number was read back.
    pub fn read_back(
        &mut self,
        setting: &SettingRef,
        wanted: &str,
        effective: String,
    ) -> Result<String, SettingError> {
        let (setting, asked) = (setting.clone(), wanted.to_owned());
        if effective != wanted && !is_rounded(wanted, &effective) {
            return Err(SettingError::NotEffective { setting, asked, effective, not_back: None });
        }
        self.0.insert((setting, asked), effective.clone());
        Ok(effective)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_remembered_and_anything_else_is_no_effect() {
        let setting: SettingRef = "ring.rx@eth0".parse().unwrap();
        let mut became = Became::default();
        let mut read = |asked: &str, made: &str| became.read_back(&setting, asked, made.into());
        assert_eq!(read("1024", "1024").unwrap(), "1024");
        assert_eq!(read("1001", "1024").unwrap(), "1024");
        let refused = read("on", "off").unwrap_err();
        assert!(matches!(refused, SettingError::NotEffective { .. }), "{refused}");
        for asked in ["1001", "1024"] {
            assert_eq!(became.last(&setting, asked).map(String::as_str), Some("1024"));
        }
        assert_eq!([became.last(&setting, "512"), became.last(&setting, "on")], [None; 2]);
    }
}
