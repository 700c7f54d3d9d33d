//! Files of a real NFS server, from the command line: what it gives, what it refuses, and the exit codes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use goodput_testing::{in_namespace, skip, wait_for};

use crate::common::{Home, record, set_mode, stderr};

/// The servers, until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn export(id: u32, path: &Path, squash: &str, access: &str) -> String {
    format!(
        "EXPORT {{ Export_Id = {id}; Path = {path}; Pseudo = /{id}; Protocols = 3; Access_Type = {access}; \
         Squash = {squash}; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}\n",
        path = path.display()
    )
}

/// Writes the server's configuration.
fn configure(home: &Home, exports: &str) -> PathBuf {
    let core = "NFS_CORE_PARAM { Protocols = 3; NFS_Port = 22049; MNT_Port = 22050; Enable_NLM = false; \
                Enable_RQUOTA = false; }\n";
    home.file("ganesha.conf", &format!("{core}{exports}"))
}

/// The port mapper and nfs-ganesha. Both talk over a socket in `/run`, which is therefore their own; in a process
/// namespace, so that all of them end with the first.
fn start(home: &Home, exports: &str) -> Running {
    let configuration = configure(home, exports);
    let at = home.path().display();
    let script = format!(
        "mount -t tmpfs tmpfs /run && /usr/sbin/rpcbind && \
         exec /usr/bin/ganesha.nfsd -F -f {} -L {at}/ganesha.log -p {at}/ganesha.pid",
        configuration.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().expect("util-linux is there"))
}

fn test(home: &Home, place: &str, more: &[&str]) -> Output {
    run(home, place, &[&["-n", "1M"], more].concat())
}

fn run(home: &Home, place: &str, more: &[&str]) -> Output {
    let target = format!("nfs://127.0.0.1{}/{place}", home.path().display());
    home.run(&[&["test", &target, "--json", "--no-store"], more].concat())
}

/// Whether the servers are there; a word if they are not.
fn has_servers() -> bool {
    let there = |program: &str| Path::new(program).exists();
    let all = there("/usr/bin/ganesha.nfsd") && there("/usr/sbin/rpcbind");
    if !all {
        skip("nfs-ganesha, nfs-ganesha-vfs and rpcbind");
    }
    all
}

fn loopback_up() {
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    assert!(up.expect("ip is there").success());
}

/// The names in a folder of the home.
fn names(home: &Home, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(home.path().join(folder)).expect("the folder is there");
    entries.map(|entry| entry.expect("it is").file_name().to_string_lossy().into()).collect()
}

#[test]
fn an_nfs_server_takes_uploads_and_keeps_none() {
    if !has_servers() {
        return;
    }
    in_namespace(|| {
        loopback_up();
        let home = Home::new();
        let mut exports = String::new();
        for (id, name, squash, access) in
            [(1, "open", "None", "RW"), (2, "squashed", "All", "RW"), (3, "fixed", "None", "RO")]
        {
            let directory = home.path().join(name);
            fs::create_dir(&directory).expect("the home is writable");
            set_mode(&directory, 0o755);
            exports += &export(id, &directory, squash, access);
        }
        fs::write(home.path().join("open/file"), "x").expect("it is writable");
        let _servers = start(&home, &exports);
        let write = |place: &str, more: &[&str]| run(&home, place, &[&["--write"], more].concat());
        wait_for("ganesha", || write("open/", &["-n", "1M"]).status.success());
        for (more, bytes) in [
            (&["-n", "30000001"][..], 30_000_001),
            (&["-n", "7000000", "--wsize", "32K", "--slots", "1", "--flows", "2"], 7_000_000),
            (&["--size", "100001", "-n", "1000010"], 1_000_010),
        ] {
            let record = record(&write("open/file", more));
            let fetches = record.fetches.expect("the target is a file");
            assert!(fetches.confirmed_us.is_some() && fetches.rpcs.is_some(), "{fetches:?}");
            let last = record.ends.near.value().and_then(|near| near.samples.last());
            let last = last.expect("a sample");
            let taken: Option<u64> = last.flows.iter().map(|f| f.acked_payload_bytes).sum();
            assert_eq!((last.sent_bytes, taken), (bytes, Some(bytes)), "what the server said");
            assert_eq!(names(&home, "open"), ["file"]);
        }
        let timed = record(&write("open/", &["-t", "1"]));
        assert!(timed.result.goodput_bits_per_s.0 > 0.0);
        assert_eq!(names(&home, "open"), ["file"]);
        for (place, more, code, words) in [
            ("squashed/", &["-n", "1M"][..], 3, "CREATE: permission denied"),
            ("fixed/", &["-n", "1M"], 2, "read-only"),
            ("none/", &["-n", "1M"], 3, "exports no part"),
            ("open/", &["--rsize", "4K"], 2, "nfs.wsize"),
        ] {
            let output = write(place, more);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{place}: {said}");
            assert!(said.contains(words) && !said.contains("may be left"), "{place}: {said}");
            assert_eq!(names(&home, "state/uploads"), [""; 0], "{place}");
        }
        what_a_killed_upload_left_is_removed(&home);
    });
}

