//! Reads and writes one parameter of a queueing discipline without classes (tc-fq_codel(8), tc-fq(8),
//! tc-cake(8)). All other parameters stay, because a change leaves those whose attribute is missing
//! (`*_change`, net/sched/sch_*.c).

use std::ops::RangeInclusive;

use goodput_model::{Bytes, SettingRef};
use goodput_netlink::{Netlink, Qdisc, QdiscOptions, attribute, attributes, kept_time};

use super::{device, shaped};
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
use crate::value::{self, bad};

/// The backend of one parameter.
pub(crate) struct QdiscParameter {
    /// The kind of queueing discipline that has it.
    pub(crate) kind: &'static str,
    /// Its attribute in `TCA_OPTIONS` (include/uapi/linux/pkt_sched.h).
    pub(crate) attribute: u16,
    /// The form of its values.
    pub(crate) form: Form,
}

/// The form of a parameter's values, for people and for the kernel.
pub(crate) enum Form {
    /// A 32-bit number.
    Number(RangeInclusive<u32>),
    /// Bytes, 32 bits.
    Size(RangeInclusive<u32>),
    /// Microseconds, which some kinds round.
    Micros(RangeInclusive<u32>),
    /// Bytes per second in 32 bits. One number is no rate.
    Rate {
        /// The word for that number.
        word: &'static str,
        /// That number.
        number: u32,
    },
    /// Bytes per second in 64 bits; 0 means none.
    LongRate,
    /// Words for 0, 1, 2, in 32 bits.
    Words(&'static [&'static str]),
    /// Words for 0, 1, in 8 bits.
    ByteWords(&'static [&'static str]),
    /// Bytes with a sign, 32 bits. While the attribute `raw` is there, they count beside the frame, and otherwise beside the IP
    /// packet (net/sched/sch_cake.c `cake_calc_overhead`).
    Overhead {
        /// That attribute.
        raw: u16,
    },
}

/// The text for frames as they are: `raw`, and no bytes more.
const RAW: &str = "raw";

/// What tc-cake(8) takes as overhead, bytes.
const OVERHEAD: RangeInclusive<i32> = -64..=256;

/// The text for no rate.
const NO_RATE: &str = "none";

impl Machine for QdiscParameter {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        self.find(&mut device::netlink(setting)?, setting).map(|(_, value)| value)
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut netlink = device::netlink(setting)?;
        let (qdisc, _) = self.find(&mut netlink, setting)?;
        let mut bytes = attribute(self.attribute, &self.bytes(setting, value)?);
        if let Form::Overhead { raw } = self.form
            && value == RAW
        {
            // The kernel takes the overhead, here 0, which ends `raw`, and then `raw` (net/sched/sch_cake.c `cake_change`).
            bytes.extend(attribute(raw, &0u32.to_ne_bytes()));
        }
        // A time is written such that it reads back as `value`.
        let options = match self.form {
            Form::Micros(_) => QdiscOptions::to_read_back(self.kind, &bytes),
            _ => QdiscOptions::Other(bytes),
        };
        netlink.replace_qdisc(&Qdisc { options, ..qdisc }).map_err(|e| {
            from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
        })
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let bytes = self.bytes(setting, value)?;
        if matches!(self.form, Form::Overhead { .. }) && value == RAW {
            return Ok(RAW.into());
        }
        let text = self.text(&bytes).unwrap_or_else(|| value.into());
        Ok(match (&self.form, text.parse()) {
            (Form::Micros(_), Ok(us)) => kept_time(self.kind, self.attribute, us).to_string(),
            _ => text,
        })
    }

    fn comes_back(&self, setting: &SettingRef) -> Result<(), SettingError> {
        let mut netlink = device::netlink(setting)?;
        let (qdisc, value) = self.find(&mut netlink, setting)?;
        self.check_original(setting, &qdisc, &value)?;
        if !qdisc.is_default() {
            return device::refuse_size_table(&mut netlink, setting, &qdisc);
        }
        let why = "the kernel made it by default, and a change would make another one in its place; \
                   set qdisc.kind first";
        Err(SettingError::Irreversible { setting: setting.clone(), why })
    }
}

impl Form {
    /// A rate, or the `word` for the `number` that is none.
    pub(crate) const fn rate(word: &'static str, number: u32) -> Self {
        Self::Rate { word, number }
    }
}

impl QdiscParameter {
    /// The device's queueing discipline with this parameter, and the parameter's value.
    fn find(
        &self,
        netlink: &mut Netlink,
        setting: &SettingRef,
    ) -> Result<(Qdisc, String), SettingError> {
        device::qdisc(netlink, setting, (self.kind, "of them"), |qdisc| {
            self.value_in(qdisc).filter(|_| qdisc.kind == self.kind)
        })
    }

