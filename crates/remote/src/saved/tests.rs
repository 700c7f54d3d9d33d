//! Tests with this machine's shell, whose /etc is a folder of the test.

use std::fs;
use std::path::PathBuf;

use goodput_testing::in_namespace;

use super::*;
use crate::ssh::Session;
use crate::systems;

struct Scene {
    /// Its folders stand for /etc and /run, and one has programs.
    root: tempfile::TempDir,
    session: Session,
    system: &'static dyn System,
}

impl Scene {
    fn new(system: &str) -> Self {
        Self::with(system, "")
    }

    /// The same after `script` was run there, which ends in `&&`.
    fn with(system: &str, script: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["etc", "run", "bin"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let at = root.path().display();
        let script = format!(
            "cd '{at}' && {script} mount --bind etc /etc && mount --bind run /run && cd / && \
             PATH='{at}/bin':$PATH exec sh"
        );
        let session = Session::with_shell(["unshare", "--mount", "sh", "-c", &script]).unwrap();
        let system = systems::ALL.iter().find(|known| known.name() == system).unwrap();
        Self { root, session, system: *system }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("etc").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn save(&mut self, assignments: &[(&str, &str)]) -> Result<Vec<SavedThere>, RemoteError> {
        let Self { system, session, .. } = self;
        Writing::prepare(*system, session, &parsed(assignments))?.write(
            *system,
            session,
            |_| Ok(()),
        )
    }

    fn rehearse(&mut self, assignments: &[(&str, &str)]) -> Result<(), RemoteError> {
        rehearse(self.system, &mut self.session, &parsed(assignments))
    }

    fn kept(&mut self) -> Vec<String> {
        let files = saved(self.system, &mut self.session).unwrap();
        let keeps = files.into_iter().flat_map(|file| file.keeps);
        keeps.map(|(setting, value)| format!("{setting}={value}")).collect()
    }

    fn remove(&mut self) -> Vec<bool> {
        let removed = remove(self.system, &mut self.session).unwrap();
        removed.into_iter().map(|(_, removed)| removed.is_ok()).collect()
    }
}

fn parsed(assignments: &[(&str, &str)]) -> Vec<Assignment> {
    let one = |(setting, value): &(&str, &str)| (setting.parse().unwrap(), (*value).to_owned());
    assignments.iter().map(one).collect()
}

const THEIRS: &str = "hostname=\"b\"\nifconfig_em0=\"DHCP\"\nodd='\u{1b}\\n%s'";

#[test]
fn lines_of_ours_stand_behind_those_of_others_and_go_again() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        fs::write(scene.path("rc.conf"), THEIRS).unwrap();
        let files = scene.save(&[
            ("polling@em0", "on"),
            ("sysctl.kern.polling.burst_max", "1000"),
            ("link.mtu@em0", "9000"),
        ]);
        let paths: Vec<_> = files.unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, ["/etc/rc.conf", "/etc/sysctl.conf"]);
        let text = scene.text("rc.conf");
        assert!(text.starts_with(&format!("{THEIRS}\n{BEGIN}\n")), "{text}");
        for line in [
            "ifconfig_em0=\"${ifconfig_em0} polling\"",
            "ifconfig_em0=\"${ifconfig_em0} mtu 9000\"",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is not in {text}");
        }
        assert!(scene.text("sysctl.conf").contains("\nkern.polling.burst_max=1000\n"));
        assert_eq!(
            scene.kept(),
            ["polling@em0=on", "link.mtu@em0=9000", "sysctl.kern.polling.burst_max=1000"]
        );
        scene.save(&[("link.mtu@em0", "1500")]).unwrap();
        let text = scene.text("rc.conf");
        assert!(!text.contains("9000") && text.matches(BEGIN).count() == 1, "{text}");
        scene.save(&[("link.mtu@em0", "1500"), ("polling@em0", "on")]).unwrap();
        assert_eq!(scene.text("rc.conf"), text, "the same again changes nothing");
        assert_eq!(scene.remove(), [true, true]);
        assert_eq!(scene.text("rc.conf"), format!("{THEIRS}\n"));
        assert!(!scene.path("sysctl.conf").exists(), "it was made for goodput's lines alone");
        assert!(scene.kept().is_empty() && scene.remove().is_empty());
    });
}

#[test]
fn drafts_of_writers_that_are_gone_are_removed() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        // No process has so high a number (proc_sys_kernel(5), pid_max).
        let gone = "sysctl.conf.goodput.4194305";
        let others =
            [&*format!("sysctl.conf.goodput.{}", std::process::id()), "sysctl.conf.goodput.x"];
        let burst = [("sysctl.kern.polling.burst_max", "1000")];
        let mut leaves = |act: fn(&mut Scene, &[(&str, &str)])| {
            for name in others.iter().chain(&[gone]) {
                fs::write(scene.path(name), "a draft").unwrap();
            }
            act(&mut scene, &burst);
            assert!(others.iter().all(|name| scene.path(name).exists()));
            scene.path(gone).exists()
        };
        assert!(!leaves(|scene, burst| scene.rehearse(burst).unwrap()));
        assert!(!leaves(|scene, burst| drop(scene.save(burst).unwrap())));
        assert_eq!(scene.kept(), ["sysctl.kern.polling.burst_max=1000"]);
    });
}

