//! Servers of files that stop, lie or break off in the middle of a file: it is said, and nothing is taken for a result.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use goodput_model::Record;

use crate::common::{Home, record, stderr, stdout};

/// Bytes of the file.
const FILE_BYTES: usize = 500_000;
/// Bytes that come before a server misbehaves.
const PART_BYTES: usize = 5000;

/// What a server makes of a question, the first of which has the number 0. An error ends the connection.
type Behaviour = fn(&mut TcpStream, number: u64) -> std::io::Result<()>;

/// Serves as long as the test runs.
fn serve(behave: Behaviour) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let asked = Arc::clone(&asked);
            // A client that is gone ends its thread.
            thread::spawn(move || _ = answer(client, behave, &asked));
        }
    });
    format!("http://127.0.0.1:{port}/file")
}

fn answer(mut client: TcpStream, behave: Behaviour, asked: &AtomicU64) -> std::io::Result<()> {
    for line in BufReader::new(client.try_clone()?).lines() {
        if line?.is_empty() {
            behave(&mut client, asked.fetch_add(1, Ordering::Relaxed))?;
        }
    }
    Ok(())
}

/// A header that announces the first number of bytes, and the second number of them.
fn give(client: &mut TcpStream, announced: usize, bytes: usize) -> std::io::Result<()> {
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n")?;
    client.write_all(&vec![7; bytes])
}

/// The first file as it should be, then only a part of each.
fn a_part(client: &mut TcpStream, number: u64) -> std::io::Result<()> {
    give(client, FILE_BYTES, if number == 0 { FILE_BYTES } else { PART_BYTES })
}

fn over() -> std::io::Error {
    std::io::ErrorKind::Other.into()
}

#[test]
fn a_server_that_breaks_off_or_lies_is_an_error() {
    let stalls: Behaviour = |client, number| {
        a_part(client, number)?;
        if number > 0 {
            thread::sleep(Duration::from_secs(3600));
        }
        Ok(())
    };
    let ends: Behaviour = |client, number| {
        a_part(client, number)?;
        if number > 0 { Err(over()) } else { Ok(()) }
    };
    let adds: Behaviour = |client, _| give(client, FILE_BYTES, FILE_BYTES + PART_BYTES);
    let redirects: Behaviour = |client, _| {
        client.write_all(b"HTTP/1.1 302 Found\r\nLocation: /on\r\nContent-Length: 0\r\n\r\n")
    };
    let bombs: Behaviour = |client, _| {
        client.write_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n")
    };
    for (behave, words) in [
        (stalls, "the server stalled: after 5000 bytes"),
        (ends, "after 5000 of the 500000 bytes"),
        (adds, "no HTTP"),
        (redirects, "redirects more than"),
        (bombs, "compressed"),
    ] {
        let home = Home::new();
        // Longer than a server that stands still is waited for.
        let output = home.run(&["test", &serve(behave), "-t", "60"]);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_file_that_changes_its_length_is_noticed() {
    let grows: Behaviour = |client, number| {
        let bytes = FILE_BYTES + number as usize;
        give(client, bytes, bytes)
    };
    let record = record(&Home::new().run(&["test", &serve(grows), "--json", "--fetches", "3"]));
    let noticed = record.doubts.iter().any(|doubt| doubt.contains("500000 to 5000"));
    assert!(noticed, "{:?}", record.doubts);
    assert!(record.fetches.is_some_and(|fetches| fetches.file_bytes.value().is_none()));
}

/// Questions of the test below, the only one that asks this server.
static ASKED: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_comparison_makes_the_first_fetch_once() {
    let counts: Behaviour = |client, _| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        give(client, FILE_BYTES, FILE_BYTES)
    };
    let target = serve(counts);
    let more = ["--fetches", "1", "--max-time", "5", "--json"];
    let output = Home::new().run(&[&["compare", &target, "chunk=16K,64K"][..], &more].concat());
    let comparison: Record = serde_json::from_slice(&output.stdout).expect("a record");
    let runs = comparison.comparison.expect("it is one").trials.len() as u64;
    let asked = ASKED.load(Ordering::Relaxed);
    // One in each run, before all of them the first fetch and at most 20 like it.
    assert!(runs >= 4 && (runs..=runs + 21).contains(&asked), "{asked} questions in {runs} runs");
}

#[test]
fn a_sink_keeps_what_it_holds_until_payload_comes() {
    let home = Home::new();
    let sink = home.file("sink", "precious").display().to_string();
    let refuses: Behaviour =
        |client, _| client.write_all(b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n");
    let refused = home.run(&["test", &serve(refuses), "--sink", &sink, "-t", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert_eq!(fs::read(&sink).expect("it is there"), b"precious");
    let serves: Behaviour = |client, _| give(client, FILE_BYTES, FILE_BYTES);
    let fetched = home.run(&["test", &serve(serves), "--sink", &sink, "--fetches", "2", "--json"]);
    record(&fetched);
    assert!(
        fs::read(&sink).expect("it is there") == vec![7; 2 * FILE_BYTES],
        "all of it, and nothing else"
    );
}

/// Takes files of any length, and confirms those of one byte and every removal; what longer files are answered is `answer`.
fn take_uploads(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || _ = take_upload(client, answer));
        }
    });
    format!("http://127.0.0.1:{port}/in/")
}

fn take_upload(mut client: TcpStream, answer: Option<&str>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    loop {
        let mut bytes = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim().to_lowercase();
            if let Some(length) = line.strip_prefix("content-length:") {
                bytes = length.trim().parse().map_err(|_| over())?;
            }
            if line.is_empty() {
                break;
            }
        }
        if bytes > 1 {
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        std::io::copy(&mut (&mut reader).take(bytes), &mut std::io::sink())?;
        match answer {
            _ if bytes <= 1 => client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?,
            Some(answer) => client.write_all(answer.as_bytes())?,
            None => {}
        }
    }
}

#[test]
fn an_upload_that_is_never_confirmed_is_an_error() {
    let output =
        Home::new().run(&["test", &take_uploads(None), "--write", "--size", "1M", "-t", "2"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("took all 1048576 bytes") && said.contains("did not confirm"), "{said}");
}

#[test]
fn an_upload_that_is_forbidden_in_the_middle_keeps_its_exit_code() {
    let forbids = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let target = take_uploads(Some(forbids));
    let output = Home::new().run(&["test", &target, "--write", "--size", "1M", "-t", "2"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("does not let this user take the file: 403"), "{said}");
}
