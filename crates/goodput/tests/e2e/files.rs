//! Files sent and written: what arrives, what is said of it, and what is refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use goodput_model::{FlowSample, Known, Record, Role, Slowest, StorageResult};
use goodput_testing::wait_for;
use rustix::process::{Pid, Signal};

use crate::common::{Home, Server, exe, found, record, set_mode, stderr, stdout};

/// No multiple of a page or a chunk.
const LEN: usize = 5_000_001;

fn content() -> Vec<u8> {
    (0..LEN as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A home with a file to send, and directories that a server may serve.
struct Place {
    home: Home,
    server: Server,
}

impl Place {
    fn new(options: &[&str]) -> Self {
        let home = Home::new();
        for directory in ["files", "sinks"] {
            std::fs::create_dir(home.path().join(directory)).expect("a new directory");
        }
        set_mode(&home.path().join("sinks"), 0o777);
        std::fs::write(home.path().join("files/big"), content()).expect("it is writable");
        let (files, sinks) = (home.path().join("files"), home.path().join("sinks"));
        let mut all = vec!["--files", text(&files), "--sinks", text(&sinks)];
        all.extend(options);
        let server = Server::start(&home, &all);
        Self { home, server }
    }

    fn big(&self) -> String {
        text(&self.home.path().join("files/big")).into()
    }

    fn run(&self, options: &[&str]) -> Output {
        let mut all = vec!["test", &self.server.address, "--json", "--no-store"];
        all.extend(options);
        self.home.run(&all)
    }

    fn written(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.home.path().join(name)).expect("it was written")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

fn storage(record: &Record) -> &StorageResult {
    record.result.directions[0].storage.as_ref().expect("there is a file")
}

fn sender(record: &Record) -> &FlowSample {
    let near = record.ends.near.value().expect("this end is known");
    let last = near.samples.last().expect("a sample");
    last.flows.iter().find(|flow| flow.role == Role::Sender).expect("it sends")
}

fn fails(output: &Output, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} in {text}"));
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn every_mover_that_sends_files_brings_one_over_as_it_is() {
    let place = Place::new(&[]);
    for mover in ["auto", "copy", "sendfile", "splice", "mmap-send", "uring", "zerocopy"] {
        let receive = ["--mover", mover, "--receive-mover", "copy"];
        let files = ["--source", &place.big(), "--sink", mover, "--header", "512", "--cork"];
        let record = record(&place.run(&[&receive[..], &files[..]].concat()));
        assert!(place.written(&format!("sinks/{mover}")) == content(), "{mover}");
        let sent = LEN as u64 + 512;
        assert_eq!(record.result.directions[0].received_bytes, Known::Value(sent));
        assert_eq!(storage(&record).source_bytes, Known::Value(LEN as u64));
    }
}

#[test]
fn a_test_of_a_file_is_no_line_for_the_archive_of_perfsonar() {
    let place = Place::new(&[]);
    let (address, big) = (place.server.address.as_str(), place.big());
    let sends = ["test", address, "--no-store", "--source", &*big, "--format", "pscheduler"];
    let output = place.home.run(&sends);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), ""), "{}", stderr(&output));
    let words =
        "warning: this result is no throughput test of pScheduler: payload from or to a file";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
}

#[test]
fn a_file_of_the_server_is_written_here() {
    let place = Place::new(&[]);
    let sink = place.home.path().join("back");
    let record =
        record(&place.run(&["-R", "--source", "big", "--sink", text(&sink), "--fsync", "-P", "2"]));
    assert!(place.written("back.0") == content() && place.written("back.1") == content());
    assert!(storage(&record).sink_wait_percent.value().is_some(), "{:?}", storage(&record));
}

