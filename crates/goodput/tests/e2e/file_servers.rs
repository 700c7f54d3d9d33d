//! Files at servers that are not goodput: nginx and vsftpd of Debian, each on a port of the test's own.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::process::{Command, Output};

use goodput_model::{Known, Record};
use goodput_testing::servers::{self, Nginx, Running, has, has_v6, vsftpd};
use goodput_testing::skip;

use crate::common::{Home, record, set_mode, stderr, stdout};

/// Length of the file, bytes.
const FILE_BYTES: usize = 3_000_000;
/// How much of it is fetched, bytes.
const ASKED_BYTES: u64 = 6_000_000;
/// A password that must be nowhere.
pub const PASSWORD: &str = "n0bodys-business";

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

/// nginx, and where it answers: plain, encrypted.
fn nginx(home: &Home) -> (Running, String, String) {
    nginx_with(home, false)
}

fn nginx_with(home: &Home, is_authority: bool) -> (Running, String, String) {
    let files = files(home);
    let at = home.path().display();
    home.file("users", &format!("me:{{PLAIN}}{PASSWORD}\n"));
    let more = format!(
        "location /away {{ return 302 http://192.0.2.1/file; }}
         location /private/ {{ auth_basic x; auth_basic_user_file {at}/users; alias {}/; }}",
        files.display()
    );
    let Nginx { running, plain, encrypted } =
        servers::nginx(home.path(), &files, is_authority, &more);
    (running, format!("http://127.0.0.1:{plain}"), format!("https://127.0.0.1:{encrypted}"))
}

fn test(home: &Home, target: &str, more: &[&str]) -> Output {
    let bytes = ASKED_BYTES.to_string();
    let mut arguments = vec!["test", target, "--json", "-n", &bytes];
    arguments.extend(more);
    let mut command = home.goodput(&arguments);
    command.env("GOODPUT_FILE_PASSWORD", PASSWORD).env("HOME", home.path());
    command.output().expect("the program under test can be started")
}

fn check_fetches(record: &Record, version: &str) {
    let fetches = record.fetches.as_ref().expect("the target is a file");
    assert_eq!(fetches.version, Known::Value(version.into()));
    let first = fetches.first.value().expect("the file was fetched before");
    let share = ASKED_BYTES / u64::from(record.plan.flows);
    assert!(first.whole && first.bytes == share.min(FILE_BYTES as u64), "{fetches:?}");
    assert!(fetches.answers >= 2 && record.result.goodput_bits_per_s.0 > 0.0, "{fetches:?}");
    assert_eq!(received(record), ASKED_BYTES, "what was asked for is what is taken");
}

/// Payload that came, bytes.
fn received(record: &Record) -> u64 {
    let near = record.ends.near.value().expect("it is observed");
    near.samples.last().expect("there are samples").received_bytes
}

