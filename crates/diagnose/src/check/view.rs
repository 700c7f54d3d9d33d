//! The checks' view: a host's facts now, and the growth of its counters while they were
//! watched.

use goodput_model::{Change, EndName, Missing, SettingRef, Snapshot};

/// One host, or one device of it.
#[derive(Debug, Clone, Copy)]
pub struct HostView<'a> {
    /// The device that the device facts belong to.
    pub device: Option<&'a str>,
    /// The facts now.
    pub now: &'a Snapshot,
    /// The facts some seconds before, and the number of seconds, if the counters were watched.
    pub before: Option<(&'a Snapshot, f64)>,
}

/// Growth of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Amount.
    pub count: u64,
    /// Time, seconds, more than zero.
    pub seconds: f64,
}

impl Growth {
    /// Per second.
    pub fn rate(self) -> f64 {
        self.count as f64 / self.seconds
    }
}

impl<'a> HostView<'a> {
    /// A whole number.
    pub fn count(&self, name: &str) -> Result<f64, Missing> {
        Ok(self.now.count(name)? as f64)
    }

    /// Any number.
    pub fn number(&self, name: &str) -> Result<f64, Missing> {
        self.now.number(name)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<&'a str, Missing> {
        self.now.text(name)
    }

    /// Whether the counters were watched.
    pub fn is_watched(&self) -> bool {
        self.before.is_some()
    }

    /// Growth of a counter while it was watched.
    pub fn grown(&self, name: &str) -> Result<Growth, Missing> {
        let unwatched = || {
            Missing::because(
                "this counter only shows something over time: `goodput check --watch 10` looks twice",
            )
        };
        let (before, seconds) = self.before.ok_or_else(unwatched)?;
        if seconds.is_nan() || seconds <= 0.0 {
            return Err(Missing::because("no time passed while the counters were watched"));
        }
        Ok(Growth { count: before.grown(self.now, name)?, seconds })
    }

    /// Whether the device is a real card, or another device with its own speed.
    pub fn is_hardware(&self) -> bool {
        self.text(crate::names::LINK_KIND) == Ok("hardware")
    }

    /// A change of a setting of this device.
    pub fn change(&self, name: &str, from: Option<String>, to: &str, why: &str) -> Change {
        let scope = self.device.map(Into::into);
        let setting = SettingRef { end: EndName::Near, name: name.into(), scope };
        Change { setting, from, to: to.into(), why: why.into() }
    }

    /// A change of a kernel setting of the host.
    pub fn sysctl(&self, name: &str, from: &str, to: &str, why: &str) -> Change {
        self.change_of_host(&format!("sysctl.{name}"), from, to, why)
    }

    /// A change of a setting of the host.
    pub fn change_of_host(&self, name: &str, from: &str, to: &str, why: &str) -> Change {
        let setting = SettingRef { end: EndName::Near, name: name.into(), scope: None };
        Change { setting, from: Some(from.into()), to: to.into(), why: why.into() }
    }

    /// A number that the kernel keeps as a text.
    pub fn sysctl_number(&self, name: &str) -> Option<u64> {
        self.text(&format!("sysctl.{name}")).ok()?.parse().ok()
    }
}
