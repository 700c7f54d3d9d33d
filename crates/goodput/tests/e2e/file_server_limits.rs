//! Servers of files that are slow in a known way, and what is said of them.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use goodput_model::{Confidence, Known, Place, Record};

use crate::common::{Home, record};

/// Bytes of a block, between which a server may pause.
const BLOCK_BYTES: usize = 64 << 10;

/// A pause before block `block` of answer `answer`, both from 0.
type PauseBefore = fn(answer: u64, block: usize) -> Duration;

/// Serves a file of this many blocks on a port of its own, for as long as the test runs.
fn serve(blocks: usize, pause: PauseBefore) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let answers = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            // A client that is gone ends its thread.
            thread::spawn(move || _ = answer(&client, blocks, pause, &answers));
        }
    });
    format!("http://127.0.0.1:{port}/file")
}

fn answer(
    mut client: &TcpStream,
    blocks: usize,
    pause: PauseBefore,
    answers: &AtomicU64,
) -> std::io::Result<()> {
    let block = [7; BLOCK_BYTES];
    for line in BufReader::new(client).lines() {
        if !line?.is_empty() {
            continue;
        }
        let number = answers.fetch_add(1, Ordering::Relaxed);
        let length = blocks * BLOCK_BYTES;
        write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")?;
        for at in 0..blocks {
            thread::sleep(pause(number, at));
            client.write_all(&block)?;
        }
    }
    Ok(())
}

fn test(target: &str, more: &[&str]) -> Record {
    let home = Home::new();
    let mut arguments = vec!["test", target, "--json"];
    arguments.extend(more);
    record(&home.goodput(&arguments).output().expect("the program under test can be started"))
}

fn has(record: &Record, rule: &str) -> bool {
    record.findings.iter().any(|finding| finding.rule == rule)
}

#[test]
fn a_server_that_stops_sending_is_named() {
    // Bursts of 1 MiB; longer silences than any round trip on loopback.
    let pauses = |_, block| Duration::from_millis(if block % 16 == 0 { 300 } else { 0 });
    let stalls = test(&serve(4096, pauses), &["-t", "3"]);
    let finding = stalls.findings.iter().find(|finding| finding.rule == "server-stalls");
    let finding = finding.unwrap_or_else(|| panic!("{:?} {:?}", stalls.findings, stalls.undecided));
    assert_eq!(finding.end, Place::Far);
    assert!(!has(&stalls, "server-or-path"), "{:?}", stalls.findings);
}

#[test]
fn what_may_be_the_server_or_the_network_is_said_to_be_either() {
    // A write every few milliseconds: as a slow path, as far as anyone here can see.
    let slowly = |_, _| Duration::from_millis(4);
    let slow = test(&serve(4096, slowly), &["-t", "3"]);
    let finding = slow.findings.iter().find(|finding| finding.rule == "server-or-path");
    let finding = finding.unwrap_or_else(|| panic!("{:?} {:?}", slow.findings, slow.undecided));
    assert_eq!(finding.confidence, Confidence::Possible);
}

#[test]
fn a_server_with_a_slow_disk_is_distinguished_from_its_cache() {
    let cold = |answer, _| Duration::from_millis(if answer == 0 { 60 } else { 0 });
    let target = serve(16, cold);
    let first = test(&target, &["-n", "30000000"]);
    let fetches = first.fetches.as_ref().expect("the target is a file");
    assert!(fetches.whole_times.value().is_some_and(|times| times.n > 20), "{fetches:?}");
    assert!(has(&first, "server-storage"), "{:?} {:?}", first.findings, first.undecided);
    assert_ne!(first.verdict.limit, "server-storage");
    // The next run finds the file in the cache: nothing is 16 times as slow as its like by chance.
    let again = test(&target, &["-n", "30000000"]);
    let ratio = |record: &Record| {
        let fetches = record.fetches.as_ref().expect("the target is a file");
        let Known::Value(others) = &fetches.whole_times else { panic!("{fetches:?}") };
        let Known::Value(cold) = &fetches.first else { panic!("{fetches:?}") };
        cold.took_s / others.geometric_mean_s
    };
    assert!(ratio(&again) < ratio(&first), "{again:?}");
}