#[test]
fn no_more_of_a_long_file_is_taken_than_was_asked_for() {
    if !(has("nginx") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, encrypted) = nginx(&home);
    for url in [plain, encrypted] {
        let url = format!("{url}/file");
        for mover in
            ["copy", "discard"].iter().filter(|mover| **mover == "copy" || url.starts_with("http:"))
        {
            let arguments = ["test", &url, "--json", "--insecure", "-n", "100001", "--flows", "2"];
            let record = record(&home.run(&[&arguments[..], &["--receive-mover", mover]].concat()));
            let fetches = record.fetches.as_ref().expect("the target is a file");
            assert_eq!(fetches.file_bytes, Known::Value(FILE_BYTES as u64), "{fetches:?}");
            let first = fetches.first.value().expect("it was fetched before");
            assert!(first.whole && first.bytes == 50_001, "{fetches:?}");
            assert_eq!((received(&record), fetches.answers), (100_001, 2));
        }
    }
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
fn a_server_that_is_its_own_authority_is_trusted_if_its_certificate_is_named() {
    if !(has("nginx") && has("curl") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, _, encrypted) = nginx_with(&home, true);
    let url = format!("{encrypted}/file");
    let authority = home.path().join("cert.pem").display().to_string();
    let mut curl = Command::new("curl");
    curl.args(["-s", "-o", "/dev/null", "--cacert", &authority, &url]);
    assert!(curl.status().is_ok_and(|status| status.success()), "curl trusts it");
    check_fetches(&record(&test(&home, &url, &["--cacert", &authority])), "HTTP/1.1");
    let named = url.replace("127.0.0.1", "localhost");
    let resolve =
        format!("{}:127.0.0.1", named.trim_start_matches("https://").replace("/file", ""));
    let options = ["--cacert", &authority, "--resolve", &resolve];
    let other_name = test(&home, &named, &options);
    assert!(other_name.status.code() == Some(2), "{}", stderr(&other_name));
    let blind = test(&home, &url, &["--cacert", &authority, "--receive-mover", "discard"]);
    let said = stderr(&blind);
    assert!(blind.status.code() == Some(2) && said.contains("discard can't receive"), "{said}");
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
    let files = files(&home);
    if has_v6() {
        let (_vsftpd, port) = vsftpd(home.path(), &files, Ipv6Addr::LOCALHOST.into(), "");
        let fetched = record(&test(&home, &format!("ftp://[::1]:{port}/file"), &[]));
        check_fetches(&fetched, "FTP");
    }
    let (_vsftpd, port) = vsftpd(home.path(), &files, Ipv4Addr::LOCALHOST.into(), "");
    let url = format!("ftp://127.0.0.1:{port}/file");
    check_fetches(&record(&test(&home, &url, &["--receive-mover", "discard"])), "FTP");
    let authority = home.path().join("cert.pem").display().to_string();
    let encrypted = url.replace("ftp://", "ftps://");
    let encrypted = record(&test(&home, &encrypted, &["--cacert", &authority]));
    check_fetches(&encrypted, "FTP");
    let none = test(&home, &format!("ftp://127.0.0.1:{port}/none"), &[]);
    assert!(none.status.code() == Some(2) && stderr(&none).contains("550"), "{}", stderr(&none));
}

/// The port of a URL that ends with one.
fn port_of(url: &str) -> u16 {
    url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("there is a port")
}

#[test]
fn a_server_is_reached_over_ipv6_and_where_the_user_says() {
    if !(has("nginx") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, encrypted) = nginx(&home);
    let port = port_of(&plain);
    if has_v6() {
        let v6 = record(&test(&home, &format!("http://[::1]:{port}/file"), &[]));
        check_fetches(&v6, "HTTP/1.1");
        assert!(v6.connections.iter().all(|connection| connection.remote.is_ipv6()));
    }
    // No resolver knows this name (RFC 6761).
    let named = format!("http://nas.invalid:{port}/file");
    let resolve = format!("nas.invalid:{port}:127.0.0.1");
    check_fetches(&record(&test(&home, &named, &["--resolve", &resolve])), "HTTP/1.1");
    let unknown = test(&home, &named, &[]);
    assert!(unknown.status.code() == Some(2) && stderr(&unknown).contains("nas.invalid"));
    // The certificate is for the address, so the name shows that it was checked.
    let port = port_of(&encrypted);
    let resolve = format!("nas.invalid:{port}:127.0.0.1");
    let authority = home.path().join("cert.pem").display().to_string();
    let named = format!("https://nas.invalid:{port}/file");
    let refused = test(&home, &named, &["--resolve", &resolve, "--cacert", &authority]);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("--insecure"));
    check_fetches(
        &record(&test(&home, &named, &["--resolve", &resolve, "--insecure"])),
        "HTTP/1.1",
    );
}

#[test]
fn a_number_of_fetches_is_kept_to() {
    if !(has("nginx") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, _) = nginx(&home);
    let url = format!("{plain}/file");
    let arguments = ["test", &url, "--json", "--fetches", "3", "--flows", "2"];
    let record = record(&home.run(&arguments));
    let fetches = record.fetches.as_ref().expect("the target is a file");
    assert_eq!(fetches.answers, 6, "{fetches:?}");
    assert_eq!(received(&record), 6 * FILE_BYTES as u64);
}

#[test]
fn files_of_every_length_are_fetched_in_bounded_memory() {
    if !(has("nginx") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, _) = nginx(&home);
    let files = home.path().join("files");
    set_mode(&files, 0o755);
    for (name, bytes) in [("empty", 0), ("one", 1), ("large", 1 << 30)] {
        let file = fs::File::create(files.join(name)).expect("it is writable");
        // Without blocks on the disk.
        file.set_len(bytes).expect("it is writable");
    }
    let empty = test(&home, &format!("{plain}/empty"), &[]);
    assert!(empty.status.code() == Some(2) && stderr(&empty).contains("the file is empty"));
    let url = format!("{plain}/one");
    let one = record(&home.run(&["test", &url, "--json", "--fetches", "2000"]));
    let fetches = one.fetches.as_ref().expect("the target is a file");
    assert_eq!((fetches.answers, &fetches.file_bytes), (2000, &Known::Value(1)));
    let url = format!("{plain}/large");
    let arguments = ["test", &url, "--json", "--fetches", "1", "--receive-mover", "discard"];
    // 256 MiB of address space beside what threads and libraries reserve hold no file of 1 GiB.
    let mut bounded = home.goodput(&arguments);
    limit_data(&mut bounded, 256 << 20);
    let large = record(&bounded.output().expect("the program under test can be started"));
    assert_eq!(received(&large), 1 << 30);
}

