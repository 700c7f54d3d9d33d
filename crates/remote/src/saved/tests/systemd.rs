//! What is kept at hosts that systemd has started, and that a rehearsal refuses what saving would.

use super::*;

/// Someone else's `.network` file for v0.
const NETWORK: &str = "[Match]\nName=v0\n\n[Network]\nDHCP=yes\n";

impl Scene {
    /// A host that systemd has started, whose udevd and networkd configure v0 if `knows_v0`.
    fn with_systemd(knows_v0: bool) -> Self {
        let link = "ip link add v0 index 77 address 02:00:00:00:00:77 type veth peer name v1";
        assert!(std::process::Command::new("sh").args(["-c", link]).status().unwrap().success());
        let scene = Self::new("Linux");
        scene.put("run/systemd/system/x", "");
        let program = scene.root.path().join("bin/udevadm");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        goodput_testing::write_script(&program, "#!/bin/sh\necho 252\n");
        if knows_v0 {
            let (default, lan) = ("/run/99-default.link", "/run/systemd/network/10-lan.network");
            let known = format!("E:ID_NET_LINK_FILE={default}\nE:ID_PATH=pci-0000:03:00.0\n");
            scene.put("run/udev/data/n77", &known);
            scene.put(&default[1..], "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep\n");
            scene.put("run/systemd/netif/links/77", &format!("NETWORK_FILE={lan}\n"));
            scene.put(&lan[1..], NETWORK);
        }
        scene
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Every file and link below /etc.
    fn all(&self) -> Vec<String> {
        let find = std::process::Command::new("find")
            .args([self.path("").as_os_str(), "!".as_ref(), "-type".as_ref(), "d".as_ref()])
            .output()
            .unwrap();
        let found = String::from_utf8(find.stdout).unwrap();
        let mut names: Vec<_> = found
            .lines()
            .map(|path| path.strip_prefix(self.path("").to_str().unwrap()).unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

const LINK: &str = "systemd/network/98-goodput-v0.link";
const DROP_IN: &str = "systemd/network/10-lan.network.d/90-goodput.conf";
const UNIT: &str = "systemd/system/goodput-settings.service";
const WANTED: &str = "systemd/system/multi-user.target.wants/goodput-settings.service";

/// What a unit keeps of a route or a device that is gone keeps no other value out, and stays: it may come back.
#[test]
fn a_value_of_what_is_gone_stays_beside_new_ones() {
    in_namespace(|| {
        let mut scene = Scene::with_systemd(false);
        let ip = |words: &str| {
            let done = std::process::Command::new("ip").args(words.split(' ')).status().unwrap();
            assert!(done.success(), "{words}");
        };
        for words in ["link set v0 up", "link set v1 up", "route add 10.99.0.0/24 dev v0"] {
            ip(words);
        }
        let route = ("route.initcwnd@10.99.0.0/24", "40");
        scene.save(&[route]).unwrap();
        let command = |text: String| {
            let line =
                text.lines().find(|line| line.contains("10.99.0.0/24") && !line.starts_with('#'));
            line.map(str::to_owned)
        };
        let before = command(scene.text(UNIT));
        assert!(before.is_some(), "{}", scene.text(UNIT));
        ip("route del 10.99.0.0/24");
        scene.rehearse(&[("link.txqueuelen@v0", "900")]).unwrap();
        scene.save(&[("link.txqueuelen@v0", "1000")]).unwrap();
        assert_eq!(scene.kept(), ["route.initcwnd@10.99.0.0/24=40", "link.txqueuelen@v0=1000"]);
        assert_eq!(command(scene.text(UNIT)), before);
        let new = scene.save(&[("route.initcwnd@10.99.0.0/24", "50")]).unwrap_err().to_string();
        assert!(new.contains("no such route"), "{new}");
        assert_eq!(command(scene.text(UNIT)), before, "another value can't be worked out");
    });
}

#[test]
fn what_udevd_and_networkd_can_say_stands_in_their_files() {
    in_namespace(|| {
        let mut scene = Scene::with_systemd(true);
        let both = [("link.mtu@v0", "1400"), ("qdisc.kind@v0", "fq")];
        scene.save(&both).unwrap();
        assert_eq!(scene.all(), [DROP_IN, LINK]);
        let text = scene.text(LINK);
        let own = "# instead of /run/99-default.link\n[Match]\nMACAddress=02:00:00:00:00:77\n\
                   Path=pci-0000:03:00.0\n[Link]\nNamePolicy=keep\n[Link]\nMTUBytes=1400\n";
        assert!(text.ends_with(own), "{text}");
        assert!(scene.text(DROP_IN).ends_with("\n[FairQueueing]\nParent=root\n"));
        let before = (text, scene.text(DROP_IN));
        scene.save(&both).unwrap();
        assert_eq!((scene.text(LINK), scene.text(DROP_IN)), before, "the same changes nothing");
        assert_eq!(scene.kept(), ["qdisc.kind@v0=fq", "link.mtu@v0=1400"]);
        let edited = before.1.replace("[FairQueueing]", "[CAKE]");
        fs::write(scene.path(DROP_IN), &edited).unwrap();
        let refused = scene.save(&[("qdisc.kind@v0", "pfifo")]).unwrap_err().to_string();
        assert!(refused.contains("edited"), "{refused}");
        assert_eq!(scene.remove(), [false, true]);
        assert_eq!((scene.all(), scene.text(DROP_IN)), (vec![DROP_IN.to_owned()], edited));
        fs::write(scene.path(DROP_IN), before.1).unwrap();
        assert_eq!(scene.remove(), [true]);
        assert!(!scene.path(DROP_IN).parent().unwrap().exists(), "the folder was made for ours");
    });
}

#[test]
fn what_no_file_can_say_is_set_at_boot_by_the_hosts_own_programs() {
    in_namespace(|| {
        let mut scene = Scene::with_systemd(false);
        let files = scene.save(&[("link.mtu@v0", "1400"), ("link.txqueuelen@v0", "300")]).unwrap();
        assert_eq!(files[0].path, format!("/etc/{UNIT}"));
        assert_eq!(scene.all(), [UNIT, WANTED]);
        assert_eq!(fs::read_link(scene.path(WANTED)).unwrap().to_str(), Some(&*files[0].path));
        let text = scene.text(UNIT);
        let line = "\nExecStart=-/bin/sh -c \"'ip' 'link' 'set' 'dev' 'v0' 'mtu' '1400'\"\n";
        assert!(text.contains(line) && text.contains("Type=oneshot\n"), "{text}");
        // Once udevd configures the device, its value moves there.
        let default = "/run/99-default.link";
        scene.put("run/udev/data/n77", &format!("E:ID_NET_LINK_FILE={default}\nE:ID_PATH=x\n"));
        scene.put(&default[1..], "[Match]\nOriginalName=*\n");
        scene.save(&[("link.mtu@v0", "1300")]).unwrap();
        assert_eq!(scene.kept(), ["link.mtu@v0=1300", "link.txqueuelen@v0=300"]);
        assert!(!scene.text(UNIT).contains("mtu"), "{}", scene.text(UNIT));
        assert_eq!(scene.remove(), [true, true]);
        assert_eq!(scene.all(), [""; 0]);
        // A link that someone else made.
        fs::remove_file(scene.root.path().join("run/udev/data/n77")).unwrap();
        std::os::unix::fs::symlink("/dev/null", scene.path(WANTED)).unwrap();
        let refused = scene.save(&[("link.txqueuelen@v0", "300")]).unwrap_err().to_string();
        assert!(refused.contains("goodput did not make"), "{refused}");
        assert_eq!(scene.all(), [WANTED], "nothing was written");
    });
}

/// A run that is cut off makes the link first, and someone may remove one of the two.
#[test]
fn a_link_without_its_file_is_removed_and_a_file_without_its_link_is_shown() {
    in_namespace(|| {
        let mut scene = Scene::with_systemd(false);
        let unit = [("link.txqueuelen@v0", "300")];
        let lacks = |scene: &mut Scene| saved(scene.system, &mut scene.session).unwrap()[0].lacks;
        let written = |scene: &mut Scene| {
            let mut noted = Vec::new();
            let Scene { system, session, .. } = scene;
            let writing = Writing::prepare(*system, session, &parsed(&unit)).unwrap();
            let note = |files| {
                noted = files;
                Ok(())
            };
            writing.write(*system, session, note).unwrap();
            noted
        };
        let noted = written(&mut scene);
        assert_eq!(lacks(&mut scene), None);
        fs::remove_file(scene.path(UNIT)).unwrap();
        let back = take_back(scene.system, &mut scene.session, &noted);
        assert_eq!(back[0].outcome, goodput_settings::FileOutcome::PutBack);
        assert!(!scene.path(WANTED).is_symlink(), "nothing is forgotten");
        let again = take_back(scene.system, &mut scene.session, &noted);
        assert_eq!(again[0].outcome, goodput_settings::FileOutcome::AlreadyBack);
        written(&mut scene);
        fs::remove_file(scene.path(UNIT)).unwrap();
        let removed = remove(scene.system, &mut scene.session).unwrap();
        assert!(removed.len() == 1 && removed[0].1.is_ok());
        assert_eq!(removed[0].0.path, format!("/etc/{WANTED}"));
        assert_eq!(scene.remove(), [false; 0], "it is gone");
        written(&mut scene);
        fs::remove_file(scene.path(WANTED)).unwrap();
        assert_eq!(lacks(&mut scene), Some(goodput_settings::keeping::BOOT_LINK));
        written(&mut scene);
        assert_eq!(lacks(&mut scene), None, "saving once more makes the link again");
    });
}

#[test]
fn a_full_or_read_only_disk_is_named_without_the_script() {
    in_namespace(|| {
        let full =
            "mount -t tmpfs -o size=16k none etc && { cat /dev/zero >etc/full 2>/dev/null; :; } &&";
        let read_only = "mount --bind etc etc && mount -o remount,bind,ro etc &&";
        for (script, why, what_to_do) in [
            (full, "No space left on device", "make room"),
            (read_only, "Read-only file system", "remount,rw"),
        ] {
            for (system, setting) in [
                ("FreeBSD", ("polling@em0", "on")),
                ("Linux", ("sysctl.net.core.rmem_max", "4194304")),
            ] {
                let mut scene = Scene::with(system, script);
                let before = scene.all();
                let early = scene.rehearse(&[setting]).unwrap_err().to_string();
                assert_eq!(scene.all(), before, "a rehearsal leaves nothing");
                let said = scene.save(&[setting]).unwrap_err().to_string();
                assert!(early.contains(why) && early.contains(what_to_do), "{early}");
                assert!(!early.contains("umask") && early.contains("can't write /etc/"), "{early}");
                assert!(said.contains(why) && said.contains(what_to_do), "{said}");
                assert!(said.contains("can't write /etc/"), "{said}");
                assert!(!said.contains("umask") && !said.contains("cksum"), "{said}");
            }
        }
    });
}

#[test]
fn a_rehearsal_refuses_what_saving_would_and_leaves_nothing() {
    in_namespace(|| {
        let mut scene = Scene::with_systemd(false);
        let unit = [("link.txqueuelen@v0", "300")];
        let all = [("link.mtu@v0", "1400"), unit[0], ("sysctl.net.ipv4.tcp_sack", "1")];
        scene.rehearse(&all).unwrap();
        assert!(fs::read_dir(scene.path("")).unwrap().next().is_none(), "{:?}", scene.all());
        scene.save(&all).unwrap();
        let (saved, text) = (scene.all(), scene.text(UNIT));
        scene.rehearse(&all).unwrap();
        assert_eq!((scene.all(), scene.text(UNIT)), (saved, text.clone()));
        fs::write(scene.path(UNIT), text + "# edited\n").unwrap();
        let refused = scene.rehearse(&unit).unwrap_err().to_string();
        assert!(refused.contains("edited"), "{refused}");
        fs::remove_file(scene.path(UNIT)).unwrap();
        fs::remove_file(scene.path(WANTED)).unwrap();
        std::os::unix::fs::symlink("/dev/null", scene.path(WANTED)).unwrap();
        let refused = scene.rehearse(&unit).unwrap_err().to_string();
        assert!(refused.contains("goodput did not make"), "{refused}");
        let mut bsd = Scene::new("FreeBSD");
        fs::write(bsd.path("rc.conf"), THEIRS).unwrap();
        bsd.rehearse(&[("polling@em0", "on")]).unwrap();
        assert_eq!((bsd.all(), bsd.text("rc.conf")), (vec!["rc.conf".into()], THEIRS.into()));
    });
}

#[test]
fn a_login_in_a_namespace_of_its_own_saves_nothing_into_the_files_of_the_host() {
    // The first process is one of the test's own, so that its namespaces can be seen on any machine.
    let inner = "unshare --net sh; :";
    let login = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", inner];
    in_namespace(|| {
        let system = systems::ALL.iter().find(|known| known.name() == "Linux").unwrap();
        let mut session = Session::with_shell(login).unwrap();
        let refused = |session: &mut Session, setting: &str| {
            let assignment = (setting.parse().unwrap(), "1".to_owned());
            check(*system, session, &[assignment]).err().map(|error| error.to_string())
        };
        let why = refused(&mut session, "sysctl.net.ipv4.tcp_sack").unwrap();
        assert!(why.contains("network namespace of its own"), "{why}");
        assert_eq!(refused(&mut session, "sysctl.vm.swappiness"), None, "the whole host's");
    });
}

#[test]
fn what_another_file_sets_later_is_said() {
    in_namespace(|| {
        let mut scene = Scene::new("Linux");
        fs::create_dir_all(scene.path("sysctl.d")).unwrap();
        let later = "# ours\nnet.ipv4.tcp_sack = 0\n";
        fs::write(scene.path("sysctl.d/99-local.conf"), later).unwrap();
        let saved = scene.save(&[("sysctl.net.ipv4.tcp_sack", "1")]).unwrap();
        let by =
            [("sysctl.net.ipv4.tcp_sack".parse().unwrap(), "/etc/sysctl.d/99-local.conf".into())];
        assert_eq!(saved[0].overruled, by);
        assert_eq!(super::saved(scene.system, &mut scene.session).unwrap(), saved);
    });
}
