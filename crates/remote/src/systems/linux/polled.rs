//! `polling`: how a device is polled as a whole, by the presets of this host's own setting. Numbers that someone gave to
//! single NAPI instances can't be seen: no common program prints them.

use goodput_model::SettingRef;
use goodput_settings::polled::{PARTS, Place, Polled};
use goodput_settings::value;

use super::files::{self, OR};
use super::link;
use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// The setting.
pub(super) struct Polling;

/// Its name.
pub(super) const ID: &str = "polling";

/// What it is called in messages.
const WHAT: &str = "the polling";

/// A file there, as [`files::show`] names it.
fn path(place: Place) -> &'static str {
    match place {
        Place::Device(file) | Place::Host(file) => file,
    }
}

fn find() -> String {
    let paths = PARTS.map(|(_, place)| path(place));
    format!("cd /sys/class/net/\"$1\" || exit; set -- {}", paths.join(" "))
}

fn show(at: &At<'_>) -> Command {
    files::show(WHAT, &find(), at.scope())
}

/// How the device is polled now.
fn state(at: &mut At<'_>) -> Result<Polled, RemoteError> {
    let command = show(at);
    let mut state = Polled::default();
    for (name, word) in files::printed(at, &command)? {
        let known = PARTS.iter().position(|(_, place)| path(*place) == name);
        let (Some(place), Ok(number)) = (known, word.parse()) else {
            return Err(at.misread(&command, &format!("{name}={word}"), "a number"));
        };
        state.numbers[place] = Some(number);
    }
    match state == Polled::default() {
        true => Err(at.refused("its kernel has none of the numbers of polling")),
        false => Ok(state),
    }
}

fn parsed(at: &At<'_>, text: &str) -> Result<Polled, RemoteError> {
    let why = "it is no state that goodput prints";
    Polled::parse(text).ok_or_else(|| value::bad(at.setting, text, why).into())
}

impl Row for Polling {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        link::check_sysfs(at)?;
        state(at).map(|state| state.text())
    }

    fn normalise(&self, at: &mut At<'_>, text: &str) -> Result<String, RemoteError> {
        link::check_sysfs(at)?;
        let now = state(at)?;
        let preset = Polled::preset(text, &now);
        preset.map_err(|why| value::bad(at.setting, text, why))?;
        Ok(text.into())
    }

    fn write(&self, at: &mut At<'_>, text: &str) -> Result<Vec<Command>, RemoteError> {
        let (now, wanted) = (state(at)?, parsed(at, text)?);
        let word = |(is, wanted): (&Option<u64>, &Option<u64>)| match (is, wanted) {
            (Some(_), Some(number)) => number.to_string(),
            _ => "-".into(),
        };
        let words: Vec<String> = now.numbers.iter().zip(&wanted.numbers).map(word).collect();
        Ok(vec![files::write(WHAT, &find(), at.scope(), &words.join(" "))])
    }

    fn holds(&self, at: &mut At<'_>, text: &str) -> Result<Condition, RemoteError> {
        let now = state(at)?;
        let states: Vec<Polled> =
            text.split(OR).map(|text| parsed(at, text)).collect::<Result<_, _>>()?;
        let mut places = Vec::new();
        for (place, (_, of)) in PARTS.iter().enumerate() {
            let Some(is) = now.numbers[place] else { continue };
            // A part that the other state does not name stays as it is.
            let own = states.iter().map(|state| state.numbers[place].unwrap_or(is));
            places.push(files::sorted(own.map(|n| format!("{}={n}", path(*of))).collect()));
        }
        Ok(files::is_one_of(show(at), &places))
    }

    /// The parts are written one after another.
    fn half_way(&self, one: &str, other: &str) -> Vec<String> {
        vec![format!("{one}{OR}{other}")]
    }

    fn files(&self, setting: &SettingRef) -> Vec<String> {
        let device = setting.scope.as_deref().unwrap_or_default();
        let file = |(_, place): &(&str, Place)| match *place {
            Place::Device(file) => files::of_device(device, file),
            Place::Host(file) => file.into(),
        };
        PARTS.iter().map(file).collect()
    }

    fn of_device(&self) -> bool {
        true
    }

    fn is_drawn(&self) -> bool {
        false
    }

    fn draws(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const WHOLE: &str = "napi_defer_hard_irqs=0 gro_flush_timeout=0 threaded=0 \
        /proc/sys/net/core/busy_poll=0 /proc/sys/net/core/busy_read=0\n";
    const PART: &str = "napi_defer_hard_irqs=7 gro_flush_timeout=0 threaded=0\n";

    fn at<T>(printed: &str, act: impl FnOnce(&mut At<'_>) -> T) -> T {
        let setting = "polling@eth0".parse().unwrap();
        let typed = files::show(WHAT, &find(), "eth0").typed();
        let link = r#"[{"ifindex":2,"ifname":"eth0","address":"02:00:00:00:00:02"}]"#;
        let files = "cat /sys/class/net/eth0/ifindex /sys/class/net/eth0/address";
        let mut shell = Scripted::default()
            .prints(&typed, printed)
            .prints("ip -j link show dev eth0", link)
            .prints(files, "2\n02:00:00:00:00:02\n");
        act(&mut At { shell: &mut shell, setting: &setting })
    }

    #[test]
    fn a_state_is_a_preset_or_all_its_numbers() {
        assert_eq!(at(WHOLE, |at| Polling.read(at)).unwrap(), "interrupts");
        let mixed = "mixed:defer_hard_irqs=7,gro_flush_timeout=0,threaded=0";
        assert_eq!(at(PART, |at| Polling.read(at)).unwrap(), mixed);
        let words = |printed, value| {
            let write = at(printed, |at| Polling.write(at, value)).unwrap();
            write[0].args.last().unwrap().clone()
        };
        assert_eq!(words(WHOLE, "busy"), "2 200000 0 50 50");
        assert_eq!(words(PART, "interrupts"), "0 0 0 - -");
        assert_eq!(words(PART, mixed), "7 0 0 - -");
        for wrong in ["", "threaded=x\n", "other=1\n", "threaded=0\nthreaded=0\n"] {
            assert!(at(wrong, |at| Polling.read(at)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_preset_that_the_host_can_not_have_is_refused() {
        let said = |printed, value| {
            at(printed, |at| Polling.normalise(at, value)).unwrap_err().to_string()
        };
        assert!(said(PART, "busy").contains("busy_poll belongs to the whole host"));
        assert!(said(PART, "fast").contains("interrupts, deferred, threaded, busy"));
        assert!(at(PART, |at| Polling.normalise(at, "deferred")).is_ok());
    }
}
