//! Files on mounts, here on this machine's own file systems; the kernel's NFS client is tested under a second kernel.

use std::fs;

use goodput_model::{Fetch, Known, MountReach};

use crate::common::{Home, record, stderr};

/// Length of the file, bytes: no multiple of a page.
const FILE_BYTES: usize = 3_000_001;

fn file(home: &Home) -> String {
    let path = home.file("content", "");
    let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at * at / 251 % 256) as u8).collect();
    fs::write(&path, content).expect("the home is writable");
    path.display().to_string()
}

#[test]
fn a_local_file_is_read_in_passes_and_called_local() {
    let home = Home::new();
    let path = file(&home);
    for more in [&[][..], &["--page-cache", "--flows", "3"], &["--chunk", "5000"]] {
        let mut arguments = vec!["test", &path, "--json", "-n", "20000000"];
        arguments.extend(more);
        let output = home.goodput(&arguments).output().expect("it can be started");
        let record = record(&output);
        let (mount, fetches) = (record.mount.expect("a mount"), record.fetches.expect("passes"));
        assert_eq!(mount.reach, MountReach::Local);
        assert!(!mount.private && mount.calls.value().is_none(), "{mount:?}");
        let whole = |first: &Fetch| first.whole && first.bytes == FILE_BYTES as u64;
        assert!(fetches.first.value().is_some_and(whole), "{fetches:?}");
        assert!(fetches.answers >= 6, "{fetches:?}");
        assert_eq!(fetches.file_bytes, Known::Value(FILE_BYTES as u64));
        assert!(
            record.doubts.iter().any(|doubt| doubt.contains("no network")),
            "{:?}",
            record.doubts
        );
        assert!(record.result.goodput_bits_per_s.0 > 0.0);
        if more.contains(&"--page-cache") {
            assert!(!mount.direct);
        }
    }
}

#[test]
fn what_can_not_be_read_so_is_said_with_its_reason() {
    let home = Home::new();
    let path = file(&home);
    let empty = home.file("empty", "").display().to_string();
    let folder = home.path().display().to_string();
    let none = format!("{folder}/none");
    let says = |arguments: &[&str], words: &str| {
        let output = home.goodput(arguments).output().expect("it can be started");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    };
    says(&["test", &none], "No such file");
    says(&["test", &empty], "is empty");
    says(&["test", &folder], "no regular file");
    says(&["test", &path, "--udp"], "leave out --udp");
    says(&["test", &path, "--both"], "leave out --both");
    says(&["test", &path, "--mover", "splice"], "leave out --mover");
    says(&["test", &path, "--sndbuf", "64K"], "--sndbuf");
    says(&["test", &path, "--rsize", "64K"], "nfs.rsize is an option of NFS mounts");
    says(&["test", &path, "--slots", "4"], "nfs.slots is for targets that begin with nfs://");
    says(&["test", "file://nas/export/file"], "names another host");
}
