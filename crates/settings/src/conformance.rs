//! Every setting of the machine, by its own example, in a network namespace made for it: read,
//! apply, verify, put back; changed by someone else, then left alone; killed, then put back.

use std::time::Duration;

use goodput_model::SettingRef;
use goodput_netlink::parameters::{Parameter, set_parameter};
use goodput_netlink::receive_hash::{HashPart, receive_hash, set_receive_hash};
use goodput_netlink::{Features, Offload, namespace, scripted};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::lookup::machine;
use crate::machine::offload::requested;
use crate::testing::{Tmpfs, Victim, Whole, build, guard, in_scene, wait_for};
use crate::{Changes, Outcome, Setting, SettingError, read, settings, undo};

/// Settings that no virtual device has. A card in memory has all of them except the first [`ABSENT`]; a device without
/// them is reported as such.
const HARDWARE: [&str; 15] = [
    "irq.affinity",
    "offload.lro",
    "offload.rx-gro-hw",
    "offload.rx-hash",
    "offload.ntuple",
    "ring.rx",
    "ring.tx",
    "ring.tcp_data_split",
    "ring.hds_thresh",
    "channels.combined",
    "coalescing.rx_usecs",
    "coalescing.tx_usecs",
    "coalescing.adaptive_rx",
    "pause.rx",
    "pause.tx",
];

/// How many of [`HARDWARE`] a card in memory does not have either; real drivers have it in the second kernel.
const ABSENT: usize = 1;

/// Settings that not every kernel or no test machine has: tested with made-up files, and in the second kernel.
fn is_elsewhere(setting: &Setting) -> bool {
    let kinds = ["qdisc.fq_codel.", "qdisc.fq.", "qdisc.cake.", "cpu."];
    kinds.iter().any(|kind| setting.id.starts_with(kind))
}

/// The settings that change the machine, each with the setting and two values of its example; the
/// second differs from the value now.
fn machine_settings() -> impl Iterator<Item = (&'static Setting, SettingRef, [String; 2])> {
    settings_that(|setting| {
        !setting.is_plan() && !HARDWARE.contains(&setting.id) && !is_elsewhere(setting)
    })
}

/// The same for the settings that `choose` selects.
fn settings_that(
    choose: impl Fn(&Setting) -> bool,
) -> impl Iterator<Item = (&'static Setting, SettingRef, [String; 2])> {
    settings::ALL.iter().filter(move |setting| choose(setting)).map(|found| {
        let (name, values) = found.example.split_once('=').unwrap();
        let values: Vec<String> = values.split(',').map(|v| v.trim_matches('"').into()).collect();
        let [one, other] = values.try_into().unwrap();
        let setting: SettingRef = name.parse().unwrap();
        let machine = machine(&setting).unwrap();
        let now = machine.read(&setting).unwrap();
        let is_now = machine.normalise(&setting, &other).unwrap() == now;
        (*found, setting, if is_now { [other, one] } else { [one, other] })
    })
}

#[test]
fn every_setting_is_applied_verified_and_put_back() {
    in_scene(|state_dir| {
        for (_, setting, values) in machine_settings() {
            let (before, whole) = (read(&setting).unwrap(), Whole::now());
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            for value in values.iter().chain(&values) {
                let effective = changes.apply(&setting, value).unwrap();
                assert_eq!(read(&setting).unwrap(), effective, "{setting}={value}");
            }
            assert_ne!(read(&setting).unwrap(), before, "{setting}");
            let report = changes.restore();
            assert!(report.is_clean(), "{report:?}");
            assert_eq!(report.entries.len(), 1, "{setting}");
            assert_eq!(read(&setting).unwrap(), before, "{setting}");
            assert_eq!(whole.differences(), [""; 0], "{setting}");
        }
    });
}