#[test]
fn the_parts_of_a_transfer_are_measured_alone_and_together() {
    let place = Place::new(&[]);
    let files = ["--source", &place.big(), "--sink", "parts", "-n", "1000000"];
    let mut all = vec!["test", "files", &place.server.address, "--json", "--no-store"];
    all.extend(files);
    // Which part is fastest, and whether that is shown, is this host's affair.
    let output = place.home.run(&all);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    let record: Record = serde_json::from_slice(&output.stdout).expect("a record");
    let parts = record.file_parts.expect("they were asked for");
    let mut named: Vec<_> = parts.parts.iter().map(|part| format!("{:?}", part.part)).collect();
    named.sort();
    assert_eq!(named, ["Network", "Sink", "Source", "Together"]);
    let measured = parts.parts.iter().all(|part| part.rate_bits_per_s.value().is_some());
    assert!(parts.n >= 6 && measured, "{parts:?}");
    let refused = place.home.run(&["test", "files", &place.server.address]);
    fails(&refused, &["--source"]);
    fails(&place.home.run(&["test", "files", "--source", "x"]), &["goodput test files HOST"]);
}

#[test]
fn a_pipe_is_sent_and_another_one_takes_what_comes() {
    let place = Place::new(&[]);
    let address = place.server.address.as_str();
    let sends = ["test", address, "--json", "--no-store", "--source", "-", "--sink", "piped"];
    let mut child = place.home.goodput(&sends);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&content()).unwrap();
    record(&child.wait_with_output().unwrap());
    assert!(place.written("sinks/piped") == content());

    let output =
        place.home.run(&["test", address, "--no-store", "-R", "--source", "big", "--sink", "-"]);
    assert!(output.stdout == content(), "nothing but the payload");
    assert!(stderr(&output).contains("received"), "{}", stderr(&output));
}

#[test]
fn a_slow_source_is_named() {
    let place = Place::new(&[]);
    let sends = ["test", &place.server.address, "--json", "--no-store", "--source", "-"];
    let mut child = place.home.goodput(&sends);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // What is slow is the purpose here, not waited for.
    for _ in 0..100 {
        input.write_all(&[1; 20_000]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(input);
    let record = record(&child.wait_with_output().unwrap());
    assert!(found(&record, "storage-read"), "{:?}", record.findings);
    assert_eq!(storage(&record).slowest, Known::Value(Slowest::Source));
}

#[test]
fn a_file_is_warm_unless_it_shall_be_cold() {
    let place = Place::new(&[]);
    let warm = record(&place.run(&["--source", &place.big()]));
    assert_eq!(storage(&warm).cache, Known::Value("warm".into()));
    assert_eq!(storage(&warm).resident_percent, Known::Value(100.0));
    assert!(storage(&warm).alone_bits_per_s.value().is_some());
    let cold = record(&place.run(&["--source", &place.big(), "--cold"]));
    assert_eq!(storage(&cold).cache, Known::Value("cold".into()));
    // If the temporary directory is in memory, nothing can be dropped, and that is said.
    let resident = *storage(&cold).resident_percent.get().unwrap();
    let doubted = cold.doubts.iter().any(|doubt| doubt.contains("still in the page cache"));
    assert_eq!(resident > 1.0, doubted, "{resident} {:?}", cold.doubts);
}

/// Header and file are a segment each with TCP_NODELAY; cork or MSG_MORE make one of them. The proof
/// of the flow is a segment before them.
#[test]
fn cork_and_more_put_the_header_into_the_first_segment() {
    let place = Place::new(&[]);
    let file = ["--size", "1000", "--header", "500"];
    let segments = |more: &[&str]| {
        let record = record(&place.run(&[&file[..], more].concat()));
        sender(&record).tcp.get().unwrap().data_segs_out().unwrap()
    };
    assert_eq!(segments(&["--nodelay"]), 3);
    assert_eq!(segments(&["--cork"]), 2);
    assert_eq!(segments(&["--nodelay", "--more"]), 2);
}

#[test]
fn a_server_keeps_to_its_directories() {
    let place = Place::new(&["--max-sink", "1M"]);
    fails(&place.run(&["-R", "--source", "../files/big/../../server.log"]), &["refused"]);
    fails(&place.run(&["-R", "--source", "/etc/passwd"]), &["not beneath"]);
    fails(&place.run(&["--source", &place.big(), "--sink", "../x"]), &["not beneath"]);
    fails(
        &place.run(&["--source", &place.big(), "--sink", "x"]),
        &["no more than 1.05 MB", "--max-sink"],
    );
    assert!(place.written("sinks/x").len() <= 1 << 20);
    let bare = Server::start(&place.home, &[]);
    let run = |options: &[&str]| {
        place.home.run(&[&["test", &bare.address, "--no-store"], options].concat())
    };
    fails(&run(&["-R", "--source", "big"]), &["serve --files"]);
    fails(&run(&["--sink", "x"]), &["serve --sinks"]);
    assert!(run(&["--size", "1M", "--sink", "/dev/null"]).status.success());
}

#[test]
fn all_sinks_of_a_server_share_a_total() {
    let place = Place::new(&["--max-sink-total", "1M"]);
    let store = |bytes: &str, name: &str| place.run(&["--size", bytes, "--sink", name]);
    assert!(store("800K", "a").status.success());
    fails(&store("800K", "b"), &["in total", "--max-sink-total"]);
    assert!(store("800K", "a").status.success(), "it is replaced");
    std::fs::remove_file(place.home.path().join("sinks/a")).expect("it is there");
    std::fs::remove_file(place.home.path().join("sinks/b")).expect("it was begun");
    // The server looks for what was removed now and then only.
    wait_for("the total to fall", || store("800K", "c").status.success());
}

#[test]
fn what_can_not_be_sent_or_written_is_said() {
    let place = Place::new(&[]);
    let empty = place.home.file("empty", "");
    let sent = |source: &str| place.run(&["--source", source]);
    fails(&sent("/no/such/file"), &["/no/such/file"]);
    fails(&sent(text(&empty)), &["is empty"]);
    fails(&sent(text(place.home.path())), &["is a directory"]);
    fails(&place.run(&["--source", "-", "--mover", "sendfile"]), &["splice"]);
    fails(&place.run(&["--source", &place.big(), "-u"]), &["--udp"]);
    let full = place.run(&["-R", "--source", "big", "--sink", "/dev/full"]);
    fails(&full, &["/dev/full", "No space left", "make room"]);
}

/// The program without root's right to open whatever it likes (CAP_DAC_OVERRIDE, capabilities(7)).
fn without_override(place: &Place, options: &[&str]) -> Output {
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.arg("--bounding-set=-dac_override,-dac_read_search").arg(exe());
            command
        }
        false => Command::new(exe()),
    };
    command.args(["test", &place.server.address, "--no-store"]).args(options);
    command.output().expect("util-linux is there")
}

