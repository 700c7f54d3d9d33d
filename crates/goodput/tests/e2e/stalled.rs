//! Whoever reads what goodput prints may stall; what is measured, and who else is served, does not depend on it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::process::Stdio;

use goodput_model::Record;

use crate::common::{Home, Server, record};

/// What a pipe holds (pipe(7)).
const PIPE: usize = 65_536;

/// A pipe that is full: whoever writes to it waits.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    fill(&mut writer);
    (reader, writer)
}

fn fill(writer: &mut PipeWriter) {
    // An error means that the reader has gone.
    let _ = writer.write_all(&[b'-'; PIPE]);
}

/// Waits until the server's log has `words`.
fn wait_for_log(home: &Home, words: &str) -> String {
    loop {
        let log = std::fs::read_to_string(home.path().join("server.log")).unwrap_or_default();
        if let Some(line) = log.lines().find(|line| line.contains(words)) {
            return line.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn payload_ends_in_time_though_nobody_reads_standard_output() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (mut reader, writer) = full_pipe();
    let arguments = ["test", &server.address, "--no-store", "-t", "1", "--json-stream"];
    let mut command = home.goodput(&[&arguments[..], &["--interval", "0.1"]].concat());
    let mut client = command.stdout(writer).stderr(Stdio::null()).spawn().expect("it starts");
    drop(command);
    wait_for_log(&home, "measured: ");
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed).expect("it is a pipe");
    assert!(client.wait().expect("it was a child").success());
    let text = String::from_utf8_lossy(&printed[PIPE..]).into_owned();
    let last = text.lines().last().expect("the record is the last line");
    let line: serde_json::Value = serde_json::from_str(last).expect("a line is JSON");
    let record: Record = serde_json::from_value(line["record"].clone()).expect("it is a record");
    let ended_by_server = |doubt: &String| doubt.contains("longest time that the server lets");
    assert!(!record.doubts.iter().any(ended_by_server), "{:?}", record.doubts);
    assert_eq!(record.incomplete, None);
}

#[test]
fn a_stalled_reader_of_the_server_holds_up_no_client() {
    let home = Home::new();
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    let serves = ["serve", "--port", "0", "--bind", "127.0.0.1", "--format", "iperf3"];
    let mut command = home.goodput(&serves);
    let mut server = command
        .stdout(writer.try_clone().expect("a descriptor can be had"))
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    drop(command);
    let (mut line, mut reader) = (String::new(), BufReader::new(reader));
    reader.read_line(&mut line).expect("the server says where it listens");
    let address = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    // What it said of other ports went into the buffer or leaves a little room; this takes the rest of it.
    let filling = std::thread::spawn(move || fill(&mut writer));
    for _ in 0..3 {
        record(&home.run(&["test", &address, "--json", "--no-store", "-t", "0.5"]));
    }
    server.kill().expect("it runs");
    server.wait().expect("it was a child");
    drop(reader);
    // It may have waited for the room that the server's own words took.
    let _ = filling.join();
}
