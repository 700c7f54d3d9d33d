//! A `goodput watch` that goes on.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::common::Home;

/// A watch that goes on.
pub struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_with(home, arguments, Stdio::inherit())
    }

    pub fn start_with(home: &Home, arguments: &[&str], stderr: Stdio) -> Self {
        Self::of(home.goodput(&[&["watch", "--json"][..], arguments].concat()), stderr)
    }

    pub fn of(mut command: Command, stderr: Stdio) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the program under test can be started");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, lines }
    }

    /// The next event. If it is a result, its goodput in bits per second is added to `rates`.
    pub fn event_with(&mut self, rates: &mut Vec<f64>) -> Value {
        let event = self.event();
        rates.extend(event["goodput_bits_per_s"].as_f64());
        event
    }

    pub fn event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the watch and kill work");
        let event: Value =
            serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"));
        assert!(event["at"].is_string(), "each event says when: {line}");
        event
    }

    /// Ends it as systemd does. Returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .expect("the watch and kill work")
                .success()
        );
        self.child.wait().expect("the watch and kill work").code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
