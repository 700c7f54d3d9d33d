//! A reader of goodput's output may stall; measurements and other clients must not depend on it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::process::{Output, Stdio};

use goodput_model::{Record, Sample};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, Server, record, stderr};

/// What a pipe holds (pipe(7)).
const PIPE: usize = 65_536;

/// A full pipe: every write to it blocks.
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

/// Nobody ever reads. The program waits for its reader, until a signal ends it.
#[test]
fn the_record_is_in_its_file_though_nobody_reads_standard_output() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (reader, writer) = full_pipe();
    let file = home.path().join("record.json");
    let arguments = ["test", &server.address, "--no-store", "-n", "1M", "--json", "--record"];
    let mut command = home.goodput(&arguments);
    command.arg(&file).stdout(writer).stderr(Stdio::null());
    let mut client = command.spawn().expect("it starts");
    drop(command);
    let written = || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        serde_json::from_str::<Record>(&text).is_ok()
    };
    goodput_testing::wait_for("the record is written", written);
    let pid = Pid::from_raw(client.id().try_into().expect("a number of a process"));
    let pid = pid.expect("it runs");
    // The first may come while it is still keeping the record.
    goodput_testing::wait_for("it ends", || {
        kill_process(pid, Signal::TERM).expect("it is ours, and not waited for");
        client.try_wait().expect("it was a child").is_some()
    });
    drop(reader);
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
        record(&home.run(&["test", &address, "--json", "--no-store", "-n", "1M"]));
    }
    server.kill().expect("it runs");
    server.wait().expect("it was a child");
    drop(reader);
    // It may have waited for the room that the server's own words took.
    let _ = filling.join();
}

/// Stops the server as soon as payload has moved for an interval, until the client has ended.
fn stopped_midway(options: &[&str]) -> (Output, Record) {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let fixed = ["test", &server.address, "--no-store", "--json-stream", "--interval", "0.2"];
    let mut command = home.goodput(&[&fixed[..], options].concat());
    let mut client =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(client.stdout.take().expect("stdout is piped")).lines();
    let mut next = || lines.next().map(|line| line.expect("it is text"));
    while !next().expect("an interval comes").contains("\"event\":\"interval\"") {}
    let pid =
        Pid::from_raw(server.pid().try_into().expect("a number of a process")).expect("it runs");
    kill_process(pid, Signal::STOP).expect("it is ours");
    let last = std::iter::from_fn(next).last().expect("the record is the last line");
    let output = client.wait_with_output().expect("it was a child");
    let line: serde_json::Value = serde_json::from_str(&last).expect("a line is JSON");
    let record = serde_json::from_value(line["record"].clone());
    (output, record.expect("it is a record"))
}

/// The longest time of a direction in its intervals, seconds, and the smallest and largest rates.
fn span(record: &Record) -> (f64, f64, f64) {
    let rates = record.intervals.iter().filter_map(|one| one.goodput_bits_per_s.value());
    let (least, most) =
        rates.fold((f64::MAX, 0.0f64), |(a, b), rate| (a.min(rate.0), b.max(rate.0)));
    (record.intervals.last().map_or(0.0, |last| last.to_s), least, most)
}

#[test]
fn a_far_end_that_stops_midway_is_no_success_whoever_sends() {
    // Beside each other: each waits until the far end has been silent for long.
    std::thread::scope(|scope| {
        for direction in [&["-t", "8"][..], &["-t", "8", "-R"]] {
            scope.spawn(|| stopping_midway_is_no_success(direction));
        }
    });
}

fn stopping_midway_is_no_success(direction: &[&str]) {
    let options = [direction, &["--expect", ">=1", "--expect", "limit!=path-loss"]].concat();
    let (output, record) = stopped_midway(&options);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
    let why = record.incomplete.as_deref().unwrap_or_default();
    assert!(why.contains("no report") || why.contains("cut short"), "{options:?}: {why}: {said}");
    // Neither the good beginning nor the rest alone: as long as payload was to move.
    let (until_s, least, most) = span(&record);
    let (rate, duration_s) = (record.result.goodput_bits_per_s.0, record.result.duration_s);
    let doubts = &record.doubts;
    assert!(duration_s >= until_s / 2.0, "{options:?}: {duration_s} of {until_s}: {doubts:?}");
    assert!(rate > 0.0 && (least..=most).contains(&rate), "{options:?}: {least} {rate} {most}");
}

#[test]
fn datagrams_that_nobody_counted_have_no_verdict() {
    let (output, record) = stopped_midway(&["-u", "--rate", "50mbit", "-t", "8"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let doubted =
        record.doubts.iter().any(|doubt| doubt.contains("no end reports what arrived afterwards"));
    assert!(doubted && record.findings.is_empty(), "{:?} {:?}", record.doubts, record.verdict);
    assert!(record.verdict.summary.contains("fell silent"), "{:?}", record.verdict);
}

/// A test that is over after a sample or two.
#[test]
fn a_very_short_test_has_the_rate_of_its_whole_time() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for direction in [&[][..], &["-R"]] {
        let test = ["test", &server.address, "--json", "--no-store", "-t", "0.1"];
        let output = home.run(&[&test[..], direction].concat());
        if stderr(&output).contains("ended before any payload was sent") {
            return goodput_testing::not_judged("the machine was too busy to send within 0.1 s");
        }
        let record = record(&output);
        let result = &record.result;
        let received = result.directions[0].received_bytes.value().copied().expect("it is counted");
        let counted = result.goodput_bits_per_s.0 / 8.0 * result.duration_s;
        assert!(counted <= received as f64 * 1.000_001, "{counted} of {received}");
        assert!(result.duration_s > 0.05, "{}", result.duration_s);
        let receiver = if direction.is_empty() { &record.ends.far } else { &record.ends.near };
        let steps = receiver.value().expect("it is known").samples.len() - 1;
        let doubt = record.doubts.iter().any(|doubt| doubt.contains("too short"));
        // A machine that was busy takes longer to empty its queues, in more samples.
        assert!(doubt || steps > 5, "{steps}: {:?}", record.doubts);
    }
}