#[test]
fn a_draft_where_a_folder_would_be_is_removed_too() {
    in_namespace(|| {
        let mut scene = Scene::new("Linux");
        let draft = scene.path("90-goodput.conf.goodput.4194305");
        fs::write(&draft, "a draft").unwrap();
        scene.rehearse(&[("sysctl.net.core.rmem_max", "4194304")]).unwrap();
        assert!(!draft.exists(), "there is no sysctl.d yet");
    });
}

#[test]
fn a_file_that_was_there_before_stays_even_if_it_is_empty() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        let burst = [("sysctl.kern.polling.burst_max", "1000")];
        fs::write(scene.path("sysctl.conf"), "").unwrap();
        let files = scene.save(&burst).unwrap();
        assert!(!files[0].whole);
        assert_eq!(scene.remove(), [true]);
        assert_eq!(scene.text("sysctl.conf"), "");
        fs::remove_file(scene.path("sysctl.conf")).unwrap();
        scene.save(&burst).unwrap();
        scene.save(&[("sysctl.kern.polling.burst_max", "900")]).unwrap();
        assert_eq!(scene.remove(), [true]);
        assert!(!scene.path("sysctl.conf").exists(), "goodput made it");
        scene.save(&burst).unwrap();
        let theirs = format!("{}kern.ipc.maxsockbuf=1\n", scene.text("sysctl.conf"));
        fs::write(scene.path("sysctl.conf"), theirs).unwrap();
        assert_eq!(scene.remove(), [true]);
        assert_eq!(scene.text("sysctl.conf"), "kern.ipc.maxsockbuf=1\n");
    });
}

#[test]
fn what_freebsd_reads_after_ours_is_seen() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        fs::create_dir_all(scene.path("rc.conf.d/network")).unwrap();
        fs::write(scene.path("rc.conf.local"), "ifconfig_em0=\"DHCP\"\nhostname=\"c\"\n").unwrap();
        fs::write(scene.path("rc.conf.d/network/em1"), "ifconfig_em1=\"up\"\n").unwrap();
        fs::write(scene.path("sysctl.conf.local"), "kern.polling.burst_max=150\n").unwrap();
        let files = scene.save(&[
            ("polling@em0", "on"),
            ("link.mtu@em1", "9000"),
            ("link.mtu@em2", "9000"),
            ("sysctl.kern.polling.burst_max", "1000"),
        ]);
        let overruled = files.unwrap().into_iter().flat_map(|file| file.overruled);
        let said: Vec<_> = overruled.map(|(setting, by)| format!("{setting} {by}")).collect();
        assert_eq!(
            said,
            [
                "polling@em0 /etc/rc.conf.local",
                "link.mtu@em1 /etc/rc.conf.d/network/em1",
                "sysctl.kern.polling.burst_max /etc/sysctl.conf.local",
            ]
        );
    });
}

#[test]
fn lines_that_someone_edited_stay() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        scene.save(&[("polling@em0", "on")]).unwrap();
        let whole = scene.text("rc.conf");
        for edited in [
            whole.replace("polling\"", "-polling\""),
            whole.replace(END, "# the end"),
            format!("{whole}{whole}"),
        ] {
            fs::write(scene.path("rc.conf"), &edited).unwrap();
            let refused = scene.save(&[("link.mtu@em0", "9000")]).unwrap_err().to_string();
            assert!(refused.contains("/etc/rc.conf") && refused.contains("edited"), "{refused}");
            assert_eq!(scene.remove(), [false]);
            assert_eq!(scene.text("rc.conf"), edited);
        }
    });
}

#[test]
fn nothing_of_someone_else_is_replaced() {
    in_namespace(|| {
        let mut scene = Scene::new("Linux");
        let sysctl = [("sysctl.net.core.rmem_max", "4194304")];
        let own = "sysctl.d/90-goodput.conf";
        scene.save(&sysctl).unwrap();
        assert!(scene.text(own).contains("net.core.rmem_max = 4194304"), "{}", scene.text(own));
        assert_eq!(scene.kept(), ["sysctl.net.core.rmem_max=4194304"]);
        assert_eq!(scene.remove(), [true]);
        assert!(!scene.path(own).exists());
        fs::write(scene.path(own), "net.core.rmem_max = 1\n").unwrap();
        let foreign = scene.save(&sysctl).unwrap_err().to_string();
        assert!(foreign.contains("is not goodput's"), "{foreign}");
        fs::remove_file(scene.path(own)).unwrap();
        std::os::unix::fs::symlink("/dev/null", scene.path(own)).unwrap();
        assert!(scene.save(&sysctl).unwrap_err().to_string().contains("link"));
        let elsewhere = scene.save(&[("link.mtu@v0", "9000")]).unwrap_err().to_string();
        assert!(elsewhere.contains("systemd does not run there"), "{elsewhere}");
    });
}

