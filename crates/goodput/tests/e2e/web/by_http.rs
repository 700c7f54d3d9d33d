//! The server as clients see it that are no browsers, or no good ones.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;

use super::served::{HOSTILE, Web};
use crate::common::{Home, stderr};

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
