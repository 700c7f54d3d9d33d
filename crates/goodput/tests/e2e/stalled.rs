//! Whoever reads what goodput prints may stall; what is measured, and who else is served, does not depend on it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::process::Stdio;

use goodput_model::{Record, Sample};

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

/// Waits until the server's log has `words`, as long as there is a server.
fn wait_for_log(home: &Home, server: &mut Server, words: &str) {
    loop {
        let is_alive = server.is_alive();
        let log = std::fs::read_to_string(home.path().join("server.log")).unwrap_or_default();
        if log.contains(words) {
            return;
        }
        assert!(is_alive, "the server has ended: {log}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Samples of this end that still saw payload after the time of the plan. As many looks, not as much time:
/// a machine that holds the program up for long has it look as rarely.
fn late_looks(record: &Record, seconds: f64) -> usize {
    let samples = &record.ends.near.get().expect("this end is known").samples;
    let has_grown = |pair: &&[Sample]| pair[1].sent_bytes > pair[0].sent_bytes;
    samples.windows(2).filter(has_grown).filter(|pair| pair[0].at_s > seconds).count()
}

#[test]
fn payload_ends_in_time_though_nobody_reads_standard_output() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let (mut reader, writer) = full_pipe();
    let arguments = ["test", &server.address, "--no-store", "-t", "1", "--json-stream"];
    let mut command = home.goodput(&[&arguments[..], &["--interval", "0.1"]].concat());
    let mut client = command.stdout(writer).stderr(Stdio::null()).spawn().expect("it starts");
    drop(command);
    wait_for_log(&home, &mut server, "measured: ");
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed).expect("it is a pipe");
    assert!(client.wait().expect("it was a child").success());
    let text = String::from_utf8_lossy(&printed[PIPE..]).into_owned();
    let last = text.lines().last().expect("the record is the last line");
    let line: serde_json::Value = serde_json::from_str(last).expect("a line is JSON");
    let record: Record = serde_json::from_value(line["record"].clone()).expect("it is a record");
    // The server would end it 3 s after the time of the plan, which is 30 looks.
    let late = late_looks(&record, 1.0);
    assert!(late < 10, "{late} {:?}", record.doubts);
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
