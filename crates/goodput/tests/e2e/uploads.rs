//! Uploads to servers that are not goodput, and that nothing of them stays there after any kind of end.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use goodput_model::{EndName, Known, Record};
use goodput_testing::servers::{self, Nginx, Running, has, vsftpd};
use goodput_testing::{skip, wait_for};

use crate::common::{Home, record, set_mode, stderr, stdout};
use crate::file_servers::PASSWORD;

/// A server with a folder that takes uploads.
struct Server {
    _running: Running,
    /// Its URL by scheme, up to the folder.
    plain: String,
    encrypted: String,
    /// The folder.
    folder: PathBuf,
}

impl Server {
    /// The names in the folder.
    fn names(&self) -> Vec<String> {
        names(&self.folder)
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it is").file_name().to_string_lossy().into()).collect()
}

/// nginx with WebDAV: `/` takes and removes files, `/none/` takes none, `/mine/` wants a login, `/stays/` removes none,
/// `/short/` takes short ones.
fn nginx(home: &Home) -> Option<Server> {
    if !(has("nginx") && has("openssl")) {
        return None;
    }
    let folder = home.path().join("folder");
    fs::create_dir(&folder).expect("the home is writable");
    set_mode(&folder, 0o777);
    let (at, root) = (home.path().display(), folder.display());
    home.file("users", &format!("me:{{PLAIN}}{PASSWORD}\n"));
    let more = format!(
        "location / {{ dav_methods PUT DELETE; }}
         location /none/ {{ alias {root}/; }}
         location /mine/ {{ dav_methods PUT DELETE; auth_basic x; auth_basic_user_file {at}/users; alias {root}/; }}
         location /stays/ {{ dav_methods PUT; alias {root}/; }}
         location /short/ {{ dav_methods PUT DELETE; client_max_body_size 1000; alias {root}/; }}"
    );
    let Nginx { running, plain, encrypted } = servers::nginx(home.path(), &folder, false, &more);
    let at = |scheme: &str, port| format!("{scheme}://127.0.0.1:{port}/");
    let (plain, encrypted) = (at("http", plain), at("https", encrypted));
    Some(Server { _running: running, plain, encrypted, folder })
}

fn upload(home: &Home, target: &str, more: &[&str]) -> Command {
    let mut command = home.goodput(&["test", target, "--write", "--json"]);
    command.args(more).env("HOME", home.path());
    command
}

fn run(home: &Home, target: &str, more: &[&str]) -> Output {
    upload(home, target, more).output().expect("the program under test can be started")
}

fn check(record: &Record, version: &str, bytes: u64) {
    let fetches = record.fetches.as_ref().expect("the target is a file");
    assert_eq!(fetches.version, Known::Value(version.into()));
    assert!(fetches.confirmed_us.is_some(), "{fetches:?}");
    let direction = &record.result.directions[0];
    assert_eq!((direction.sender, direction.counted_by), (EndName::Near, Some(EndName::Near)));
    let last = record.ends.near.value().and_then(|near| near.samples.last()).expect("a sample");
    assert_eq!(last.sent_bytes, bytes);
    let acked: Option<u64> = last.flows.iter().map(|flow| flow.acked_payload_bytes).sum();
    assert_eq!(acked, Some(bytes), "what was stored was acknowledged, and no word beside it");
}

#[test]
fn a_web_server_takes_uploads_and_keeps_none() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    let authority = home.path().join("cert.pem").display().to_string();
    let mut asked = Vec::new();
    // Each takes longer than a busy host keeps the sampler waiting.
    for more in [
        &["-n", "300000000"][..],
        &["-n", "300000000", "--flows", "3", "--mover", "sendfile"],
        &["--size", "1000", "-n", "150000", "--mover", "splice"],
    ] {
        let record = record(&run(&home, &server.plain, more));
        let bytes = more.iter().filter_map(|word| word.parse().ok()).filter(|n| *n > 10_000);
        check(&record, "HTTP/1.1", bytes.max().expect("there is one"));
        if more.contains(&"1000") {
            // A header in a segment of its own would keep the payload waiting until it is acknowledged.
            let near = record.ends.near.value().expect("it is observed");
            let sent =
                near.samples.last().and_then(|last| last.flows[0].tcp.value()?.data_segs_out);
            assert!(sent.is_none_or(|segments| segments < 200), "150 uploads took {sent:?}");
        }
        asked.extend(record.fetches.and_then(|fetches| fetches.first_byte_us.value().copied()));
        assert!(server.names().is_empty(), "{:?}", server.names());
    }
    assert!(
        asked.len() == 3 && asked.iter().all(|us| *us > 0.0),
        "of first bodies only: {asked:?}"
    );
    let encrypted = run(&home, &server.encrypted, &["--cacert", &authority, "-n", "70000000"]);
    let encrypted = record(&encrypted);
    check(&encrypted, "HTTP/1.1", 70_000_000);
    assert!(encrypted.fetches.is_some_and(|fetches| fetches.tls.is_some()));
    // Beside a file, by time: the last upload is cut off.
    let timed = record(&run(&home, &(server.plain.clone() + "file?x"), &["-t", "1"]));
    assert!(timed.result.goodput_bits_per_s.0 > 0.0, "{timed:?}");
    assert!(server.names().is_empty(), "{:?}", server.names());
    assert!(names(&home.path().join("state/uploads")).is_empty());
}

