//! Settings that are files of a device in /sys and /proc: numbers of its polling, masks of each queue, lists of each
//! interrupt. All files of a setting are read as one line, so that a condition can be about all of them.

use goodput_model::SettingRef;
use goodput_settings::polled::{LONGEST_NS, MOST_EMPTY_POLLS};
use goodput_settings::{SettingError, cpus, each, steering, value};

use super::link;
use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::plain;

/// One setting.
pub(super) struct Files {
    /// Its name.
    pub(super) id: &'static str,
    place: Place,
    word: Word,
}

/// Where the files of a setting are.
#[derive(Clone, Copy)]
enum Place {
    /// An attribute of the device.
    Device(&'static str),
    /// A file of each queue whose name begins with the first.
    Queues(&'static str, &'static str),
    /// The list of CPUs of each interrupt.
    Interrupts,
}

/// What a file contains.
#[derive(Clone, Copy)]
enum Word {
    /// A number up to this.
    Number(u64),
    /// 1 or 0, for on and off.
    Switch,
    /// A hexadecimal mask of CPUs.
    Cpus,
    /// A hexadecimal mask of receive queues.
    ReceiveQueues,
    /// A number of entries of a table.
    Entries,
    /// A list of CPUs.
    List,
}

const fn row(id: &'static str, place: Place, word: Word) -> Files {
    Files { id, place, word }
}

/// Documentation/networking/napi.rst and scaling.rst, Documentation/core-api/irq/irq-affinity.rst.
pub(super) static ROWS: [Files; 8] = [
    row(
        "napi.defer_hard_irqs",
        Place::Device("napi_defer_hard_irqs"),
        Word::Number(MOST_EMPTY_POLLS),
    ),
    row("napi.gro_flush_timeout", Place::Device("gro_flush_timeout"), Word::Number(LONGEST_NS)),
    row("napi.threaded", Place::Device("threaded"), Word::Switch),
    row("rps.cpus", Place::Queues("rx-", "rps_cpus"), Word::Cpus),
    row("rps.flow_cnt", Place::Queues("rx-", "rps_flow_cnt"), Word::Entries),
    row("xps.cpus", Place::Queues("tx-", "xps_cpus"), Word::Cpus),
    row("xps.rxqs", Place::Queues("tx-", "xps_rxqs"), Word::ReceiveQueues),
    row(AFFINITY, Place::Interrupts, Word::List),
];

/// The setting of the interrupts.
const AFFINITY: &str = "irq.affinity";

/// Separates values of which each file has one: a change from one to another that was cut short leaves that.
pub(super) const OR: char = '|';

/// Prints the words of these files on one line, as `rx-0/rps_cpus=3 rx-1/rps_cpus=3`. Interrupts come back with other
/// numbers from a driver that asked for them again. Files that can't be read are left out.
const SHOW: &str = "[ $# -gt 0 ] || exit 0; \
    set -- $(grep -s . /dev/null \"$@\" | sed -e 's,^[0-9]*/smp_affinity_list,cpus,' -e 's/:/=/'); echo \"$*\"";

/// Writes the words of `$v` to these files, where they differ: one word for all, or one for each; `-` for none.
/// printf(1) says why a file refuses, a shell's own may not.
const WRITE: &str = "for f; do w=${v%% *} v=${v#* }; \
    [ \"$w\" = - ] || [ \"$(cat \"$f\" 2>/dev/null)\" = \"$w\" ] || env printf '%s\\n' \"$w\" >\"$f\" || exit 1; done";

/// The command that prints the files; `find` makes their paths the arguments of the shell, and `$1` is the device.
pub(super) fn show(what: &str, find: &str, device: &str) -> Command {
    Command::script(format!("read {what} of {device}"), &format!("{find}; {SHOW}"), [device])
}

/// The command that writes `words` to the files, separated by spaces.
pub(super) fn write(what: &str, find: &str, device: &str, words: &str) -> Command {
    let purpose = format!("change {what} of {device} to {words:?}");
    Command::script(purpose, &format!("v=$2; {find}; {WRITE}"), [device, words])
}

/// The names and words that [`show`] has printed.
pub(super) fn printed(
    at: &mut At<'_>,
    command: &Command,
) -> Result<Vec<(String, String)>, RemoteError> {
    let text = at.shell.output(command)?;
    let line = text.trim();
    let pair = |word: &str| word.split_once('=').map(|(name, word)| (name.into(), word.into()));
    let pairs: Option<Vec<_>> = line.split_whitespace().map(pair).collect();
    match pairs {
        Some(pairs) if !line.contains('\n') => Ok(pairs),
        _ => Err(at.misread(command, line, "one line of words like rx-0/rps_cpus=3")),
    }
}

/// A condition of the line that `command` prints: in each place one of these `NAME=WORD`.
pub(super) fn is_one_of(command: Command, places: &[Vec<String>]) -> Condition {
    let places: Vec<_> = places.iter().map(|all| any(all)).collect();
    Condition::line(command, places.join(&Condition::literal(" ")))
}

/// The same with one of these words in every place, however many there are: another setting may change their number.
fn all_are(command: Command, words: &[String]) -> Condition {
    let words: Vec<_> = words.iter().map(|word| format!("={word}")).collect();
    let place = format!("[^=]*{}", any(&words));
    Condition::line(command, format!("{place}\\({}{place}\\)*", Condition::literal(" ")))
}

/// An expression for any of these texts, each with a `=`. Basic expressions know no alternatives, but a line never has
/// two in one place; so each may be there or not.
fn any(texts: &[String]) -> String {
    match texts {
        [one] => Condition::literal(one),
        all => {
            let maybe = |one: &String| format!("\\({}\\)\\{{0,1\\}}", Condition::literal(one));
            all.iter().map(maybe).collect()
        }
    }
}

/// Each text once.
pub(super) fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_unstable();
    texts.dedup();
    texts
}

