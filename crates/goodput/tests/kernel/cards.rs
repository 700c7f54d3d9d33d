//! Rings, channels, coalescing, pause frames and offloads of network cards: changed, read back, put back,
//! also after the run was killed, with all that the driver changed along with them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use goodput_model::SettingRef;
use goodput_settings::{Changes, Scope, read, settings, undo};
use goodput_testing::wait_for;
use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::in_turn;
use crate::journals::journals;
use crate::program::goodput;
use crate::victim::{Victim, guard};

/// A card of the guest, by its driver.
#[derive(Clone, Copy)]
struct Card {
    driver: &'static str,
    /// What it can do, each with two values.
    settings: &'static [(&'static str, [&'static str; 2])],
    /// The same, of the kinds whose killed runs others show: each kill takes seconds in the guest.
    without_kills: &'static [(&'static str, [&'static str; 2])],
}

/// No card that QEMU emulates has `coalescing.tx_usecs` and `coalescing.adaptive_rx`, and none keeps `pause.tx` beyond the
/// next negotiation: the card in memory of `goodput-netlink` has them, in the tests of `goodput-settings`.
const CARDS: [Card; 4] = [
    Card {
        driver: "e1000",
        settings: &[
            ("ring.rx", ["512", "4096"]),
            ("ring.tx", ["128", "1024"]),
            ("offload.tso", ["off", "on"]),
        ],
        without_kills: &[("pause.rx", ["off", "on"])],
    },
    Card {
        driver: "e1000e",
        settings: &[
            ("coalescing.rx_usecs", ["20", "100"]),
            ("polling", ["busy", "deferred"]),
            ("irq.affinity", ["1", "0"]),
        ],
        without_kills: &[
            ("ring.rx", ["512", "4096"]),
            ("ring.tx", ["128", "1024"]),
            ("offload.rx-hash", ["off", "on"]),
        ],
    },
    Card {
        driver: "vmxnet3",
        settings: &[("ring.rx", ["512", "1024"])],
        without_kills: &[("ring.tx", ["256", "1024"]), ("offload.lro", ["off", "on"])],
    },
    Card {
        driver: "virtio_net",
        settings: &[("channels.combined", ["2", "1"])],
        without_kills: &[
            ("polling", ["threaded", "deferred"]),
            ("irq.affinity", ["1", "0"]),
            ("offload.rx-gro-hw", ["off", "on"]),
        ],
    },
];

/// All cards are in one network namespace, which one run changes at a time.
pub static TURN: Mutex<()> = Mutex::new(());

/// Every test of this file.
pub fn all() -> Vec<Trial> {
    let of = |card: Card| {
        let name = |what: &str| format!("cards::{}::{what}", card.driver);
        [
            in_turn(&TURN, name("put_back"), move || put_back(card)),
            in_turn(&TURN, name("put_back_when_killed"), move || put_back_when_killed(card)),
        ]
    };
    let program = in_turn(&TURN, "cards::the_program_changes_a_ring", the_program_changes_a_ring);
    CARDS.into_iter().flat_map(of).chain([program]).collect()
}

impl Card {
    /// Its device, which is up, so that the driver works on rings that are in use.
    fn device(&self) -> Result<String, Failed> {
        for entry in std::fs::read_dir("/sys/class/net")? {
            let entry = entry?;
            let driver = std::fs::read_link(entry.path().join("device/driver"));
            if driver.is_ok_and(|path| path.ends_with(self.driver)) {
                let device = entry.file_name().to_string_lossy().into_owned();
                let mut netlink = goodput_netlink::Netlink::open()?;
                let index = netlink.link(&device)?.index;
                netlink.set_up(index)?;
                // Until then its pause settings may change without a command.
                let carrier = entry.path().join("carrier");
                wait_for("a carrier", || {
                    std::fs::read_to_string(&carrier).is_ok_and(|text| text.trim() == "1")
                });
                return Ok(device);
            }
        }
        Err(format!("the guest has no device of {}", self.driver).into())
    }
}

fn on(setting: &str, device: &str) -> Result<SettingRef, Failed> {
    Ok(format!("{setting}@{device}").parse()?)
}

/// Every setting of a device that can be read.
fn whole(device: &str) -> Result<BTreeMap<&'static str, String>, Failed> {
    let mut all = BTreeMap::new();
    for setting in settings::ALL.iter().filter(|setting| setting.scope == Scope::Device) {
        if let Ok(value) = read(&on(setting.id, device)?) {
            all.insert(setting.id, value);
        }
    }
    Ok(all)
}

/// In memory: what a disk takes is no part of this.
fn state_dir() -> Result<TempDir, Failed> {
    Ok(tempfile::tempdir_in("/dev/shm")?)
}

fn put_back(card: Card) -> Result<(), Failed> {
    let (device, state) = (card.device()?, state_dir()?);
    let before = whole(&device)?;
    for (name, values) in card.settings.iter().chain(card.without_kills) {
        let setting = on(name, &device)?;
        let mut changes = Changes::begin(state.path(), guard())?;
        for value in values {
            let effective = changes.apply(&setting, value)?;
            if effective != *value || read(&setting)? != effective {
                return Err(format!("{setting}={value} is {}", read(&setting)?).into());
            }
        }
        let report = changes.restore();
        if !report.is_clean() {
            return Err(format!("{setting}: {report}: {before:?} → {:?}", whole(&device)?).into());
        }
        // Drivers take a moment to start a card anew.
        wait_for(&format!("{setting} and all else"), || {
            whole(&device).is_ok_and(|now| now == before)
        });
    }
    Ok(())
}

fn put_back_when_killed(card: Card) -> Result<(), Failed> {
    let (device, state) = (card.device()?, state_dir()?);
    let before = whole(&device)?;
    for (name, values) in card.settings {
        let setting = format!("{name}@{device}");
        // One that is now already would change nothing.
        let value = values.iter().find(|value| before.get(name).is_none_or(|now| now != *value));
        let value = value.ok_or("two values are not the same")?;
        Victim::start(state.path(), &setting, value)?.kill()?;
        wait_for(&setting, || {
            // The guard has closed its journal, too.
            journals(state.path()) == 0 && whole(&device).is_ok_and(|now| now == before)
        });
        Victim::start(state.path(), &setting, value)?.kill_with_guard()?;
        if read(&setting.parse()?)? != **value {
            return Err(format!("{setting} came back with nobody to put it back").into());
        }
        let clean = undo(state.path())?.iter().all(|report| report.is_clean());
        if !clean {
            return Err(format!("{setting}: {before:?} → {:?}", whole(&device)?).into());
        }
        wait_for(&setting, || whole(&device).is_ok_and(|now| now == before));
    }
    Ok(())
}

fn the_program_changes_a_ring() -> Result<(), Failed> {
    let device = CARDS[0].device()?;
    let setting = format!("ring.rx@{device}");
    let value = || goodput(&["settings", "get", &setting]);
    let before = value()?;
    let set = |value: &str| goodput(&["settings", "set", &format!("{setting}={value}")]);
    set("1024")?;
    let changed = value()?;
    set(before.trim())?;
    match (changed.trim(), value()? == before) {
        ("1024", true) => Ok(()),
        _ => Err(format!("{before} → {changed} → {}", value()?).into()),
    }
}