#[test]
fn what_a_web_server_refuses_to_take_is_said() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    for (folder, code, words) in [
        ("none/", 2, "405"),
        ("mine/", 3, "401"),
        ("short/", 2, "--size"),
        ("no/such/", 2, "slash"),
    ] {
        let output = run(&home, &(server.plain.clone() + folder), &["-n", "2000000"]);
        let said = stderr(&output);
        assert!(output.status.code() == Some(code) && said.contains(words), "{folder}: {said}");
        assert!(server.names().is_empty(), "{folder}: {:?}", server.names());
        let noted = names(&home.path().join("state/uploads"));
        assert!(noted.is_empty(), "{folder}: what was refused needs no removal: {noted:?}");
    }
    let mine = server.plain.replace("http://", "http://me@") + "mine/";
    let output = upload(&home, &mine, &["-n", "2000000"])
        .env("GOODPUT_FILE_PASSWORD", PASSWORD)
        .output()
        .expect("the program under test can be started");
    check(&record(&output), "HTTP/1.1", 2_000_000);
    assert!(!stdout(&output).contains(PASSWORD) && !stderr(&output).contains(PASSWORD));
}

#[test]
fn a_server_that_removes_nothing_gets_one_byte_and_is_named_until_it_is_forgotten() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    let output = run(&home, &(server.plain.clone() + "stays/"), &["-n", "2000000"]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("can't be removed"));
    assert_eq!(server.names().len(), 1);
    let undo = |more: &[&str]| {
        let mut command = home.goodput(&["settings", "undo"]);
        command.args(more).env("HOME", home.path()).output().expect("it can be started")
    };
    let kept = undo(&[]);
    assert!(kept.status.code() == Some(2) && stderr(&kept).contains("stays/.goodput-write-"));
    assert_eq!(undo(&["--forget"]).status.code(), Some(0));
    assert_eq!(undo(&[]).status.code(), Some(0));
}

/// An upload that goes on until it is ended, once the server has a file of it.
fn long_upload(home: &Home, server: &Server) -> Child {
    long_upload_to(home, server, &server.plain, &[])
}

fn long_upload_to(home: &Home, server: &Server, url: &str, more: &[&str]) -> Child {
    let mut command = upload(home, url, &["-t", "100", "--size", "100000"]);
    command.args(more);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program under test can be started");
    let stored = || {
        let entries = fs::read_dir(&server.folder).expect("it is there").flatten();
        entries.filter_map(|entry| entry.metadata().ok()).any(|file| file.len() == 100_000)
    };
    wait_for("an upload", stored);
    child
}

#[test]
fn an_upload_that_is_interrupted_leaves_nothing() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    let child = long_upload(&home, &server);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert!(stderr(&output).is_empty() || !stderr(&output).contains("may be left"));
    assert!(server.names().is_empty(), "{:?}", server.names());
}

#[test]
fn a_server_that_goes_away_keeps_the_note() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    let child = long_upload(&home, &server);
    let Server { _running: running, folder, .. } = server;
    drop(running);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("may be left there") && !names(&folder).is_empty(), "{said}");
    assert_eq!(names(&home.path().join("state/uploads")).len(), 1);
}