impl Place {
    /// Makes the paths of the files the arguments of a shell.
    fn find(self) -> String {
        match self {
            Self::Device(file) => format!("cd /sys/class/net/\"$1\" || exit; set -- {file}"),
            Self::Queues(kind, file) => format!(
                "cd /sys/class/net/\"$1\"/queues || exit; set --; n=0; \
                 while [ -e {kind}$n ]; do set -- \"$@\" {kind}$n/{file}; n=$((n + 1)); done"
            ),
            // Those of a virtio device are its PCI device's; a virtual device has none.
            Self::Interrupts => "cd /sys/class/net/\"$1\" || exit; cd device 2>/dev/null || exit 0; \
                 d=msi_irqs; [ -d $d ] || d=../msi_irqs; set --; for n in $(ls $d 2>/dev/null | sort -n); do \
                 set -- \"$@\" $n/smp_affinity_list; done; cd /proc/irq || exit"
                .into(),
        }
    }

    /// Why there may be no file.
    fn missing(self) -> String {
        match self {
            Self::Device(file) => format!("its kernel has no {file} for devices"),
            // `netif_is_multiqueue` in the functions of these files, net/core/net-sysfs.c.
            Self::Queues("tx-", _) => {
                "the device has one queue to send by, so there is nothing to choose".into()
            }
            Self::Queues(..) => "its kernel does not steer received packets".into(),
            Self::Interrupts => "it has no interrupts of its own (no MSI vectors)".into(),
        }
    }

    /// What the files are called in messages.
    fn what(self) -> &'static str {
        match self {
            Self::Device(file) | Self::Queues(_, file) => file,
            Self::Interrupts => "the CPUs for the interrupts",
        }
    }
}

impl Word {
    /// The setting's value of what a file has; `None` if it is not understood.
    fn value(self, word: &str) -> Option<String> {
        match self {
            Self::Number(_) | Self::Entries => word.parse::<u64>().ok().map(|n| n.to_string()),
            Self::Switch => match word {
                "0" | "1" => Some(value::on_off(word == "1").into()),
                // A kernel may have more ways (`busy-poll-enabled` is 2).
                _ => word.parse::<u64>().ok().map(|n| n.to_string()),
            },
            Self::Cpus | Self::ReceiveQueues => {
                let is_mask = word.bytes().all(|b| b.is_ascii_hexdigit() || b == b',');
                is_mask.then(|| steering::joined(word))
            }
            Self::List => cpus::parse(word).map(|cpus| cpus::printed(&cpus)),
        }
    }

    /// What is written to a file for a value.
    fn written(self, value: &str) -> String {
        match self {
            Self::Switch if value == value::on_off(true) => "1".into(),
            Self::Switch if value == value::on_off(false) => "0".into(),
            Self::Cpus | Self::ReceiveQueues => steering::split(value),
            _ => value.into(),
        }
    }

    /// How a file prints a value that now prints `like`.
    fn printed(self, value: &str, like: &str) -> String {
        match self {
            Self::Cpus | Self::ReceiveQueues => steering::printed(value, like),
            _ => self.written(value),
        }
    }
}

impl Files {
    fn show(&self, at: &At<'_>) -> Command {
        show(self.place.what(), &self.place.find(), at.scope())
    }

    fn found(&self, at: &mut At<'_>) -> Result<Vec<(String, String)>, RemoteError> {
        let command = self.show(at);
        let pairs = printed(at, &command)?;
        if pairs.is_empty() {
            return Err(at.refused(&self.place.missing()));
        }
        Ok(pairs)
    }

    fn values(&self, at: &mut At<'_>) -> Result<Vec<String>, RemoteError> {
        link::check_sysfs(at)?;
        let found = self.found(at)?;
        let value = |(name, word): &(String, String)| {
            self.word.value(word).ok_or_else(|| {
                at.misread(&self.show(at), &format!("{name}={word}"), "a number, mask or list")
            })
        };
        found.iter().map(value).collect()
    }
}

