//! What the kernel made of the values that it was asked for.

use std::collections::HashMap;

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::value::is_rounded;

/// The values of one run that the kernel rounded or clamped. Whoever notes a change notes what its value became the last
/// time: a run that is killed in the middle of the change may leave that.
#[derive(Debug, Default)]
pub struct Became(HashMap<(SettingRef, String), String>);

impl Became {
    /// What the kernel made of `wanted` the last time, if that was another number.
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
        if effective == wanted {
            return Ok(effective);
        }
        let (setting, asked) = (setting.clone(), wanted.to_owned());
        if !is_rounded(wanted, &effective) {
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
    fn another_number_is_remembered_and_anything_else_is_no_effect() {
        let setting: SettingRef = "ring.rx@eth0".parse().unwrap();
        let mut became = Became::default();
        let mut read = |asked: &str, made: &str| became.read_back(&setting, asked, made.into());
        assert_eq!(read("1024", "1024").unwrap(), "1024");
        assert_eq!(read("1001", "1024").unwrap(), "1024");
        let refused = read("on", "off").unwrap_err();
        assert!(matches!(refused, SettingError::NotEffective { .. }), "{refused}");
        assert_eq!(became.last(&setting, "1001").map(String::as_str), Some("1024"));
        assert_eq!(became.last(&setting, "1024"), None);
    }
}