    /// Refuses to change what can't be written again as it is.
    fn check_original(
        &self,
        setting: &SettingRef,
        qdisc: &Qdisc,
        value: &str,
    ) -> Result<(), SettingError> {
        let irreversible = |why| SettingError::Irreversible { setting: setting.clone(), why };
        if self.has_more_than_raw(qdisc) {
            return Err(irreversible(
                "cake counts raw frames with an overhead, which it would not take back together",
            ));
        }
        let written = self.bytes(setting, value);
        written.map(drop).map_err(|_| {
            irreversible(
                "its present value is beyond what goodput sets, so it could not be put back",
            )
        })
    }

    /// Whether an overhead counts beside raw frames.
    fn has_more_than_raw(&self, qdisc: &Qdisc) -> bool {
        let Form::Overhead { raw } = self.form else { return false };
        let options = qdisc.options.to_bytes();
        let is_raw = attributes(&options).any(|(id, _)| id == raw);
        let mut of = attributes(&options).filter(|(id, _)| *id == self.attribute);
        is_raw && of.any(|(_, value)| value.iter().any(|byte| *byte != 0))
    }

    fn value_in(&self, qdisc: &Qdisc) -> Option<String> {
        let options = qdisc.options.to_bytes();
        if let Form::Overhead { raw } = self.form
            && attributes(&options).any(|(id, _)| id == raw)
            && !self.has_more_than_raw(qdisc)
        {
            return Some(RAW.into());
        }
        let found = attributes(&options).find(|(id, _)| *id == self.attribute);
        found.and_then(|(_, value)| self.text(value))
    }

    /// The text of a kernel value.
    fn text(&self, value: &[u8]) -> Option<String> {
        if let Form::LongRate = self.form {
            let rate = u64::from_ne_bytes(*value.first_chunk()?);
            return Some(if rate == 0 { NO_RATE.into() } else { shaped::rate_text(rate) });
        }
        if let Form::ByteWords(words) = self.form {
            return Some((*words.get(usize::from(*value.first()?))?).into());
        }
        let number = u32::from_ne_bytes(*value.first_chunk()?);
        Some(match self.form {
            Form::Overhead { .. } => number.cast_signed().to_string(),
            Form::Rate { word, number: special } if number == special => word.into(),
            Form::Rate { .. } => shaped::rate_text(number.into()),
            Form::Words(words) => (*words.get(number as usize)?).into(),
            _ => number.to_string(),
        })
    }

    /// The kernel's form of a value.
    fn bytes(&self, setting: &SettingRef, text: &str) -> Result<Vec<u8>, SettingError> {
        let number = match &self.form {
            Form::LongRate => {
                let none = text == NO_RATE;
                let rate = if none { 0 } else { shaped::rate(setting, text)? };
                return Ok(rate.to_ne_bytes().to_vec());
            }
            Form::Rate { word, number } if text == *word => *number,
            Form::Rate { word, number } => u32::try_from(shaped::rate(setting, text)?)
                .ok()
                .filter(|rate| rate != number)
                .ok_or_else(|| {
                    bad(setting, text, format!("it must be below 34.3 Gbit/s, or {word}"))
                })?,
            Form::Number(range) | Form::Micros(range) => value::number(setting, text, range)?,
            Form::Size(range) => {
                let bytes = text.parse::<Bytes>();
                let bytes = bytes.map_err(|error| bad(setting, text, error.to_string()))?.0;
                let number = u32::try_from(bytes).ok().filter(|bytes| range.contains(bytes));
                let words = || format!("it must be {} to {} bytes", range.start(), range.end());
                number.ok_or_else(|| bad(setting, text, words()))?
            }
            Form::Words(words) => place(setting, words, text)? as u32,
            Form::ByteWords(words) => return Ok(vec![place(setting, words, text)? as u8]),
            Form::Overhead { .. } if text == RAW => 0,
            Form::Overhead { .. } => {
                let bytes = text.parse().ok().filter(|bytes| OVERHEAD.contains(bytes));
                let (least, most) = (OVERHEAD.start(), OVERHEAD.end());
                let why = || format!("it must be {RAW}, or {least} to {most} bytes");
                bytes.ok_or_else(|| bad(setting, text, why()))?.cast_unsigned()
            }
        };
        Ok(number.to_ne_bytes().to_vec())
    }
}

