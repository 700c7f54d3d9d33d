//! Several settings of one run that change the same things.

use std::path::Path;

use goodput_model::SettingRef;
use goodput_netlink::scripted;

use crate::testing::{Victim, Whole, guard, in_scene, wait_for};
use crate::{Changes, SettingError};

/// Two settings with two values each; the first value is the present one.
type Two<'a> = [(&'a str, [&'a str; 2]); 2];

/// Makes one run go through the four arms of two settings in many orders, and compares the whole namespace in the
/// arm of the originals and at the end. `is_kept` says whether each setting keeps its value if the other one changes.
fn assert_arms_come_back(state_dir: &Path, two: &Two<'_>, is_kept: bool) {
    let [(one, [a, b]), (other, [c, d])] = *two;
    let arms = [[a, c], [b, c], [a, d], [b, d]];
    let settings: [SettingRef; 2] = [one, other].map(|name| name.parse().unwrap());
    let whole = Whole::now();
    for (first, last) in arms.iter().flat_map(|one| arms.iter().map(move |other| (one, other))) {
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for arm in [first, last, &arms[1], &arms[2], &arms[0], last] {
            for (setting, value) in settings.iter().zip(arm) {
                match changes.apply(setting, value) {
                    // At some values of the other setting it does not exist.
                    Err(SettingError::NotEffective { not_back: None, .. }) if !is_kept => {}
                    Err(SettingError::Refused { .. }) if !is_kept => {}
                    applied => drop(applied.unwrap()),
                }
            }
            let now = settings.each_ref().map(|setting| crate::read(setting).unwrap());
            let wanted = [0, 1].map(|index| {
                let setting = &settings[index];
                crate::lookup::machine(setting).unwrap().normalise(setting, arm[index]).unwrap()
            });
            assert!(!is_kept || now == wanted, "{now:?} {arm:?}");
            if is_kept && *arm == arms[0] {
                assert_eq!(whole.differences(), [""; 0], "{two:?} as they were");
            }
        }
        let report = changes.restore();
        assert!(report.is_clean(), "{two:?} {first:?} {last:?}: {report}");
        assert_eq!(whole.differences(), [""; 0], "{two:?} {first:?} {last:?}");
    }
}

#[test]
fn two_settings_of_one_object_do_not_change_each_other() {
    let burst_now = |class: &str| {
        let setting = format!("qdisc.htb.burst@eth1:{class}");
        crate::read(&setting.parse().unwrap()).unwrap()
    };
    in_scene(|state_dir| {
        let (ten, twenty) = (burst_now("1:10"), burst_now("1:20"));
        let all: [Two<'_>; 5] = [
            [
                ("route.initcwnd@192.0.2.0/24", ["default", "33"]),
                ("route.window@192.0.2.0/24", ["default", "65536"]),
            ],
            [
                ("qdisc.tbf.rate@eth0", ["1gbit", "500mbit"]),
                ("qdisc.tbf.limit@eth0", ["100000", "200000"]),
            ],
            [
                ("qdisc.htb.burst@eth1:1:10", [&ten, "70000"]),
                ("qdisc.htb.burst@eth1:1:20", [&twenty, "80000"]),
            ],
            [("channels.rx@eth2", ["2", "1"]), ("channels.tx@eth2", ["2", "1"])],
            [("link.mtu@eth0", ["9100", "1500"]), ("link.txqueuelen@eth0", ["1000", "77"])],
        ];
        all.iter().for_each(|two| assert_arms_come_back(state_dir, two, true));
    });
}

#[test]
fn what_one_setting_drags_along_is_not_taken_for_somebody_elses() {
    in_scene(|state_dir| {
        let all: [Two<'_>; 4] = [
            [("offload.tso@eth2", ["on", "off"]), ("offload.tx-checksum@eth2", ["on", "off"])],
            [("offload.tx-checksum@eth2", ["on", "off"]), ("offload.tso@eth2", ["on", "off"])],
            [("link.mtu@mac0", ["9100", "8000"]), ("link.mtu@eth0", ["9100", "1500"])],
            [
                ("sysctl.net.ipv4.neigh.eth0.base_reachable_time", ["30", "17"]),
                ("sysctl.net.ipv4.neigh.eth0.base_reachable_time_ms", ["30000", "18000"]),
            ],
        ];
        all.iter().for_each(|two| assert_arms_come_back(state_dir, two, false));
    });
}

#[test]
fn rings_and_channels_of_one_card_come_back_together() {
    in_scene(|state_dir| {
        let card = scripted::install("eth0", scripted::Card::with_queues(4));
        let before = card.card();
        let all: [Two<'_>; 2] = [
            [("ring.rx@eth0", ["512", "1024"]), ("ring.tx@eth0", ["512", "256"])],
            [("channels.combined@eth0", ["1", "3"]), ("coalescing.rx_usecs@eth0", ["0", "30"])],
        ];
        for two in all {
            let now = two.map(|(name, values)| {
                let now = crate::read(&name.parse().unwrap()).unwrap();
                (name, [now, values[1].to_owned()])
            });
            let [one, other] = now.each_ref().map(|(name, [now, next])| (*name, [&**now, &**next]));
            assert_arms_come_back(state_dir, &[one, other], true);
            assert_eq!(card.card().bytes(), before.bytes(), "{two:?}");
        }
    });
}

#[test]
fn two_settings_of_one_route_come_back_if_the_run_is_killed() {
    in_scene(|state_dir| {
        let whole = Whole::now();
        let route = "192.0.2.0/24";
        let job = ["initcwnd", "window", "initcwnd"].iter().zip(["33", "65536", "44"]);
        let job: Vec<String> =
            job.map(|(metric, value)| format!("route.{metric}@{route}={value}")).collect();
        let survived = (0..).take_while(|after| {
            let mut victim = Victim::start(state_dir, &job, *after);
            victim.let_finish();
            let survived = victim.finish();
            wait_for(&format!("the route after {after} steps"), || whole.differences().is_empty());
            !survived
        });
        assert!(survived.count() > 10);
    });
}
