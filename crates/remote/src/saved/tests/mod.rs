//! Tests with this machine's shell, whose /etc is a folder of the test.

mod systemd;

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
            "ifconfig_em0=\"${ifconfig_em0-${ifconfig_DEFAULT}} polling\"",
            "ifconfig_em0=\"${ifconfig_em0-${ifconfig_DEFAULT}} mtu 9000\"",
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
