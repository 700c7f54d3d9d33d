//! The server as clients see it that are no browsers, or no good ones.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use goodput_store::Store;
use goodput_testing::servers::{certificate, has};
use goodput_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use super::served::{HOSTILE, Web, children};
use crate::common::{Home, Server, stderr, stdout};
use crate::transfer::Transfer;

#[test]
fn pages_are_answered_with_their_headers_and_a_token_is_made_for_its_owner() {
    let web = Web::start(&[]);
    let list = web.get("/");
    assert!(list.starts_with("HTTP/1.1 200 ") && list.contains("/results/3"), "{list}");
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
        "frame-ancestors 'none'",
    ] {
        assert!(list.contains(header), "{header}: {list}");
    }
    assert!(!web.get("/results/1").contains(HOSTILE));
    let file = web.home.path().join("goodput/web-token").metadata().unwrap();
    assert_eq!((file.mode() & 0o777, web.token().len()), (0o600, 64));
}

/// The file is read at each visit.
#[test]
fn a_mesh_file_names_the_sites_of_the_matrix() {
    let files = Home::new();
    let file = files.file("mesh.toml", "[site.a]\ntarget = \"a\"\n[site.b]\n");
    let path = file.to_str().expect("it is text");
    let web = Web::start(&["--mesh", path]);
    web.add_mesh();
    let page = || web.get("/matrix?from=2020-01-01");
    assert!(page().contains("a host or site that the mesh file does not have"), "{}", page());
    let sites = format!(
        "[site.one]\nhost = '0{HOSTILE}'\n[site.two]\nhost = '1{HOSTILE}'\ntarget = \"x\"\n"
    );
    std::fs::write(&file, sites).expect("it is ours");
    assert!(page().contains("2 sites, 2 of 2 pairs tested"), "{}", page());
    assert!(page().contains("<th scope=\"row\">one</th>"), "{}", page());
    std::fs::write(&file, "nonsense").expect("it is ours");
    assert!(page().starts_with("HTTP/1.1 500 ") && page().contains("mesh.toml"), "{}", page());
}

