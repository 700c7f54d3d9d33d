//! Files on mounts, here on this machine's own file systems; the kernel's NFS client is tested under a second kernel.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use goodput_model::{EndName, Fetch, Known, MountReach};
use goodput_testing::wait_for;

use crate::common::{Home, record, stderr, stdout};

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
    says(&["test", &folder], "not a regular file");
    says(&["test", &path, "--udp"], "leave out --udp");
    says(&["test", &path, "--both"], "leave out --both");
    says(&["test", &path, "--mover", "splice"], "leave out --mover");
    says(&["test", &path, "--sndbuf", "64K"], "--sndbuf");
    says(&["test", &path, "--rsize", "64K"], "nfs.rsize is an option of NFS mounts");
    let compared = home.run(&["compare", &path, "nfs.rsize=64K,1M"]);
    let said = stderr(&compared) + &stdout(&compared);
    assert_eq!(compared.status.code(), Some(2), "{said}");
    assert!(
        said.matches("(warm-up)").count() == 0 && said.matches(" failed ").count() <= 1,
        "{said}"
    );
    says(&["test", &path, "--slots", "4"], "nfs.slots is for targets that begin with nfs://");
    says(&["test", "file://nas/export/file"], "names another host");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it is").file_name().to_string_lossy().into()).collect()
}

#[test]
fn files_are_written_and_none_is_kept() {
    let home = Home::new();
    let folder = home.path().join("folder");
    fs::create_dir(&folder).expect("the home is writable");
    fs::write(folder.join("file"), "content").expect("it is writable");
    for (name, more) in [
        ("folder", &[][..]),
        ("folder/", &["--page-cache", "--flows", "2"]),
        ("folder/file", &["--chunk", "5000"]),
        ("folder/none", &["--flows", "3"]),
    ] {
        let target = format!("{}/{name}", home.path().display());
        let arguments = ["test", &target, "--write", "--json", "-n", "20000000"];
        let record = record(&home.run(&[&arguments[..], more].concat()));
        let mount = record.mount.expect("a mount");
        assert_eq!(mount.reach, MountReach::Local);
        let direction = &record.result.directions[0];
        assert_eq!((direction.sender, direction.counted_by), (EndName::Near, Some(EndName::Near)));
        let near = record.ends.near.value().expect("this end");
        let last = near.samples.last().expect("a sample");
        let taken: Option<u64> = last.flows.iter().map(|flow| flow.acked_payload_bytes).sum();
        assert_eq!(taken, Some(last.sent_bytes), "all of it is on the disk");
        assert!(last.sent_bytes >= 20_000_000 && record.result.goodput_bits_per_s.0 > 0.0);
        assert_eq!(names(&folder), ["file"]);
        assert_eq!(fs::read(folder.join("file")).expect("it is there"), b"content");
        assert!(names(&home.path().join("state/uploads")).is_empty());
    }
}

#[test]
fn what_a_killed_writer_left_is_removed() {
    let home = Home::new();
    let folder = home.path().join("folder");
    fs::create_dir(&folder).expect("the home is writable");
    let target = folder.display().to_string();
    let killed = || {
        let mut command = home.goodput(&["test", &target, "--write", "-t", "100"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it can be started");
        wait_for("a file", || !names(&folder).is_empty());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(names(&folder).len(), 1, "nobody removed it");
    };
    killed();
    let record = record(&home.run(&["test", &target, "--write", "--json", "-n", "1M"]));
    assert!(record.doubts.iter().any(|said| said.starts_with("removed /")), "{:?}", record.doubts);
    assert!(names(&folder).is_empty());
    killed();
    let output = home.run(&["settings", "undo"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(names(&folder).is_empty() && names(&home.path().join("state/uploads")).is_empty());
}

#[test]
fn where_nothing_can_be_written_is_said() {
    let home = Home::new();
    let output = home.run(&["test", "/proc/", "--write", "-n", "1M"]);
    let said = stderr(&output);
    assert!(matches!(output.status.code(), Some(2 | 3)), "{said}");
    assert!(said.contains("can't write /proc/.goodput-write-"), "{said}");
    assert!(names(&home.path().join("state/uploads")).is_empty());
}