#[test]
fn all_settings_at_once_are_put_back() {
    in_scene(|state_dir| {
        let all: Vec<_> = machine_settings().collect();
        let values = || all.iter().map(|(_, s, _)| read(s).unwrap()).collect::<Vec<_>>();
        let (before, whole) = (values(), Whole::now());
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for round in [1, 0, 1] {
            for (_, setting, values) in &all {
                changes.apply(setting, &values[round]).unwrap();
            }
        }
        assert_ne!(values(), before);
        let report = changes.restore();
        assert!(report.is_clean(), "{report}");
        assert_eq!(values(), before);
        assert_eq!(whole.differences(), [""; 0]);
    });
}

/// goodput puts a card back to the byte, with everything that its driver resets at the same time. A change of the
/// channels resets the hash table, the interrupt delays and the files of the removed queues.
#[test]
fn what_a_card_has_is_put_back_to_the_byte() {
    in_scene(|state_dir| {
        let installed = scripted::install("eth0", scripted::Card::with_queues(4));
        set_parameter("eth0", Parameter::ChannelsCombined, 4).unwrap();
        crate::side_effects::steer("eth0");
        installed.change(|card| card.table.reverse());
        for (parameter, value) in [(Parameter::CoalesceRxUs, 20), (Parameter::RingRx, 1024)] {
            set_parameter("eth0", parameter, value).unwrap();
        }
        let of_card = |setting: &Setting| HARDWARE[ABSENT..].contains(&setting.id);
        assert_eq!(settings_that(of_card).count(), HARDWARE.len() - ABSENT);
        for (_, setting, values) in settings_that(of_card) {
            let (card, whole) = (installed.card(), Whole::now());
            assert!(whole.has("queue/eth0/queues/rx-3/rps_cpus") && whole.has("spreading/eth0/"));
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            // Once: a kernel that was given a table refuses to remove a channel that is in it.
            let effective = changes.apply(&setting, &values[1]).unwrap();
            assert_eq!(read(&setting).unwrap(), effective, "{setting}");
            assert_ne!(installed.card().bytes(), card.bytes(), "{setting}");
            let report = changes.restore();
            assert!(report.is_clean(), "{setting}: {report}");
            assert_eq!(installed.card().bytes(), card.bytes(), "{setting}");
            assert_eq!(whole.differences(), [""; 0], "{setting}");
        }
    });
}

#[test]
fn more_than_a_card_takes_is_refused_with_what_it_takes() {
    in_scene(|state_dir| {
        let installed = scripted::install("eth0", scripted::Card::with_queues(4));
        let card = installed.card();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for name in ["ring.rx", "ring.tx", "ring.hds_thresh", "channels.combined"] {
            let setting = format!("{name}@eth0").parse().unwrap();
            let said = changes.apply(&setting, "1000000").unwrap_err().to_string();
            assert!(
                ["eth0 takes at most", "from 1 to", "from 0 to 1023"]
                    .iter()
                    .any(|range| said.contains(range)),
                "{said}"
            );
        }
        assert_eq!(installed.card().bytes(), card.bytes());
    });
}

/// The kernel refuses to remove a channel that is in a table which somebody has set.
#[test]
fn channels_are_lowered_again_after_they_were_put_back() {
    in_scene(|state_dir| {
        let installed = scripted::install("eth0", scripted::Card::with_queues(4));
        set_parameter("eth0", Parameter::ChannelsCombined, 4).unwrap();
        let (card, setting) = (installed.card(), "channels.combined@eth0".parse().unwrap());
        for _ in 0..2 {
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            for value in ["2", "4", "1", "4", "3"] {
                assert_eq!(changes.apply(&setting, value).unwrap(), value);
            }
            let report = changes.restore();
            assert!(report.is_clean(), "{report}");
            assert_eq!(installed.card().bytes(), card.bytes());
            assert!(!installed.card().table_is_set());
        }
        // An administrator's own table stays.
        let own = 1u32.to_ne_bytes().repeat(card.table.len());
        set_receive_hash("eth0", HashPart::Table, &own).unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        changes.apply(&setting, "2").unwrap();
        assert!(changes.restore().is_clean());
        assert_eq!(receive_hash("eth0").unwrap().table, vec![1; card.table.len()]);
        assert!(installed.card().table_is_set());
    });
}