#[test]
fn what_comes_with_a_module_is_kept_as_an_option_of_the_module() {
    in_namespace(|| {
        let mut scene = Scene::new("Linux");
        let slots = ("sysctl.sunrpc.tcp_slot_table_entries", "16");
        let files = scene.save(&[("sysctl.net.core.rmem_max", "4194304"), slots]).unwrap();
        assert_eq!(files.len(), 2);
        let text = scene.text("modprobe.d/90-goodput.conf");
        assert!(text.ends_with("\noptions sunrpc tcp_slot_table_entries=16\n"), "{text}");
        assert_eq!(scene.remove(), [true, true]);
        assert!(scene.text("modprobe.d/90-goodput.conf").is_empty());
    });
}

#[test]
fn what_can_not_all_be_written_is_not_written_at_all() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        fs::write(scene.path("rc.conf"), THEIRS).unwrap();
        let mount = ": >/etc/sysctl.conf && mount --bind /etc/sysctl.conf /etc/sysctl.conf";
        scene.session.output(&Command::new("sh", ["-c", mount])).unwrap();
        let assignments = [("polling@em0", "on"), ("sysctl.kern.polling.burst_max", "1000")];
        assert!(scene.save(&assignments).is_err(), "a file that is mounted can't be replaced");
        assert_eq!(scene.text("rc.conf").trim_end(), THEIRS);
        let drafts = fs::read_dir(scene.path("")).unwrap().flatten();
        let drafts: Vec<_> =
            drafts.filter(|file| file.path().to_string_lossy().contains(".goodput.")).collect();
        assert!(drafts.is_empty(), "{drafts:?}");
    });
}

#[test]
fn what_is_taken_back_is_as_before_unless_someone_has_edited_it() {
    in_namespace(|| {
        let mut scene = Scene::new("FreeBSD");
        fs::write(scene.path("rc.conf"), THEIRS).unwrap();
        scene.save(&[("polling@em0", "off")]).unwrap();
        let before = scene.text("rc.conf");
        let Scene { system, ref mut session, .. } = scene;
        let more = parsed(&[("polling@em0", "on"), ("sysctl.kern.polling.burst_max", "1000")]);
        let writing = Writing::prepare(system, session, &more).unwrap();
        assert_eq!(writing.write(system, session, |_| Ok(())).unwrap().len(), 2);
        writing.take_back(system, session).unwrap();
        writing.take_back(system, session).unwrap();
        assert_eq!(scene.text("rc.conf"), before, "taken back twice is taken back once");
        assert!(!scene.path("sysctl.conf").exists(), "goodput had made it");
        let Scene { ref mut session, .. } = scene;
        writing.write(system, session, |_| Ok(())).unwrap();
        let edited = scene.text("rc.conf").replace("polling", "-polling");
        fs::write(scene.path("rc.conf"), &edited).unwrap();
        let Scene { ref mut session, .. } = scene;
        let refused = writing.take_back(system, session).unwrap_err();
        assert!(matches!(refused, RemoteError::LeftAlone { .. }), "{refused}");
        assert_eq!(scene.text("rc.conf"), edited);
        assert!(!scene.path("sysctl.conf").exists(), "the rest is taken back");
    });
}

#[test]
fn files_are_noted_before_they_are_written() {
    in_namespace(|| {
        let scene = Scene::new("Linux");
        let file = scene.path("sysctl.d/90-goodput.conf");
        let Scene { system, mut session, root } = scene;
        let assignments = parsed(&[("sysctl.net.ipv4.tcp_sack", "1")]);
        let writing = Writing::prepare(system, &mut session, &assignments).unwrap();
        let failed = writing.write(system, &mut session, |_| Err(RemoteError::Closed));
        assert!(failed.is_err() && !file.exists(), "what is not noted is not written");
        let note = |files: Vec<crate::written::WrittenThere>| {
            assert_eq!(files.len(), 1);
            assert!(!file.exists(), "it is noted first");
            Ok(())
        };
        assert_eq!(writing.write(system, &mut session, note).unwrap().len(), 1);
        assert!(file.exists());
        drop(root);
    });
}

#[test]
fn of_a_lost_connection_nothing_follows_about_files() {
    in_namespace(|| {
        let mut scene = Scene::new("Linux");
        let mut noted = Vec::new();
        let Scene { system, ref mut session, .. } = scene;
        let assignments = parsed(&[("sysctl.net.ipv4.tcp_sack", "1")]);
        let writing = Writing::prepare(system, session, &assignments).unwrap();
        let note = |files| {
            noted = files;
            Ok(())
        };
        assert_eq!(writing.write(system, session, note).unwrap().len(), 1);
        session.cut();
        assert!(system.keepers(session).is_err());
        let back = take_back(system, session, &noted);
        assert!(back.len() == 1 && !back[0].is_settled(), "{back:?}");
        assert!(scene.path("sysctl.d/90-goodput.conf").exists());
    });
}

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