#[test]
fn a_file_without_its_permission_is_not_permitted() {
    let place = Place::new(&[]);
    let secret = place.home.file("secret", "x");
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    for options in [
        &["--source", text(&secret)][..],
        &["-R", "--source", "big", "--sink", text(&secret)],
        &["--size", "1M", "--record", text(&secret)],
    ] {
        let output = without_override(&place, options);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{options:?}: {said}");
        assert!(said.contains("secret") && said.contains("Permission denied"), "{said}");
    }
}

/// If nothing is done about it, the system ends a program that writes beyond this limit.
#[test]
fn a_limit_on_the_size_of_files_ends_the_test_in_words() {
    let place = Place::new(&[]);
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 100; exec \"$@\"", "sh"])
        .arg(crate::common::exe())
        .args(["test", &place.server.address, "--no-store", "-t", "60", "-R", "--sink"])
        .arg(place.home.path().join("limited"))
        .env("GOODPUT_STATE_DIR", place.home.path().join("state"))
        .output();
    fails(&output.expect("a shell can be started"), &["limited", "File too large", "ulimit -f"]);
}

/// The file is cut while it is sent repeatedly: the test ends, and says why.
#[test]
fn a_file_that_shrinks_ends_the_test() {
    let place = Place::new(&[]);
    let big = place.big();
    let sends = ["test", &place.server.address, "--no-store", "--json-stream", "-t", "60"];
    let mut child = place.home.goodput(&[&sends[..], &["--source", &big]].concat());
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut seen = String::new();
    // An interval means that payload moves.
    while !seen.contains("\"interval\"") {
        let mut some = [0; 4096];
        let count = stdout.read(&mut some).unwrap();
        assert!(count > 0, "{seen}");
        seen += &String::from_utf8_lossy(&some[..count]);
    }
    std::fs::File::options().write(true).open(&big).unwrap().set_len(1000).unwrap();
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    fails(&child.wait_with_output().unwrap(), &["shrank", "1000 now"]);
}

