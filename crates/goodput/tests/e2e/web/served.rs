//! A running `goodput web` with two results, whose names a hostile peer chose.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};

use goodput_model::{BitRate, Known, Record};
use goodput_store::Store;
use serde_json::Value;

use crate::common::Home;

/// The name of everything that a peer may name.
pub const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>";

const RECORDS: [&str; 3] = [
    include_str!("../../../../charts/tests/records/window.json"),
    include_str!("../../../../charts/tests/records/compare.json"),
    include_str!("../../../../charts/tests/records/both.json"),
];

/// Texts of a record that a peer may choose.
const CHOSEN: [&str; 5] = ["target", "kernel", "summary", "text", "why"];

/// The server; ended with the test.
pub struct Web {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    /// Its home.
    pub home: Home,
    /// `127.0.0.1:PORT`.
    pub address: String,
    scheme: &'static str,
}

impl Web {
    pub fn start(options: &[&str]) -> Self {
        let home = Home::new();
        let store = Store::open(&home.path().join("goodput/history.db")).expect("it can be made");
        for text in RECORDS {
            store.add(&hostile(text)).expect("it is a record");
        }
        let all = [&["web", "--listen", "127.0.0.1:0"], options].concat();
        let mut child =
            home.goodput(&all).stdout(Stdio::piped()).spawn().expect("it can be started");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        stdout.read_line(&mut line).expect("it says where it listens");
        let address = line.trim().rsplit("//").next().unwrap_or_default().trim_end_matches('/');
        let scheme = if options.contains(&"--tls-cert") { "https" } else { "http" };
        let listens = format!("goodput web listening on {scheme}://127.0.0.1:");
        assert!(line.starts_with(&listens), "{line:?}");
        let address = address.to_owned();
        Self { child, _stdout: stdout, home, address, scheme }
    }

    /// Adds a result of each pair of four hosts, of which one sends slowly; what peers may name is hostile.
    pub fn add_mesh(&self) {
        let store = Store::open(&self.home.path().join("goodput/history.db")).expect("it is there");
        let pairs = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let mut record = hostile(RECORDS[0]);
            for (end, number) in [(&mut record.ends.near, from), (&mut record.ends.far, to)] {
                let Known::Value(end) = end else { panic!("both ends are known") };
                end.host.name = format!("{number}{HOSTILE}");
            }
            let rate = if from == 2 { 1e8 } else { 9e8 };
            record.result.directions[0].goodput_bits_per_s = BitRate(rate + f64::from(to) * 1e6);
            store.add(&record).expect("it is a record");
        }
    }

    /// The pages' own address.
    pub fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, without a chance to clean up.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is a child");
    }

    /// What lets a person in.
    pub fn token(&self) -> String {
        let file = self.home.path().join("goodput/web-token");
        std::fs::read_to_string(file).expect("it was made").trim().into()
    }

    /// Sends these bytes, and returns what comes until the server ends the connection.
    pub fn say(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        // It may have ended the connection already.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into()
    }

    /// What a page is answered, with its head.
    pub fn get(&self, path: &str) -> String {
        self.get_as(path, "")
    }

    /// The same for one who has this cookie.
    pub fn get_as(&self, path: &str, cookie: &str) -> String {
        let host = &self.address;
        self.say(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ))
    }

    /// What a form is answered, with its head.
    pub fn post(&self, path: &str, cookie: &str, fields: &str) -> String {
        let (host, length) = (&self.address, fields.len());
        self.say(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{fields}"
        ))
    }

    /// The cookie of one who has logged in, and what their forms contain.
    pub fn log_in(&self) -> (String, String) {
        let answer = self.post("/login", "", &format!("token={}", self.token()));
        let cookie = between(&answer.to_lowercase(), "set-cookie: ", ";").to_owned();
        // The value is in the case in which it was sent.
        let at = answer.to_lowercase().find(&cookie).expect("it is there");
        let cookie = answer[at..at + cookie.len()].to_owned();
        let page = self.get_as("/tests", &cookie);
        (cookie, between(&page, "name=\"form\" value=\"", "\"").to_owned())
    }
}

/// The processes that a process has started (proc_pid_children, proc(5)).
pub fn children(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let all = tasks.flatten().filter_map(|task| of_task(task).ok());
    all.flat_map(|pids| pids.split_whitespace().map(Into::into).collect::<Vec<_>>()).collect()
}

/// The text between two others.
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?}: {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after:?}: {rest}")).0
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A record with a hostile name wherever a peer may choose one.
pub fn hostile(text: &str) -> Record {
    let mut record: Value = serde_json::from_str(text).expect("it is JSON");
    rename(&mut record);
    Record::from_json(&record.to_string()).expect("it is a record")
}

fn rename(value: &mut Value) {
    // A host, which also has a name.
    if value.get("kernel").is_some() {
        value["name"] = HOSTILE.into();
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if CHOSEN.contains(&name.as_str()) => {
                        *text = HOSTILE.into()
                    }
                    other => rename(other),
                }
            }
        }
        _ => {}
    }
}