fn what_a_killed_upload_left_is_removed(home: &Home) {
    let target = format!("nfs://127.0.0.1{}/open/", home.path().display());
    let mut command = home.goodput(&["test", &target, "--write", "--json", "-t", "100"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program under test can be started");
    wait_for("an upload", || {
        let files = fs::read_dir(home.path().join("open")).expect("it is there").flatten();
        files.filter_map(|file| file.metadata().ok()).any(|file| file.len() > 1_000_000)
    });
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(names(home, "open").len(), 2, "nobody removed it");
    let record = record(&test(home, "open/", &["--write"]));
    let said = record.doubts.iter().any(|doubt| doubt.starts_with("removed nfs://127.0.0.1"));
    assert!(said, "{:?}", record.doubts);
    assert_eq!(names(home, "open"), ["file"]);
    assert_eq!(names(home, "state/uploads"), [""; 0]);
}

#[test]
fn what_an_nfs_server_gives_and_refuses_is_reported_by_the_exit_code() {
    if !has_servers() {
        return;
    }
    in_namespace(|| {
        loopback_up();
        let home = Home::new();
        for name in ["open", "squashed"] {
            let directory = home.path().join(name);
            fs::create_dir(&directory).expect("the home is writable");
            set_mode(&directory, 0o755);
            fs::write(directory.join("file"), vec![7; 3_000_001]).expect("it is writable");
        }
        let secret = home.path().join("squashed/file");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("it is our own");
        let open = export(1, &home.path().join("open"), "None", "RO");
        let squashed = export(2, &home.path().join("squashed"), "All", "RO");
        let _servers = start(&home, &(open + &squashed));
        wait_for("ganesha", || test(&home, "open/file", &[]).status.success());
        let read = record(&test(&home, "open/file", &[]));
        assert!(read.result.goodput_bits_per_s.0 > 0.0);
        let near = read.ends.near.value().expect("it is observed");
        assert_eq!(near.samples.last().map(|last| last.received_bytes), Some(1 << 20));
        for (place, more, code, words) in [
            ("open/none", &[][..], 2, "no such file"),
            ("none/file", &[], 3, "exports no part"),
            ("squashed/file", &[], 3, "permission denied; goodput asks as user"),
            ("open/file", &["--receive-mover", "discard"], 2, "mover discard can't receive"),
        ] {
            let output = test(&home, place, more);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{place}: {said}");
            assert!(said.contains(words), "{place}: {said}");
        }
    });
}

/// Process id of the server that `unshare` has started.
fn server_pid(servers: &Running) -> Option<String> {
    let pid = servers.0.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next().map(Into::into)
}

#[test]
fn an_export_that_goes_away_makes_the_handle_stale() {
    if !has_servers() {
        return;
    }
    in_namespace(|| {
        loopback_up();
        let home = Home::new();
        let mut exports = Vec::new();
        for (id, name) in [(1, "stays"), (2, "goes")] {
            let directory = home.path().join(name);
            fs::create_dir(&directory).expect("the home is writable");
            fs::write(directory.join("file"), vec![7; 3_000_001]).expect("it is writable");
            exports.push(export(id, &directory, "None", "RO"));
        }
        let servers = start(&home, &exports.concat());
        wait_for("ganesha", || test(&home, "goes/file", &[]).status.success());
        let target = format!("nfs://127.0.0.1{}/goes/file", home.path().display());
        let log = home.path().join("progress");
        let mut command = home.goodput(&["test", &target, "--no-store", "-t", "100"]);
        command.stdout(fs::File::create(&log).expect("the home is writable"));
        let child = command.stderr(Stdio::piped()).spawn();
        let child = child.expect("the program under test can be started");
        wait_for("payload", || fs::read_to_string(&log).is_ok_and(|text| text.contains("bit/s")));
        configure(&home, &exports[0]);
        let pid = server_pid(&servers).expect("the server runs");
        let reloaded = Command::new("kill").args(["-HUP", &pid]).status();
        assert!(reloaded.expect("kill is there").success());
        let output = child.wait_with_output().expect("it ends");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("READ: the file handle is stale"), "{said}");
        assert!(test(&home, "stays/file", &[]).status.success(), "only one export went");
    });
}