/// Lets a program have no more writable memory (`RLIMIT_DATA`).
fn limit_data(command: &mut Command, bytes: u64) {
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let variables: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    let mut limited = Command::new("prlimit");
    limited.arg(format!("--data={bytes}")).arg("--").arg(program).args(arguments);
    for (name, value) in variables {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    *command = limited;
}

/// A proxy that forwards and opens tunnels; says what the first line of each question and its login were.
fn proxy() -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (say, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let say = say.clone();
            std::thread::spawn(move || forward(client, &say));
        }
    });
    (port, said)
}

/// Answers one client until it or the server has enough.
fn forward(mut client: TcpStream, say: &std::sync::mpsc::Sender<String>) -> Option<()> {
    let mut server: Option<TcpStream> = None;
    loop {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).ok()?;
            header.extend(byte);
        }
        let header = String::from_utf8(header).ok()?;
        let (first, rest) = header.split_once("\r\n")?;
        let login =
            rest.lines().find(|line| line.to_lowercase().starts_with("proxy-authorization"));
        let _ = say.send(format!("{first} {}", login.unwrap_or("without a login")));
        let mut words = first.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        if method == "CONNECT" {
            let mut server = TcpStream::connect(target).ok()?;
            client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").ok()?;
            let (mut up, mut down) = (client.try_clone().ok()?, server.try_clone().ok()?);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut up, &mut down);
                let _ = down.shutdown(std::net::Shutdown::Write);
            });
            std::io::copy(&mut server, &mut client).ok()?;
            return Some(());
        }
        let (authority, path) = target.strip_prefix("http://")?.split_once('/')?;
        let to = match server.take() {
            Some(server) => server,
            None => {
                let connected = TcpStream::connect(authority).ok()?;
                let (mut from, mut back) = (connected.try_clone().ok()?, client.try_clone().ok()?);
                std::thread::spawn(move || std::io::copy(&mut from, &mut back));
                connected
            }
        };
        (&to).write_all(format!("{method} /{path} HTTP/1.1\r\n{rest}").as_bytes()).ok()?;
        server = Some(to);
    }
}

#[test]
fn a_proxy_is_asked_instead_of_the_server_and_named() {
    if !(has("nginx") && has("openssl")) {
        return;
    }
    let home = Home::new();
    let (_nginx, plain, encrypted) = nginx(&home);
    let (port, said) = proxy();
    let url = format!("{plain}/file");
    let run = |url: &str, variables: &[(&str, String)], more: &[&str]| {
        let mut command = home.goodput(&["test", url, "--json", "--fetches", "2"]);
        command.args(more).env("HOME", home.path());
        command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        command.output().expect("the program under test can be started")
    };
    let with_login = ("http_proxy", format!("http://me:{PASSWORD}@127.0.0.1:{port}"));
    let output = run(&url, std::slice::from_ref(&with_login), &[]);
    let forwarded = record(&output);
    let named = forwarded.fetches.as_ref().and_then(|fetches| fetches.proxy.clone());
    assert_eq!(named, Some(format!("127.0.0.1:{port}")));
    assert!(forwarded.connections.iter().all(|connection| connection.remote.port() == port));
    assert!(!stdout(&output).contains(PASSWORD) && !stderr(&output).contains(PASSWORD));
    let first = said.try_recv().expect("it was asked");
    assert!(
        first.starts_with(&format!("GET {url} HTTP/1.1 ")) && first.contains("Basic "),
        "{first}"
    );
    // Directly: the list names the host, or the variable is that of a web server.
    while said.try_recv().is_ok() {}
    for variables in [
        vec![with_login, ("no_proxy", "127.0.0.0/8".to_owned())],
        vec![("HTTP_PROXY", format!("http://127.0.0.1:{port}"))],
    ] {
        assert!(record(&run(&url, &variables, &[])).fetches.is_some_and(|f| f.proxy.is_none()));
    }
    assert!(said.try_recv().is_err(), "the proxy was not asked");
    let by = format!("127.0.0.1:{port}");
    let tunnelled = run(&format!("{encrypted}/file"), &[], &["--proxy", &by, "--insecure"]);
    assert!(record(&tunnelled).fetches.is_some_and(|f| f.proxy.is_some() && f.tls.is_some()));
    let first = said.try_recv().expect("it was asked");
    let expected = format!("CONNECT {} HTTP/1.1 without a login", &encrypted["https://".len()..]);
    assert_eq!(first, expected);
    let gone = run(&url, &[], &["--proxy", "127.0.0.1:1"]);
    assert_eq!(gone.status.code(), Some(2), "{}", stderr(&gone));
}