/// The number of a word.
fn place(setting: &SettingRef, words: &[&'static str], text: &str) -> Result<usize, SettingError> {
    let place = words.iter().position(|word| *word == text);
    place.ok_or_else(|| bad(setting, text, format!("it must be one of {}", words.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ALL;

    fn parameter(form: Form) -> QdiscParameter {
        QdiscParameter { kind: "fq_codel", attribute: 1, form }
    }

    fn normalised(form: Form, text: &str) -> Result<String, String> {
        let setting = "qdisc.fq_codel.target@eth0".parse().unwrap();
        parameter(form).normalise(&setting, text).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_what_the_kernel_keeps() {
        assert_eq!(normalised(Form::Micros(1..=1000), "500").unwrap(), "499");
        let [most, off] = [Form::rate("none", u32::MAX), Form::rate("off", 0)];
        assert_eq!(normalised(most, "8mbit").unwrap(), "8mbit");
        assert_eq!(normalised(off, "off").unwrap(), "off");
        assert_eq!(normalised(Form::rate("none", u32::MAX), "none").unwrap(), "none");
        assert_eq!(normalised(Form::Size(0..=1 << 20), "0").unwrap(), "0");
        assert_eq!(normalised(Form::LongRate, "40gbit").unwrap(), "40gbit");
        assert_eq!(normalised(Form::LongRate, "none").unwrap(), "none");
        assert_eq!(normalised(Form::Words(&["off", "on"]), "on").unwrap(), "on");
        assert_eq!(normalised(Form::Size(1..=1 << 20), "64K").unwrap(), "65536");
        assert_eq!(normalised(Form::ByteWords(&["off", "on"]), "on").unwrap(), "on");
        for overhead in ["raw", "-4", "0", "44"] {
            assert_eq!(normalised(Form::Overhead { raw: 12 }, overhead).unwrap(), overhead);
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        for (form, text, words) in [
            (Form::Micros(1..=1000), "1001", "from 1 to 1000"),
            (Form::Number(1..=5), "0", "from 1 to 5"),
            (Form::rate("none", u32::MAX), "40gbit", "below 34.3 Gbit/s, or none"),
            (Form::rate("off", 0), "none", "none"),
            (Form::Size(100..=200), "50", "100 to 200 bytes"),
            (Form::Words(&["off", "on"]), "yes", "one of off, on"),
            (Form::ByteWords(&["off", "on"]), "2", "one of off, on"),
            (Form::Overhead { raw: 12 }, "257", "raw, or -64 to 256 bytes"),
        ] {
            let said = normalised(form, text).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_value_is_found_among_the_parameters_of_its_own_kind() {
        let options = [attribute(2, &7u32.to_ne_bytes()), attribute(1, &4999u32.to_ne_bytes())];
        let qdisc = Qdisc::root(1, "fq_codel", QdiscOptions::Other(options.concat()));
        let of = parameter(Form::Micros(1..=10_000));
        assert_eq!(of.value_in(&qdisc).as_deref(), Some("4999"));
        let none = Qdisc::root(1, "fq_codel", QdiscOptions::Other(Vec::new()));
        assert_eq!(of.value_in(&none), None);
    }

    #[test]
    fn a_value_that_could_not_be_written_again_is_not_changed() {
        let setting = "qdisc.fq.horizon@eth0".parse().unwrap();
        let of = parameter(Form::Number(1..=100));
        for (number, comes_back) in [(1u32, true), (100, true), (0, false), (101, false)] {
            let options = QdiscOptions::Other(attribute(1, &number.to_ne_bytes()));
            let qdisc = Qdisc::root(1, "fq_codel", options);
            let value = of.value_in(&qdisc).unwrap();
            let checked = of.check_original(&setting, &qdisc, &value);
            assert_eq!(checked.is_ok(), comes_back, "{number}: {checked:?}");
        }
    }

    #[test]
    fn each_is_a_setting_of_its_kind() {
        let of_tables = ALL.iter().filter(|s| {
            ["fq_codel", "fq", "cake"]
                .iter()
                .any(|kind| s.id.starts_with(&format!("qdisc.{kind}.")))
        });
        assert_eq!(of_tables.count(), 32);
    }

    #[test]
    fn an_overhead_counts_unless_cake_takes_lengths_as_they_are() {
        let of = parameter(Form::Overhead { raw: 12 });
        let with = |options: &[Vec<u8>]| {
            let options = QdiscOptions::Other(options.concat());
            of.value_in(&Qdisc::root(1, "fq_codel", options))
        };
        let overhead = attribute(1, &(-4i32).to_ne_bytes());
        assert_eq!(with(std::slice::from_ref(&overhead)).as_deref(), Some("-4"));
        let raw = attribute(12, &0u32.to_ne_bytes());
        let none = attribute(1, &0u32.to_ne_bytes());
        assert_eq!(with(&[none.clone(), raw.clone()]).as_deref(), Some("raw"));
        let setting = "qdisc.cake.overhead@eth0".parse().unwrap();
        for (options, comes_back) in [
            ([none, raw.clone()].concat(), true),
            (overhead.clone(), true),
            ([overhead, raw].concat(), false),
        ] {
            let qdisc = Qdisc::root(1, "cake", QdiscOptions::Other(options));
            let value = of.value_in(&qdisc).unwrap();
            assert_eq!(of.check_original(&setting, &qdisc, &value).is_ok(), comes_back, "{value}");
        }
        let word = parameter(Form::ByteWords(&["off", "on"]));
        let options = QdiscOptions::Other(attribute(1, &[1]));
        assert_eq!(word.value_in(&Qdisc::root(1, "fq_codel", options)).as_deref(), Some("on"));
    }
}