#[test]
fn what_someone_else_changed_is_left_alone() {
    in_scene(|state_dir| {
        for (_, setting, [one, other]) in machine_settings() {
            let before = read(&setting).unwrap();
            let mut ours = Changes::begin(state_dir, guard()).unwrap();
            let first =
                [&other, &one].into_iter().find(|v| ours.apply(&setting, v).unwrap() != before);
            // A switch has no third value; then theirs is the original.
            let value = if first == Some(&one) { &other } else { &one };
            let machine = machine(&setting).unwrap();
            machine.write(&setting, value).unwrap();
            let now = machine.read(&setting).unwrap();
            let outcome = ours.restore().entries.swap_remove(0).outcome;
            match outcome {
                // Changes along with it were not theirs.
                Outcome::AlreadyBack | Outcome::PutBack { .. } => {
                    assert_eq!(now, before, "{setting}");
                }
                Outcome::ChangedByOther { now: seen, .. } => assert_eq!(seen, now, "{setting}"),
                other => panic!("{setting}: {other:?}"),
            }
            assert_eq!(read(&setting).unwrap(), now, "{setting}");
        }
    });
}

#[test]
fn nonsense_is_refused_by_every_setting_and_changes_nothing() {
    in_scene(|state_dir| {
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for (_, setting, _) in machine_settings() {
            let before = read(&setting).unwrap();
            for value in ["", "-1", "fast", "0 apples", "99999999999999999999999"] {
                assert!(changes.apply(&setting, value).is_err(), "{setting}={value:?}");
                assert_eq!(read(&setting).unwrap(), before, "{setting}={value:?}");
            }
        }
        assert!(changes.restore().is_clean());
    });
}

#[test]
fn without_the_capability_it_is_named_and_nothing_is_changed() {
    in_scene(|state_dir| {
        // For this thread alone. Files of root, sysctls among them, stay writable for its uid.
        let all: Vec<_> = machine_settings().collect();
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for (_, setting, [_, value]) in all.into_iter().filter(|s| s.0.id != "sysctl") {
            // Some can't even be read without it; they are not changed either.
            let before = read(&setting).ok();
            let error = changes.apply(&setting, &value).unwrap_err();
            assert!(error.not_permitted(), "{error}");
            assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
            assert_eq!(read(&setting).ok(), before, "{setting}");
        }
        assert!(changes.restore().is_clean());
    });
}

#[test]
fn what_a_device_does_not_have_is_reported_as_such() {
    in_scene(|state_dir| {
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for setting in settings::ALL.iter().filter(|s| HARDWARE.contains(&s.id)) {
            let (name, values) = setting.example.split_once('=').unwrap();
            let value = values.rsplit(',').next().unwrap();
            let error = changes.apply(&name.parse().unwrap(), value).unwrap_err();
            let is_known =
                matches!(error, SettingError::Refused { .. } | SettingError::Scope { .. });
            assert!(is_known, "{name}: {error}");
            let said = error.to_string();
            assert!(said.contains("eth0") && !error.not_permitted(), "{said}");
        }
        assert!(changes.restore().is_clean());
    });
}

#[test]
fn a_read_only_parameter_is_reported_as_such() {
    in_scene(|state_dir| {
        let setting = "sysctl.net.ipv4.tcp_available_congestion_control".parse().unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        let error = changes.apply(&setting, "cubic").unwrap_err();
        assert!(error.to_string().contains("read-only") && !error.not_permitted(), "{error}");
    });
}

#[test]
fn an_object_that_is_not_there_is_reported_with_those_that_are() {
    in_scene(|_| {
        for (text, hint) in [
            ("offload.tso@eth7", "eth0"),
            ("qdisc.tbf.burst@eth1", "only htb"),
            ("qdisc.htb.burst@eth1:1:11", "only 1:10"),
            ("route.window@198.51.100.0/24", "192.0.2.0/24"),
        ] {
            let error = read(&text.parse().unwrap()).unwrap_err();
            assert!(matches!(error, SettingError::Gone { .. }), "{error}");
            assert!(error.to_string().contains(hint), "{error}");
        }
    });
}