#[test]
fn what_a_killed_upload_left_the_next_run_removes() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    let killed = |home: &Home| {
        let mut child = long_upload(home, &server);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(server.names().len(), 1, "nobody removed it");
    };
    killed(&home);
    let record = record(&run(&home, &server.plain, &["-n", "1000000"]));
    let said = record.doubts.iter().any(|doubt| doubt.starts_with("removed http://127.0.0.1:"));
    assert!(said && server.names().is_empty(), "{:?} {:?}", record.doubts, server.names());
    killed(&home);
    let mut undo = home.goodput(&["settings", "undo"]);
    let output = undo.env("HOME", home.path()).output().expect("it can be started");
    let said = stdout(&output);
    assert!(output.status.success() && said.contains("removed http://127.0.0.1:"), "{said}");
    assert!(server.names().is_empty(), "{:?}", server.names());
}

#[test]
fn what_was_stored_at_a_server_that_was_met_specially_is_removed_without_saying_how() {
    let home = Home::new();
    let Some(server) = nginx(&home) else { return };
    // No resolver knows this name (RFC 6761), and no authority that the system trusts has signed the certificate.
    let url = server.encrypted.replace("127.0.0.1", "nas.invalid");
    let resolve =
        url.trim_start_matches("https://").trim_end_matches('/').to_owned() + ":127.0.0.1";
    let mut child = long_upload_to(&home, &server, &url, &["--insecure", "--resolve", &resolve]);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(server.names().len(), 1, "nobody removed it");
    let mut undo = home.goodput(&["settings", "undo"]);
    let output = undo.env("HOME", home.path()).output().expect("it can be started");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(server.names().is_empty(), "{:?}", server.names());
}

#[test]
fn an_ftp_server_takes_uploads_plain_and_encrypted_and_keeps_none() {
    if !(has("vsftpd") && has("openssl")) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("vsftpd needs root to let anyone in");
    }
    let home = Home::new();
    let root = home.path().join("root");
    let folder = root.join("in");
    fs::create_dir_all(&folder).expect("the home is writable");
    set_mode(&folder, 0o777);
    set_mode(&root, 0o555);
    let takes = "write_enable=YES\nanon_upload_enable=YES\nanon_other_write_enable=YES\n";
    let (_vsftpd, port) = vsftpd(home.path(), &root, Ipv4Addr::LOCALHOST.into(), takes);
    let url = format!("ftp://127.0.0.1:{port}/in/");
    for (mover, bytes) in [("copy", 150_000_000), ("zerocopy", 70_000_000)] {
        let output = run(&home, &url, &["-n", &bytes.to_string(), "--mover", mover]);
        check(&record(&output), "FTP", bytes);
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    }
    let authority = home.path().join("cert.pem").display().to_string();
    let encrypted = url.replace("ftp://", "ftps://");
    let encrypted = run(&home, &encrypted, &["--cacert", &authority, "-n", "70000000"]);
    check(&record(&encrypted), "FTP", 70_000_000);
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    let refused = run(&home, &format!("ftp://127.0.0.1:{port}/"), &["-n", "1000000"]);
    assert!(matches!(refused.status.code(), Some(2 | 3)), "{}", stderr(&refused));
    assert!(names(&home.path().join("state/uploads")).is_empty(), "what was refused is not there");
}

#[test]
fn the_password_of_the_environment_goes_to_no_noted_server() {
    let home = Home::new();
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = server.local_addr().expect("it is bound");
    let asked = std::thread::spawn(move || {
        let mut request = Vec::new();
        let (mut client, _) = server.accept().expect("it is asked");
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|n| n == 1) {
            request.push(byte[0]);
        }
        let _ = client.write_all(b"HTTP/1.1 401 Who?\r\nContent-Length: 0\r\n\r\n");
        String::from_utf8_lossy(&request).to_ascii_lowercase()
    });
    fs::create_dir_all(home.path().join("state/uploads")).expect("the home is writable");
    set_mode(&home.path().join("state"), 0o700);
    set_mode(&home.path().join("state/uploads"), 0o700);
    home.file("state/uploads/1.upload", &format!("http://me@{address}/.goodput-write-1-0\n"));
    let mut undo = home.goodput(&["settings", "undo"]);
    undo.env("HOME", home.path()).env("GOODPUT_FILE_PASSWORD", PASSWORD);
    let output = undo.output().expect("it can be started");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let request = asked.join().expect("it was asked");
    assert!(request.starts_with("delete ") && !request.contains("authorization"), "{request}");
}
