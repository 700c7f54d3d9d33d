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

    /// Changes that have switched polling on there, in a file as well.
    fn saved(&self) -> RemoteChanges {
        let words = self.userland.environment();
        let words = words.map(|(name, value)| format!("{name}='{}'", value.display()));
        let etc = self.folder.path().join("etc");
        let [home, path] = words;
        let script =
            format!("mount --bind '{}' /etc && exec env {home} {path} /bin/sh", etc.display());
        let login = move || Session::with_shell(["unshare", "--mount", "sh", "-c", &script]);
        let address = "ssh://b".parse().unwrap();
        let host = Host::through(Box::new(login), &address, &Access::default()).unwrap();
        let state = self.folder.path().join("state");
        let mut changes = RemoteChanges::at(host, &state, Vec::new()).unwrap();
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