#[test]
fn segmentation_of_which_a_part_was_off_comes_back_in_part() {
    in_scene(|state_dir| {
        let names = Offload::Tso.features();
        let only = ["tx-tcp-segmentation"];
        Features::of("eth0").unwrap().request_exactly("eth0", names, &only).unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for value in ["off", "on", "off"] {
            changes.apply(&"offload.tso@eth0".parse().unwrap(), value).unwrap();
        }
        assert!(requested("eth0", Offload::Tso).unwrap().is_empty());
        assert!(changes.restore().is_clean());
        assert_eq!(requested("eth0", Offload::Tso).unwrap(), only);
    });
}

#[test]
fn undo_in_another_namespace_keeps_the_entry_and_says_so() {
    in_scene(|state_dir| {
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        let before = read(&setting).unwrap();
        let mut victim = Victim::start(state_dir, &["offload.tso@eth0=off".into()], -1);
        victim.wait_until_applied();
        victim.kill_with_guard();
        assert_eq!(read(&setting).unwrap(), "off");

        let seen = || (undo(state_dir).unwrap(), crate::leftovers(state_dir));
        let (elsewhere, left) = namespace::in_new_namespace(seen).unwrap();
        let outcome = &elsewhere[0].entries[0].outcome;
        assert!(matches!(outcome, Outcome::OtherNamespace { enter: Some(_) }), "{outcome:?}");
        // Its own eth0 is a different one; this process is in the right namespace.
        let text = left[0].to_string();
        assert!(text.contains("in another network namespace (net:["), "{text}");
        assert!(text.contains("--net=/proc/"), "{text}");
        assert_eq!(read(&setting).unwrap(), "off");

        assert!(undo(state_dir).unwrap()[0].is_clean());
        assert_eq!(read(&setting).unwrap(), before);
    });
}

#[test]
fn changes_belong_to_the_namespace_they_began_in() {
    in_scene(|state_dir| {
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        let setting = "offload.tso@eth0".parse().unwrap();
        let elsewhere = namespace::in_new_namespace(|| {
            build();
            changes.apply(&setting, "off").map_err(|error| error.to_string())
        });
        assert!(elsewhere.unwrap().unwrap_err().contains("not in the network namespace"));
    });
}

#[test]
fn every_setting_comes_back_when_the_run_is_killed() {
    in_scene(|state_dir| {
        for (_, setting, [one, other]) in machine_settings() {
            let (before, whole) = (read(&setting).unwrap(), Whole::now());
            let job = [&one, &other, &one, &other].map(|value| format!("{setting}={value}"));
            let mut victim = Victim::start(state_dir, &job, -1);
            victim.wait_until_applied();
            assert_ne!(read(&setting).unwrap(), before, "{setting}");
            victim.kill();
            wait_for(&setting.to_string(), || whole.differences().is_empty());
        }
    });
}

#[test]
fn a_full_disk_stops_before_anything_is_changed() {
    in_scene(|state_dir| {
        let full = state_dir.join("full");
        std::fs::create_dir_all(&full).unwrap();
        let Some(mounted) = Tmpfs::mount(&full) else {
            return goodput_testing::skip("the right to mount");
        };
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        let before = read(&setting).unwrap();
        let mut changes = Changes::begin(&full, guard()).unwrap();
        mounted.fill("with");
        // The journal's first page has space left, and each line takes some of it.
        let stopped = (0..10_000).find_map(|round| {
            let value = if round % 2 == 0 { "off" } else { "on" };
            let now = read(&setting).unwrap();
            changes.apply(&setting, value).err().map(|error| (now, error))
        });
        let (now, error) = stopped.expect("the disk is full at some time");
        assert!(matches!(error, SettingError::Journal { .. }), "{error}");
        assert!(error.to_string().contains("goodput changes nothing"), "{error}");
        assert!([now, before.clone()].contains(&read(&setting).unwrap()));
        assert!(changes.restore().is_clean());
        assert_eq!(read(&setting).unwrap(), before);

        // Space of the closed journal may be freed a little later.
        let refused = (0..1000).any(|n| {
            mounted.fill(&n.to_string());
            Changes::begin(&full, guard()).is_err()
        });
        assert!(refused, "and no other begins");
        assert_eq!(read(&setting).unwrap(), before);
    });
}