#[test]
fn bad_requests_are_refused_and_the_next_one_is_answered() {
    let web = Web::start(&[]);
    let endless = format!("GET /?q={} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(100_000));
    let form = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n\r\n";
    for (request, status) in [
        ("nonsense\r\n\r\n", " 400 "),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", " 404 "),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", " 421 "),
        ("POST /undo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", " 303 "),
        (&endless, " 4"),
        (form, " 413 "),
    ] {
        let answer = web.say(request);
        let head = answer.lines().next().unwrap_or_default();
        assert!(head.contains(status), "{:.60}: {head:?}", request);
    }
    // Clients that say nothing, or not all, keep nobody out.
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut client = TcpStream::connect(&web.address).unwrap();
        client.write_all(b"GET / HT").unwrap();
        slow.push(client);
    }
    assert!(web.get("/").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_taken_port_and_an_open_address_are_refused_with_what_to_do() {
    let web = Web::start(&[]);
    let refused = |options: &[&str]| {
        let output = Home::new().run(&[&["web"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        stderr(&output)
    };
    let taken = refused(&["--listen", &web.address]);
    assert!(taken.contains("in use") && taken.contains("--listen"), "{taken}");
    let open = refused(&["--listen", "0.0.0.0:0"]);
    assert!(open.contains("--tls-cert") && open.contains("ssh -L"), "{open}");
    let short = Home::new();
    let file = short.secret("token", "short");
    let output =
        short.run(&["web", "--listen", "127.0.0.1:0", "--token-file", file.to_str().unwrap()]);
    assert!(stderr(&output).contains("could be guessed"), "{}", stderr(&output));
}

#[test]
fn a_test_ends_with_the_server_that_started_it_and_is_kept() {
    let (mut web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let (cookie, form) = web.log_in();
    let fields = format!("form={form}&target={}&time=60", server.address);
    let started = web.post("/tests", &cookie, &fields);
    assert!(started.to_lowercase().contains("location: /tests/1"), "{started}");
    wait_for("an interval", || web.get("/tests/1").contains("<td>1.0 s</td>"));
    let [test] = &children(web.pid())[..] else { panic!("{:?}", children(web.pid())) };
    assert!(!web.get("/tests").contains("Running on this host"), "it is not listed twice");
    web.kill();
    let process = format!("/proc/{test}/stat");
    // Whoever inherited it may not wait for it.
    wait_for("the end of the test", || {
        std::fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "))
    });
    let store = Store::open(&web.home.path().join("goodput/history.db")).unwrap();
    assert_eq!(store.list(1).unwrap()[0].target, server.address);
}

#[test]
fn a_test_in_a_terminal_is_listed_while_it_runs() {
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let listed = || web.get("/tests").contains("Running on this host");
    assert!(!listed());
    for (signal, end) in [
        (Signal::INT, "Ended. See <a href=\"/results/4\">"),
        (Signal::KILL, "Ended without a result in the history"),
    ] {
        let mut test = web.home.goodput(&["test", &server.address, "--time", "60s"]);
        let mut test = test.stdout(Stdio::null()).spawn().expect("it can be started");
        wait_for("the test", listed);
        let list = web.get("/tests");
        assert!(list.contains("(goodput test), running"), "{list}");
        let path = super::served::between(&list, "<a href=\"/tests/", "\"");
        let page = || web.get(&format!("/tests/{path}"));
        wait_for("an interval", || page().contains("<td>1.0 s</td>"));
        kill_process(Pid::from_child(&test), signal).expect("it runs");
        test.wait().expect("it is a child");
        wait_for("the end", || page().contains(end));
        assert!(!listed(), "{signal:?}");
    }
    let left = web.home.path().join("state/running").read_dir().expect("it was made").count();
    assert_eq!(left, 0, "the file of the killed one is gone");
}

#[test]
fn a_watched_transfer_is_followed_under_the_name_of_its_other_end() {
    let (web, transfer) = (Web::start(&[]), Transfer::start(Duration::from_millis(5)));
    let to = format!("port:{}", transfer.port);
    let mut watch = web.home.goodput(&["test", "--attach", &to, "--time", "60s"]);
    let mut watch = watch.stdout(Stdio::null()).spawn().expect("it can be started");
    let of = format!("of 127.0.0.1:{}</a> (goodput test --attach), running", transfer.port);
    wait_for("the watched transfer", || web.get("/tests").contains(&of));
    // They are as long as the looks at the transfer were apart.
    wait_for("an interval", || web.get("/tests/1").contains(" s</td>"));
    kill_process(Pid::from_child(&watch), Signal::INT).expect("it runs");
    watch.wait().expect("it is a child");
    let end = "Ended. See <a href=\"/results/4\">";
    wait_for("the end", || web.get("/tests/1").contains(end));
}

#[test]
fn a_small_test_of_a_watch_is_followed_and_leads_to_its_result() {
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let small = ["--rate", "8mbit", "-t", "60", "--budget", "10GB/day"];
    let mut watch = web.home.goodput(&[&["watch", "--once", &server.address], &small[..]].concat());
    let mut watch = watch.stdout(Stdio::null()).spawn().expect("it can be started");
    let of = format!("of {}</a> (goodput watch), running", server.address);
    wait_for("the test", || web.get("/tests").contains(&of));
    wait_for("an interval", || web.get("/tests/1").contains("<td>1.0 s</td>"));
    kill_process(Pid::from_child(&watch), Signal::INT).expect("it runs");
    watch.wait().expect("it is a child");
    let end = "Ended. See <a href=\"/results/4\">";
    wait_for("the end", || web.get("/tests/1").contains(end));
    assert!(!web.get("/tests").contains("Running on this host"));
}

/// What openssl gets from a page by TLS, as a client that trusts this certificate.
fn by_tls(address: &str, certificate: &Path, path: &str) -> (bool, String) {
    let mut openssl = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-verify_ip", "127.0.0.1"])
        .args(["-connect", address, "-CAfile"])
        .arg(certificate)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl can be started");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut input = openssl.stdin.take().expect("it is piped");
    // It may have refused the certificate already.
    let _ = input.write_all(request.as_bytes());
    let output = openssl.wait_with_output().expect("it is a child");
    drop(input);
    (output.status.success(), stdout(&output))
}

#[test]
fn pages_come_by_tls_with_the_operators_certificate() {
    if !has("openssl") {
        return;
    }
    let [own, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for folder in [&own, &other] {
        certificate(folder.path(), true);
    }
    let file = |name| own.path().join(name).to_str().expect("it is ASCII").to_owned();
    let (chain, key) = (file("cert.pem"), file("key.pem"));
    let web = Web::start(&["--login", "--tls-cert", &chain, "--tls-key", &key]);
    let (_, page) = by_tls(&web.address, Path::new(&chain), "/login");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("<h1>"), "{page}");
    let (_, page) = by_tls(&web.address, Path::new(&chain), "/");
    assert!(page.starts_with("HTTP/1.1 303 "), "{page}");
    let (trusted, page) = by_tls(&web.address, &other.path().join("cert.pem"), "/login");
    assert!(!trusted && page.is_empty(), "{page}");
    let plain = web.get("/login");
    assert!(!plain.contains("HTTP/1.1 200"), "nothing is sent in the clear: {plain}");
    // The next client is served.
    assert!(by_tls(&web.address, Path::new(&chain), "/login").1.contains("<h1>"));
    let swapped = Home::new().run(&["web", "--tls-cert", &key, "--tls-key", &key]);
    assert!(stderr(&swapped).contains("can't use the certificate"), "{}", stderr(&swapped));
}