impl Row for Files {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        self.values(at).map(each::joined)
    }

    fn normalise(&self, at: &mut At<'_>, text: &str) -> Result<String, RemoteError> {
        let places = self.values(at)?.len();
        let setting = at.setting;
        Ok(match self.word {
            Word::Number(most) => value::number(setting, text, &(0..=most))?.to_string(),
            Word::Switch => value::on_off(value::switch(setting, text)?).into(),
            Word::Entries => steering::entries(setting, text)?,
            Word::Cpus => {
                let last =
                    cpus_of(at, "possible")?.last().and_then(|cpu| usize::try_from(*cpu).ok());
                steering::mask(setting, text, "CPU", last)?
            }
            Word::ReceiveQueues => {
                let queues = row("", Place::Queues("rx-", "rps_cpus"), Word::Cpus).found(at);
                let last = queues.ok().map(|queues| queues.len() - 1);
                steering::mask(setting, text, "receive queue", last)?
            }
            Word::List => cpus::affinity(setting, text, places, &cpus_of(at, "online")?)?,
        })
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let words: Vec<_> = value.split(' ').map(|one| self.word.written(one)).collect();
        Ok(vec![write(self.place.what(), &self.place.find(), at.scope(), &words.join(" "))])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let found = self.found(at)?;
        let values: Vec<&str> = value.split(OR).collect();
        if let (false, [(_, now), ..]) = (value.contains(' '), &found[..]) {
            let words = values.iter().map(|value| self.word.printed(value, now)).collect();
            return Ok(all_are(self.show(at), &sorted(words)));
        }
        let of_place = |(place, (name, now)): (usize, &(String, String))| {
            let own = values.iter().filter_map(|value| each::own(value, place));
            sorted(own.map(|own| format!("{name}={}", self.word.printed(own, now))).collect())
        };
        let places: Vec<_> = found.iter().enumerate().map(of_place).collect();
        Ok(is_one_of(self.show(at), &places))
    }

    /// The files are written one after another.
    fn half_way(&self, one: &str, other: &str) -> Vec<String> {
        vec![format!("{one}{OR}{other}")]
    }

    fn comes_back(&self, at: &mut At<'_>) -> Result<(), RemoteError> {
        match self.place {
            Place::Interrupts if runs(at, "irqbalance")? => Err(at.refused(
                "irqbalance is running there and would move the interrupts again within seconds; stop it first \
                 (systemctl stop irqbalance)",
            )),
            _ => Ok(()),
        }
    }

    fn files(&self, setting: &SettingRef) -> Vec<String> {
        match (self.place, &setting.scope) {
            (Place::Device(file), Some(device)) => vec![of_device(device, file)],
            _ => Vec::new(),
        }
    }

    fn of_device(&self) -> bool {
        true
    }

    /// Queues that were removed come back without their masks, and a driver that changes its queues asks for its
    /// interrupts anew.
    fn is_drawn(&self) -> bool {
        !matches!(self.place, Place::Device(_))
    }

    fn draws(&self) -> bool {
        false
    }
}

/// An attribute of a device.
pub(super) fn of_device(device: &str, file: &str) -> String {
    format!("/sys/class/net/{device}/{file}")
}

/// The CPUs there that are `online` or `possible`.
fn cpus_of(at: &mut At<'_>, which: &str) -> Result<std::collections::BTreeSet<u32>, RemoteError> {
    let command = Command::new("cat", [format!("/sys/devices/system/cpu/{which}")]);
    let printed = at.shell.output(&command)?;
    cpus::parse(&printed).ok_or_else(|| at.misread(&command, printed.trim(), "CPUs like 0-3"))
}

/// Whether a program of this name runs there.
fn runs(at: &mut At<'_>, program: &str) -> Result<bool, RemoteError> {
    const SCRIPT: &str = "grep -l -s -x -e \"$1\" /proc/[0-9]*/comm; :";
    let command = Command::script("list its programs", SCRIPT, [program]);
    Ok(!at.shell.output(&command)?.trim().is_empty())
}

/// What a refusal means for the settings that may meet it: the words of strerror(3), and why the kernel said so.
const REFUSALS: [(&[&str], &[&str], &str); 2] = [
    // `write_irq_affinity`, kernel/irq/proc.c. Root may open the file.
    (
        &[AFFINITY],
        &["Input/output error", "Operation not permitted"],
        "the kernel places these interrupts itself",
    ),
    // `dev_set_threaded`, net/core/dev.c
    (
        &["napi.threaded", "polling"],
        &["Operation not supported"],
        "the device has no queue that is polled now, so nothing that threads could poll",
    ),
];

/// The refusal with its meaning, if that is known.
pub(super) fn explained(setting: &SettingRef, value: &str, refusal: RemoteError) -> RemoteError {
    let (RemoteError::CouldNot { host, said, .. } | RemoteError::NotPermitted { host, said, .. }) =
        &refusal
    else {
        return refusal;
    };
    let known = REFUSALS.iter().find(|(settings, words, _)| {
        settings.contains(&&*setting.name) && words.iter().any(|words| said.contains(words))
    });
    let Some((_, _, why)) = known else { return refusal };
    let cause = format!("{host}: {why}; it said {:?}", plain::one_line(said)).into();
    let operation = format!("change it to {value:?}");
    SettingError::Refused { operation, setting: setting.clone(), cause }.into()
}

#[cfg(test)]
mod tests;