/// Settings that change other things too.
const WITH_SIDE_EFFECTS: [&str; 3] = ["link.mtu@eth0", "channels.rx@eth2", "channels.tx@eth2"];

/// The same, and one that takes a system call for each queue.
const IN_STEPS: [&str; 4] =
    ["link.mtu@eth0", "channels.rx@eth2", "channels.tx@eth2", "rps.cpus@eth0"];

#[test]
fn what_changes_along_with_a_setting_comes_back_with_it() {
    in_scene(|state_dir| {
        let whole = Whole::now();
        assert!(whole.len() > 500);
        for name in ["queue/eth2/queues/rx-1/rps_cpus", "nexthop/", "fdb/", "filter/"] {
            assert!(whole.has(name), "{name}");
        }
        for (_, setting, [_, other]) in
            machine_settings().filter(|(_, s, _)| WITH_SIDE_EFFECTS.contains(&&*s.to_string()))
        {
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            let before = read(&setting).unwrap();
            changes.apply(&setting, &other).unwrap();
            assert!(whole.differences().len() > 1, "{setting}: {:?}", whole.differences());
            // The arm with the original value is the original too.
            changes.apply(&setting, &before).unwrap();
            assert_eq!(whole.differences(), [""; 0], "{setting}");
            changes.apply(&setting, &other).unwrap();
            // Someone puts the value back by hand, but not its side effects.
            machine(&setting).unwrap().write(&setting, &before).unwrap();
            let report = changes.restore();
            assert!(report.is_clean(), "{report}");
            assert_eq!(whole.differences(), [""; 0], "{setting}");
        }
    });
}

#[test]
fn killed_at_every_step_the_whole_namespace_comes_back() {
    in_scene(|state_dir| {
        for (_, setting, [_, other]) in
            machine_settings().filter(|(_, s, _)| IN_STEPS.contains(&&*s.to_string()))
        {
            let (whole, job) = (Whole::now(), [format!("{setting}={other}")]);
            let survived = (0..).take_while(|after| {
                let survived = Victim::start(state_dir, &job, *after).finish();
                let what = format!("{setting} killed after {after} steps");
                wait_for(&what, || whole.differences().is_empty());
                !survived
            });
            assert!(survived.count() > 8, "{setting}");
        }
    });
}

/// Number of kills: a few in each test run, more for `cargo xtask kills`.
const KILLS: &str = "GOODPUT_KILLS";

#[test]
fn killed_at_any_moment_the_whole_namespace_comes_back() {
    in_scene(|state_dir| {
        let wanted = std::env::var(KILLS).ok();
        let kills: u64 = wanted.as_ref().map_or(20, |kills| kills.parse().unwrap());
        let all: Vec<_> = machine_settings().collect();
        let (whole, mut random) = (Whole::now(), 0x9e37_79b9_7f4a_7c15_u64);
        for kill in 0..kills {
            let (_, setting, [one, other]) = &all[below(&mut random, all.len() as u64) as usize];
            let job = [other, one, other].map(|value| format!("{setting}={value}"));
            let mut victim = Victim::start(state_dir, &job, -1);
            victim.let_finish();
            std::thread::sleep(Duration::from_micros(below(&mut random, 300_000)));
            let with_guard = below(&mut random, 2) == 0;
            if with_guard {
                victim.kill_with_guard();
                undo(state_dir).unwrap();
            } else {
                victim.kill();
            }
            let what = format!("kill {kill} of {setting}, {with_guard}");
            // The next run waits by itself until the guard of this one is done.
            wait_for(&what, || whole.differences().is_empty());
        }
        if wanted.is_some() {
            println!(
                "{kills} kills over {} settings, {} things compared each time: 0 differences",
                all.len(),
                whole.len()
            );
        }
    });
}

/// The next number of a sequence, below `limit` (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
fn below(state: &mut u64, limit: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % limit
}
