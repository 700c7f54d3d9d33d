//! What is kept stays with its files, and what is not kept goes with them.

use goodput_testing::FreeBsd;

use super::*;

#[test]
fn what_is_kept_stays() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        changes.keep().unwrap();
        assert_eq!(value(PARAMETER), OURS);
        assert!(journals(&folder).is_empty());
    });
}

/// A simulated FreeBSD whose /etc is a folder of the test.
struct Scene {
    folder: tempfile::TempDir,
    userland: FreeBsd,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["etc", "freebsd", "state"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let userland = FreeBsd::in_folder(&folder.path().join("freebsd"));
        Self { folder, userland }
    }

    fn host(&self) -> Host {
        let words = self.userland.environment();
        let words = words.map(|(name, value)| format!("{name}='{}'", value.display()));
        let etc = self.folder.path().join("etc");
        let [home, path] = words;
        let script =
            format!("mount --bind '{}' /etc && exec env {home} {path} /bin/sh", etc.display());
        let login = move || Session::with_shell(["unshare", "--mount", "sh", "-c", &script]);
        let address = "ssh://b".parse().unwrap();
        Host::through(Box::new(login), &address, &Access::default()).unwrap()
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Changes that have switched polling on there, in a file as well.
    fn saved(&self) -> RemoteChanges {
        let mut changes = RemoteChanges::at(self.host(), &self.state(), Vec::new()).unwrap();
        let polling = [(setting("polling@em0"), "on".to_owned())];
        changes.apply(&polling[0].0, "on").unwrap();
        assert_eq!(changes.save(&polling).unwrap().len(), 1);
        assert!(self.has_file());
        changes
    }

    fn has_file(&self) -> bool {
        self.folder.path().join("etc/rc.conf").exists()
    }
}

#[test]
fn files_of_changes_that_are_not_kept_go_with_them() {
    goodput_testing::in_namespace(|| {
        let scene = Scene::new();
        let before = scene.userland.settings();
        let is_as_before = || !scene.has_file() && scene.userland.settings() == before;

        let mut released = scene.saved();
        released.release().unwrap();
        assert!(released.restore().report.is_clean() && is_as_before());

        let mut lost = scene.saved();
        lost.host.session.cut();
        let why = lost.keep().unwrap_err();
        assert!(matches!(why, RemoteError::Lost { .. }), "{why}");
        assert!(is_as_before());

        scene.saved().keep().unwrap();
        assert!(scene.has_file() && scene.userland.settings() != before);
    });
}

/// The power failed here after a file was written there and before the run had kept it.
#[test]
fn the_journal_names_files_before_they_are_written_and_removes_them() {
    goodput_testing::in_namespace(|| {
        let scene = Scene::new();
        let before = scene.userland.settings();
        for has_put_back in [false, true] {
            let mut changes = scene.saved();
            match has_put_back {
                false => die(changes),
                true => {
                    changes.standby = None;
                    changes.host.session.cut();
                    wait_for("the host to put back", || scene.userland.settings() == before);
                }
            }
            assert!(scene.has_file(), "no dead-man knows of it");
            assert_eq!(crate::leftovers(&scene.state()).len(), 1);
            let reports = undo_at(&scene.state(), &mut scene.host());
            assert!(reports.len() == 1 && reports[0].report.is_clean(), "{reports:?}");
            assert!(reports[0].to_string().contains("/etc/rc.conf"), "{}", reports[0]);
            assert!(!scene.has_file() && scene.userland.settings() == before);
            assert_eq!(crate::leftovers(&scene.state()), []);
        }
    });
}

#[test]
fn lines_that_someone_has_edited_since_stay_and_are_said() {
    goodput_testing::in_namespace(|| {
        let scene = Scene::new();
        let mut changes = scene.saved();
        let file = scene.folder.path().join("etc/rc.conf");
        let theirs = std::fs::read_to_string(&file).unwrap().replace("polling", "-polling");
        std::fs::write(&file, &theirs).unwrap();
        let report = changes.restore();
        assert!(
            !report.report.is_clean() && report.not_back().contains("someone else"),
            "{report}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs);
    });
}
