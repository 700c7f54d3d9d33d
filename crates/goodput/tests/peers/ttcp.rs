//! ttcp, which nobody packages: the tests are its transmitter and its receiver, byte by byte as
//! ttcp.c writes and reads.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use goodput_model::Record;
use libtest_mimic::Failed;

use crate::matrix::Test;
use crate::space::{Space, exe};

const PORT: u16 = 5001;

/// The tests.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![
        ("ttcp/a_transmitter_is_received", transmitter),
        ("ttcp/its_datagrams_are_received", datagrams),
        ("ttcp/a_receiver_is_sent_to", receiver),
        ("ttcp/markers_surround_datagrams", markers),
        ("ttcp/its_name_prints_what_both_ends_counted", under_its_name),
        ("ttcp/what_it_can_not_do_is_refused", refusals),
    ]
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}

/// What a buffer is filled with (`pattern()`): printable ASCII, from the space on.
fn pattern(length: usize) -> Vec<u8> {
    (b' '..=b'~').cycle().take(length).collect()
}

/// `ttcp -t -s -n4 -l1024`, and what its first write may be cut to.
fn transmitter() -> Result<(), Failed> {
    for first in [1, 3, 1024] {
        let space = Space::new()?;
        let mut server = space.serve(&[])?;
        let answer = space.within(|| -> std::io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect(("127.0.0.1", PORT))?;
            let buffer = pattern(1024);
            stream.write_all(&buffer[..first])?;
            for _ in 0..3 {
                stream.write_all(&buffer)?;
            }
            stream.shutdown(std::net::Shutdown::Write)?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(answer)
        })??;
        check(answer.is_empty(), format!("it was answered {answer:?}"))?;
        let log = server.wait_for_complaints("ttcp: measured: ", 1)?;
        check(log.contains(&format!("received {} bytes", first + 3072)), log)?;
    }
    Ok(())
}

/// `ttcp -t -u -s -n3 -l1024`.
fn datagrams() -> Result<(), Failed> {
    let space = Space::new()?;
    let mut server = space.serve(&[])?;
    space.within(|| -> std::io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", PORT))?;
        let buffer = pattern(1024);
        let ends = [&buffer[..4]; 5];
        for datagram in [&buffer[..4], &buffer, &buffer, &buffer].into_iter().chain(ends) {
            socket.send(datagram)?;
        }
        Ok(())
    })??;
    let log = server.wait_for_complaints("ttcp: measured: ", 1)?;
    check(log.contains("received 3072 bytes"), log)
}

/// `goodput test` to `ttcp://`, while `receive` takes what it sends.
fn sent_to<T: Send>(
    space: &Space,
    arguments: &[&str],
    receive: impl FnOnce() -> std::io::Result<T> + Send,
) -> Result<(Record, T), Failed> {
    let all = [&["ttcp://127.0.0.1"], arguments].concat();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| space.within(receive));
        let record = space.test(&all)?;
        let received = receiving.join().map_err(|_| "the receiver panicked")???;
        Ok((record, received))
    })
}

fn sent_bytes(record: &Record) -> Option<u64> {
    Some(record.ends.near.value()?.samples.last()?.sent_bytes)
}

/// `ttcp -r -s`: it reads to the end and says nothing.
fn receiver() -> Result<(), Failed> {
    let space = Space::new()?;
    let listener = space.within(|| TcpListener::bind(("127.0.0.1", PORT)))??;
    let (record, received) = sent_to(&space, &["--bytes", "1000003"], || {
        let (mut stream, _) = listener.accept()?;
        std::io::copy(&mut stream, &mut std::io::sink())
    })?;
    check(received == 1_000_003, format!("{received} bytes"))?;
    check(sent_bytes(&record) == Some(received), format!("{:?} sent", sent_bytes(&record)))
}

/// `ttcp -r -u -s`: its clock begins with a datagram of four bytes and ends with another.
fn markers() -> Result<(), Failed> {
    let space = Space::new()?;
    let socket = space.within(|| UdpSocket::bind(("127.0.0.1", PORT)))??;
    socket.set_read_timeout(Some(goodput_testing::WAIT_TIMEOUT))?;
    let arguments = ["--udp", "--bytes", "10000", "--chunk", "1000", "--rate", "1mbit"];
    let arguments = [&["test", "ttcp://127.0.0.1", "--no-store"][..], &arguments].concat();
    let ours = space.start(exe(), &arguments)?;
    let mut lengths = Vec::new();
    let mut room = [0; 2048];
    while lengths.iter().filter(|length| **length == 4).count() < 6 {
        lengths.push(socket.recv(&mut room)?);
    }
    // Nobody counts them for us.
    let finished = ours.finish()?;
    check(finished.stderr.contains("no end reports what arrived"), finished.stderr)?;
    let expected = [&[4][..], &[1000; 10], &[4; 5]].concat();
    check(lengths == expected, format!("{lengths:?}"))
}

/// `goodput as ttcp`, at both ends.
fn under_its_name() -> Result<(), Failed> {
    for datagrams in [None, Some("-u")] {
        let space = Space::new()?;
        let with = |role: &'static str| -> Vec<&str> {
            ["as", "ttcp", role, "-s"].into_iter().chain(datagrams).collect()
        };
        let mut receiver = space.start(exe(), &with("-r"))?;
        receiver.wait_for_line("ttcp-r: socket")?;
        let options = ["-n8", "-l1024", "127.0.0.1"];
        let sent = space.start(exe(), &[&with("-t")[..], &options].concat())?.finish()?;
        let received = receiver.finish()?;
        for (finished, words) in
            [(&sent, "ttcp-t: 8192 bytes in "), (&received, "ttcp-r: 8192 bytes in ")]
        {
            let said = format!("{}{}", finished.stdout, finished.stderr);
            check(
                finished.status.success() && said.contains(words),
                format!("{datagrams:?}: {said}"),
            )?;
        }
        check(received.stdout.contains("ttcp-r: accept from 127.0.0.1\n"), received.stdout)?;
    }
    Ok(())
}

fn refusals() -> Result<(), Failed> {
    let space = Space::new()?;
    for option in ["--reverse", "--both"] {
        let arguments = ["test", "ttcp://127.0.0.1", "-t", "1", "--no-store", option];
        let finished = space.start(exe(), &arguments)?.finish()?;
        check(!finished.status.success() && finished.stderr.contains(option), finished.stderr)?;
    }
    Ok(())
}
