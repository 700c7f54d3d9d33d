//! Tests with this machine's shell, whose /etc is a folder of the test.

use std::fs;
use std::path::PathBuf;

use goodput_testing::in_namespace;

use super::*;
use crate::ssh::Session;
use crate::systems;

struct Scene {
    etc: tempfile::TempDir,
    session: Session,
    system: &'static dyn System,
}

impl Scene {
    fn new(system: &str) -> Self {
        let etc = tempfile::tempdir().unwrap();
        let script = format!("mount --bind '{}' /etc && exec sh", etc.path().display());
        let session = Session::with_shell(["unshare", "--mount", "sh", "-c", &script]).unwrap();
        let system = systems::ALL.iter().find(|known| known.name() == system).unwrap();
        Self { etc, session, system: *system }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.etc.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn save(&mut self, assignments: &[(&str, &str)]) -> Result<Vec<SavedThere>, RemoteError> {
        let assignments: Vec<_> = assignments
            .iter()
            .map(|(setting, value)| (setting.parse().unwrap(), (*value).to_owned()))
            .collect();
        save(self.system, &mut self.session, &assignments)
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
        let paths: Vec<_> = files.unwrap().iter().map(|file| file.path).collect();
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
        let elsewhere = scene.save(&[("link.mtu@eth0", "9000")]).unwrap_err().to_string();
        assert!(elsewhere.contains("90-goodput.conf"), "{elsewhere}");
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
        let drafts = fs::read_dir(scene.etc.path()).unwrap().flatten();
        let drafts: Vec<_> =
            drafts.filter(|file| file.path().to_string_lossy().contains(".goodput.")).collect();
        assert!(drafts.is_empty(), "{drafts:?}");
    });
}
