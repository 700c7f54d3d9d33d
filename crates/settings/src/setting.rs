//! The definition of a setting: static facts, and how its value is read and written.

use std::time::Duration;

use goodput_model::{Plan, SettingRef};

use crate::error::SettingError;
use crate::footprint::Footprint;
use crate::permanent::Form;

/// One thing that can be changed.
pub struct Setting {
    /// Its name; `sysctl` stands for every name that begins with `sysctl.`.
    pub id: &'static str,
    /// What the setting is, in a few words.
    pub title: &'static str,
    /// Why one would change it, in one sentence; printed with every change.
    pub why: &'static str,
    /// What the setting applies to, and so what follows `@`.
    pub scope: Scope,
    /// The form of its values.
    pub values: &'static str,
    /// A whole argument of `goodput compare`.
    pub example: &'static str,
    /// How an unset value is printed and written; `None` if there always is a value.
    pub unset: Option<&'static str>,
    /// How a value survives a reboot.
    pub permanent: Form,
    /// How it is changed.
    pub backend: Backend,
}

/// A setting, and a value for it as a person wrote it.
pub type Assignment = (SettingRef, String);

/// What a setting applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One measurement, at both ends; no `@`.
    Plan,
    /// A host; no `@`.
    Host,
    /// A network device, `@eth0`.
    Device,
    /// A traffic class of a network device, `@eth0:1:10`.
    Class,
    /// A route of the main table, `@192.0.2.0/24` or `@default`.
    Route,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Plan => "measurement",
            Self::Host => "host",
            Self::Device => "device (@eth0)",
            Self::Class => "class (@eth0:1:10)",
            Self::Route => "route (@192.0.2.0/24)",
        })
    }
}

/// What the numbers of a setting count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Time, in steps.
    Time {
        /// One step.
        step: Duration,
        /// The plural of its name.
        word: &'static str,
        /// A time as people write it.
        example: &'static str,
    },
    /// Bytes.
    Bytes,
    /// Differentiated services code points.
    CodePoint,
}

impl Unit {
    const ALL: [Self; 5] = [
        Self::Time { step: Duration::from_nanos(1), word: "nanoseconds", example: "20us" },
        Self::Time { step: Duration::from_micros(1), word: "microseconds", example: "50us" },
        Self::Time { step: Duration::from_millis(1), word: "milliseconds", example: "20ms" },
        Self::Bytes,
        Self::CodePoint,
    ];

    /// How the form of such values begins.
    fn word(self) -> &'static str {
        match self {
            Self::Time { word, .. } => word,
            Self::Bytes => "bytes",
            Self::CodePoint => "a code point",
        }
    }
}

/// How a setting is changed.
pub enum Backend {
    /// By editing the plan; the value `default` clears it.
    Plan(fn(&mut Plan, &SettingRef, &str) -> Result<(), SettingError>),
    /// By changing this machine.
    Machine(&'static dyn Machine),
}

/// Reads and writes one kind of setting of this machine. Only [`crate::Changes`] writes.
pub trait Machine: Sync {
    /// The effective value now, in the form that [`Machine::normalise`] gives.
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError>;

    /// Makes `value` the effective one: a normalised value, or one from [`Machine::capture`].
    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError>;

    /// What `value`, as a person wrote it, reads back as once it is effective; refuses an invalid
    /// value.
    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError>;

    /// Refuses a value, as a person wrote it, that the kernel takes though nothing works with it, or that it does not
    /// know, once `earlier` is in effect. Not asked about the value from before the run: that one may be what is wrong, and
    /// is compared with a better one.
    fn check_new(
        &self,
        _setting: &SettingRef,
        _value: &str,
        _earlier: &[Assignment],
    ) -> Result<(), SettingError> {
        Ok(())
    }

    /// Refuses to replace the present value if it could not be put back exactly. Asked only before the first
    /// change: values from our own changes need not come back.
    fn comes_back(&self, _setting: &SettingRef) -> Result<(), SettingError> {
        Ok(())
    }

    /// The value now, with everything needed to restore it exactly if `read` rounds.
    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        self.read(setting)
    }

    /// Whether two values read at different times are the same setting. They need not be equal if
    /// the kernel rounds by something that may have changed in between.
    fn same(&self, one: &str, other: &str) -> bool {
        one == other
    }

    /// Whether an interrupted write between these values may leave `now`. This is possible if one value takes
    /// several system calls.
    fn is_between(&self, _now: &str, _values: &[&str]) -> bool {
        false
    }

    /// Whether writing the value that is in effect still changes something that packets meet. Runs of a comparison would
    /// otherwise differ by whether the run before had the same value.
    fn starts_anew(&self) -> bool {
        false
    }

    /// What the kernel may alter along with the value; all of it is noted and put back with the value.
    fn footprint(&self, _setting: &SettingRef) -> Footprint {
        Footprint::Device
    }

    /// The cell name of this value among the side effects of other settings, if it has one.
    fn cell(&self, _setting: &SettingRef) -> Option<String> {
        None
    }

    /// Whether the value belongs to a network namespace rather than to the whole machine.
    fn namespaced(&self, _setting: &SettingRef) -> bool {
        true
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Setting").field(&self.id).finish()
    }
}

impl Setting {
    /// Whether the setting edits the plan and leaves the machine alone.
    pub fn is_plan(&self) -> bool {
        matches!(self.backend, Backend::Plan(_))
    }

    /// What its values count, as the form of its values says.
    pub fn unit(&self) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| self.values.starts_with(unit.word()))
    }

    /// The form of its values, and what people may write instead.
    pub fn accepted(&self) -> String {
        match self.unit() {
            Some(Unit::Bytes) => format!("{}; also with a unit, like 64K", self.values),
            Some(Unit::Time { example, .. }) => {
                format!("{}; also with a unit, like {example}", self.values)
            }
            Some(Unit::CodePoint) | None => self.values.into(),
        }
    }

    /// Refuses a scope that this setting does not have, and a missing scope that it needs.
    pub(crate) fn check_scope(&self, setting: &SettingRef) -> Result<(), SettingError> {
        let like = |what: &str, scope: &str| {
            format!("which {what}? write it like {}@{scope}", setting.name)
        };
        let why = match (self.scope, setting.scope.as_deref()) {
            (Scope::Plan | Scope::Host, None)
            | (Scope::Device | Scope::Class | Scope::Route, Some(_)) => {
                return Ok(());
            }
            (Scope::Plan, Some(_)) => "it applies to the whole measurement; leave out the @".into(),
            (Scope::Host, Some(_)) => "it applies to the whole host; leave out the @".into(),
            (Scope::Device, None) => like("device", "eth0"),
            (Scope::Class, None) => like("class", "eth0:1:10"),
            (Scope::Route, None) => like("route", "192.0.2.0/24"),
        };
        Err(SettingError::Scope { setting: setting.clone(), why })
    }
}
