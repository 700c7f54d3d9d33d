//! A running `goodput web` with two results, whose names a hostile peer chose.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};

use goodput_model::Record;
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
        assert!(line.starts_with("goodput web listening on http://127.0.0.1:"), "{line:?}");
        let address = address.to_owned();
        Self { child, _stdout: stdout, home, address }
    }

    /// The pages' own address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
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
        let host = &self.address;
        self.say(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hostile(text: &str) -> Record {
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