#[test]
fn what_the_far_end_sends_is_compared_without_its_token() {
    let place = Place::new(&[]);
    let arms = ["compare", &place.server.address, "mover=copy,sendfile", "--reverse"];
    let table = ["--sizes", "1M", "--max-time", "2", "--no-store", "--json"];
    let output = place.home.run(&[&arms[..], &table].concat());
    let record: Record = serde_json::from_slice(&output.stdout).expect("a record");
    assert!(record.doubts.iter().any(|doubt| doubt.contains("token")), "{:?}", record.doubts);
    assert_eq!(record.transfers.len(), 1);
}

#[test]
fn arms_that_make_no_sense_are_refused_before_they_run() {
    let place = Place::new(&[]);
    let (target, big) = (&place.server.address[..], place.big());
    let refused: [(&[&str], &str); 5] = [
        (&["socket.cork=off,on", "--udp"], "a cork (TCP_CORK) is for TCP"),
        (&["header.more=off,on", "--sizes", "1M"], "needs a header (--header)"),
        (&["mover=copy,sendfile", "--source", &big, "--sizes", "100G"], "fewer than"),
        (&["mover=copy,splice", "--source", "-"], "name a file"),
        (&["mover=copy,sendfile", "--clients", "2"], "give --sizes"),
    ];
    for (options, why) in refused {
        let output = place.home.run(&[&["compare", target], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(stderr(&output).contains(why), "{options:?}: {}", stderr(&output));
    }
}

#[test]
fn a_comparison_of_files_is_a_table_for_each_size_and_number_of_clients() {
    let place = Place::new(&[]);
    let compare = |options: &[&str]| {
        let arms = ["mover=copy,sendfile", "socket.cork=off,on", "--header", "512"];
        let table = ["--sizes", "1M,2M", "--clients", "1,3", "--max-time", "6", "--no-store"];
        let start = ["compare", &place.server.address];
        place.home.run(&[&start[..], &arms, &table, options].concat())
    };
    let output = compare(&["--json"]);
    let record: Record =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let cells: Vec<_> = record.transfers.iter().map(|t| (t.size_bytes, t.clients)).collect();
    let (one, two) = (Some(1 << 20), Some(2 << 20));
    assert_eq!(cells, [(one, 1), (one, 3), (two, 1), (two, 3)]);
    for transfers in &record.transfers {
        let arms: Vec<_> = transfers.methods.iter().map(|method| method.values.join(" ")).collect();
        assert_eq!(arms, ["copy off", "copy on", "sendfile off", "sendfile on"]);
        // read(2) and send(2) of 128 KiB, against one sendfile(2), beside the header's.
        let calls = |arm: usize| *transfers.methods[arm].near.calls_per_mb.get().unwrap();
        assert!(calls(0) > 1.5 * calls(2), "{} {}", calls(0), calls(2));
        assert!(transfers.methods[0].payload_per_segment_bytes.value().is_some());
        assert!(transfers.methods[0].far.peak_memory_bytes.value().is_some());
    }
    let shown = compare(&[]);
    let (text, said) = (stdout(&shown), stderr(&shown));
    assert!(text.contains("3 clients at once") && text.contains("Least CPU: "), "{text}{said}");
}

/// A client that sends a file repeatedly; returns once payload moves.
fn sending(place: &Place, source: &str) -> Child {
    let sends = ["test", &place.server.address, "--no-store", "--json-stream", "-t", "60"];
    let mut child = place.home.goodput(&[&sends[..], &["--source", source]].concat());
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("goodput can be started");
    let (mut lines, mut line) =
        (BufReader::new(child.stdout.as_mut().expect("it is piped")), String::new());
    while !line.contains("\"interval\"") {
        line.clear();
        assert!(
            lines.read_line(&mut line).expect("it is text") > 0,
            "it ended before payload moved"
        );
    }
    child
}

/// The name of a file that is open means nothing any more: what was opened is sent to its end.
#[test]
fn a_file_whose_name_vanishes_is_sent_all_the_same() {
    let place = Place::new(&[]);
    let mut child = sending(&place, &place.big());
    std::fs::remove_file(place.big()).unwrap();
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!stderr(&output).contains("can't"), "{}", stderr(&output));
}

/// A file of holes, which to read takes minutes.
#[test]
fn an_interrupt_ends_the_reading_of_a_large_file() {
    let place = Place::new(&[]);
    let large = place.home.file("large", "");
    std::fs::File::options().write(true).open(&large).unwrap().set_len(1 << 40).unwrap();
    let sends = ["test", &place.server.address, "--no-store", "--json-stream", "--source"];
    let mut child = place.home.goodput(&[&sends[..], &[text(&large)]].concat());
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("connected"), "{line}");
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    fails(&child.wait_with_output().unwrap(), &["interrupted"]);
}

