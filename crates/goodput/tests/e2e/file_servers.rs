//! Files at servers that are not goodput: nginx and vsftpd of Debian, each on a port of the test's own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use goodput_model::{Known, Record};
use goodput_testing::{skip, wait_for};

use crate::common::{Home, record, set_mode, stderr, stdout};

/// Length of the file, bytes.
const FILE_BYTES: usize = 3_000_000;
/// A password that must be nowhere.
pub const PASSWORD: &str = "n0bodys-business";

/// A program that ends with the test.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn has(program: &str) -> bool {
    let found = ["/usr/sbin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

pub fn start(program: &str, arguments: &[&str], port: u16) -> Running {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server can be started");
    let running = Running(child);
    wait_for(&format!("{program} to listen"), || TcpStream::connect(("127.0.0.1", port)).is_ok());
    running
}

/// What the file holds.
fn content() -> Vec<u8> {
    (0..FILE_BYTES).map(|at| (at * at / 251 % 256) as u8).collect()
}

/// A directory that only holds the file.
fn files(home: &Home) -> std::path::PathBuf {
    let directory = home.path().join("files");
    fs::create_dir(&directory).expect("the home is writable");
    fs::write(directory.join("file"), content()).expect("the home is writable");
    set_mode(&directory, 0o555);
    directory
}

pub fn certificate(home: &Home) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(home.path())
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl can be started").success());
}

/// nginx, and where it answers: plain, encrypted.
fn nginx(home: &Home) -> (Running, String, String) {
    let (plain, encrypted) = (free_port(), free_port());
    let files = files(home);
    certificate(home);
    let at = home.path().display();
    let files = files.display();
    home.file("users", &format!("me:{{PLAIN}}{PASSWORD}\n"));
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|of| format!("{of}_temp_path {at}/{of};"))
        .collect();
    let configuration = home.file(
        "nginx.conf",
        &format!(
            "daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/nginx.log;
             events {{}}
             http {{ access_log off; {temporary} server {{
                 listen 127.0.0.1:{plain}; listen 127.0.0.1:{encrypted} ssl; root {files};
                 ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem;
                 location /away {{ return 302 http://192.0.2.1/file; }}
                 location /private/ {{ auth_basic x; auth_basic_user_file {at}/users; alias {files}/; }}
             }} }}"
        ),
    );
    let configuration = configuration.display().to_string();
    let running = start("/usr/sbin/nginx", &["-c", &configuration], plain);
    (running, format!("http://127.0.0.1:{plain}"), format!("https://127.0.0.1:{encrypted}"))
}

fn test(home: &Home, target: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["test", target, "--json", "-n", "6000000"];
    arguments.extend(more);
    let mut command = home.goodput(&arguments);
    command.env("GOODPUT_FILE_PASSWORD", PASSWORD).env("HOME", home.path());
    command.output().expect("the program under test can be started")
}

fn check_fetches(record: &Record, version: &str) {
    let fetches = record.fetches.as_ref().expect("the target is a file");
    assert_eq!(fetches.version, Known::Value(version.into()));
    let first = fetches.first.value().expect("the file was fetched before");
    assert!(first.whole && first.bytes == FILE_BYTES as u64, "{fetches:?}");
    assert!(fetches.answers >= 2 && record.result.goodput_bits_per_s.0 > 0.0, "{fetches:?}");
}

#[test]
fn a_file_of_a_web_server_is_fetched_as_curl_does() {
    if !(has("nginx") && has("curl") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, encrypted) = nginx(&home);
    let url = format!("{plain}/file");
    let curl = Command::new("curl").args(["-s", &url]).output().expect("curl can be started");
    for (mover, flows) in [("discard", "1"), ("copy", "3")] {
        let output = test(&home, &url, &["--receive-mover", mover, "--flows", flows]);
        check_fetches(&record(&output), "HTTP/1.1");
    }
    let sink = home.path().join("sink");
    let output = test(&home, &url, &["--sink", &sink.display().to_string()]);
    check_fetches(&record(&output), "HTTP/1.1");
    let written = fs::read(&sink).expect("there is a sink");
    assert!(written[..FILE_BYTES] == curl.stdout && curl.stdout == content(), "what came differs");
    let refused = test(&home, &format!("{encrypted}/file"), &[]);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("--cacert"));
    let authority = home.path().join("cert.pem").display().to_string();
    let trusted = record(&test(&home, &format!("{encrypted}/file"), &["--cacert", &authority]));
    check_fetches(&trusted, "HTTP/1.1");
    assert!(trusted.fetches.is_some_and(|fetches| fetches.tls.is_some()));
}

#[test]
fn what_a_web_server_refuses_is_said_and_a_password_is_not() {
    if !(has("nginx") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, _) = nginx(&home);
    let cases = [("/none", 2, "404"), ("/away", 2, "--follow"), ("/private/file", 3, "401")];
    for (path, code, words) in cases {
        let output = test(&home, &format!("{plain}{path}"), &[]);
        let said = stderr(&output);
        assert!(output.status.code() == Some(code) && said.contains(words), "{path}: {said}");
    }
    let private = plain.replace("http://", "http://me@") + "/private/file";
    let output = test(&home, &private, &[]);
    check_fetches(&record(&output), "HTTP/1.1");
    // "me:n0bodys-business" as Basic has it (RFC 7617).
    for secret in [PASSWORD, "bWU6bjBib2R5cy1idXNpbmVzcw"] {
        assert!(!stdout(&output).contains(secret) && !stderr(&output).contains(secret));
    }
    let output = test(&home, &plain.replace("http://", "http://me:hunter2@"), &[]);
    assert!(!stderr(&output).contains("hunter2") && output.status.code() == Some(2));
}

#[test]
fn a_file_of_an_ftp_server_is_fetched_plain_and_encrypted() {
    if !(has("vsftpd") && has("openssl")) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("vsftpd needs root to let anyone in");
    }
    let home = Home::new();
    let (port, files) = (free_port(), files(&home));
    certificate(&home);
    let (at, files) = (home.path().display(), files.display());
    let configuration = home.file(
        "vsftpd.conf",
        &format!(
            "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\n\
             anon_root={files}\nlocal_enable=NO\nsecure_chroot_dir={at}/empty\nseccomp_sandbox=NO\n\
             ssl_enable=YES\nallow_anon_ssl=YES\nforce_local_data_ssl=NO\nforce_local_logins_ssl=NO\n\
             rsa_cert_file={at}/cert.pem\nrsa_private_key_file={at}/key.pem\nssl_ciphers=HIGH\n"
        ),
    );
    fs::create_dir(home.path().join("empty")).expect("the home is writable");
    let configuration = configuration.display().to_string();
    let _vsftpd = start("/usr/sbin/vsftpd", &[&configuration], port);
    let url = format!("ftp://127.0.0.1:{port}/file");
    check_fetches(&record(&test(&home, &url, &["--receive-mover", "discard"])), "FTP");
    let authority = home.path().join("cert.pem").display().to_string();
    let encrypted = url.replace("ftp://", "ftps://");
    let encrypted = record(&test(&home, &encrypted, &["--cacert", &authority]));
    check_fetches(&encrypted, "FTP");
    let none = test(&home, &format!("ftp://127.0.0.1:{port}/none"), &[]);
    assert!(none.status.code() == Some(2) && stderr(&none).contains("550"), "{}", stderr(&none));
}