#[test]
fn sizes_beyond_the_memory_of_a_host_are_refused() {
    let place = Place::new(&[]);
    fails(&place.run(&["--size", "100T"]), &["file in memory", "available", "smaller --size"]);
    fails(&place.run(&["--size", "100T", "-R"]), &["refused", "smaller --size"]);
}

#[test]
fn a_source_that_gives_not_one_byte_is_no_measurement() {
    let place = Place::new(&[]);
    // Standard input is at its end from the beginning.
    fails(&place.run(&["--source", "-"]), &["standard input", "gave no data"]);
    let fifo = place.home.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .unwrap();
    fails(&place.run(&["--source", text(&fifo)]), &["fifo", "gave no data"]);
    std::fs::write(place.home.path().join("files/empty"), "").expect("it is writable");
    fails(&place.run(&["-R", "--source", "empty"]), &["refused", "empty is empty"]);
    fails(&place.run(&["-R", "--source", "nothing-here"]), &["refused", "nothing-here"]);
    fails(&place.run(&["-R", "--sink", text(&fifo)]), &["fifo", "nobody reads it"]);
}

/// A disk of 1 MB at the server, for every process that it starts.
fn server_with_a_small_disk(home: &Home) -> Option<(Child, String)> {
    let disk = home.path().join("disk");
    std::fs::create_dir(&disk).expect("a new directory");
    let script = "mount -t tmpfs -o size=1m none \"$1\" && \
         exec \"$0\" serve --bind 127.0.0.1 --port 0 --sinks \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(exe()).arg(disk);
    command.env("XDG_DATA_HOME", home.path()).env("GOODPUT_STATE_DIR", home.path().join("state"));
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take()?).read_line(&mut line).ok()?;
    if line.is_empty() {
        let _ = server.wait();
        return None;
    }
    Some((server, line.trim().rsplit(' ').next()?.to_string()))
}

#[test]
fn a_full_disk_of_the_server_ends_the_test_and_leaves_it_serving() {
    let home = Home::new();
    let Some((mut server, address)) = server_with_a_small_disk(&home) else {
        return goodput_testing::skip("the right to mount (root)");
    };
    let big = home.file("big", "");
    std::fs::write(&big, content()).expect("it is writable");
    for options in [&["--source", text(&big)][..], &["-t", "60"], &["-t", "60", "-P", "3"]] {
        let all = ["test", &address, "--no-store", "--sink", "x"];
        let output = home.run(&[&all[..], options].concat());
        fails(&output, &["refused", "the sink x", "No space left", "make room"]);
    }
    let after = home.run(&["test", &address, "--no-store", "-n", "1M"]);
    assert!(after.status.success(), "{}", stderr(&after));
    server.kill().expect("it runs");
    server.wait().expect("it was a child");
}
