//! Chromium without a screen, by the DevTools protocol: JSON that ends in a zero byte, on two pipes.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use command_fds::{CommandFdExt, FdMapping};
use goodput_testing::{WAIT_TIMEOUT, everything_required, skip, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What Debian's package installs.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Lists what is wrong with a page.
const ACCESSIBLE: &str = include_str!("accessible.js");

/// Lists what a person could not read of it.
const LEGIBLE: &str = include_str!("legible.js");

/// No sandbox, which root can't have; and nothing that asks other hosts.
const OPTIONS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
];

/// A browser with one page, ended with the test.
pub struct Browser {
    child: Child,
    to: PipeWriter,
    from: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// Events that nobody has looked at.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it; `None`, and the test counts as skipped, if it is not installed.
    pub fn open() -> Option<Self> {
        if !std::path::Path::new(CHROMIUM).exists() && !everything_required() {
            skip("chromium");
            return None;
        }
        let profile = tempfile::tempdir().expect("a temporary directory can be made");
        let (theirs, to) = std::io::pipe().expect("a pipe can be made");
        let (from, answers) = std::io::pipe().expect("a pipe can be made");
        let mapped = |parent_fd, child_fd| FdMapping { parent_fd, child_fd };
        let child = Command::new(CHROMIUM)
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .fd_mappings(vec![mapped(theirs.into(), 3), mapped(answers.into(), 4)])
            .expect("no descriptor is mapped twice")
            .spawn()
            .expect("chromium can be started");
        let (events, session) = (Vec::new(), None);
        let from = messages(from);
        let mut browser = Self { child, to, from, last: 0, session, events, _profile: profile };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let target = self.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.ask("Target.attachToTarget", target);
        self.session = attached["sessionId"].as_str().map(Into::into);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Lets pages come from servers for whose certificate nobody vouches.
    pub fn trust_every_certificate(&mut self) {
        self.ask("Security.setIgnoreCertificateErrors", json!({ "ignore": true }));
    }

    /// Opens a page and waits until everything of it is loaded.
    pub fn visit(&mut self, url: &str) {
        self.forget_loads();
        let gone = self.ask("Page.navigate", json!({ "url": url }));
        assert!(gone["errorText"].is_null(), "{url}: {gone}");
        self.await_load();
    }

    /// Runs a script that leads to another page, and waits for it.
    pub fn leave_by(&mut self, script: &str) {
        self.forget_loads();
        self.evaluate(script);
        self.await_load();
    }

    /// The value of an expression in the page.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression in the page is true.
    pub fn wait(&mut self, script: &str) {
        wait_for(script, || self.evaluate(script) == json!(true));
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let pressed = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.ask("Input.dispatchKeyEvent", pressed);
        }
    }

    /// Makes the window this wide, and the paper dark or light.
    pub fn look(&mut self, width: u32, dark: bool) {
        self.show_on("", width, dark);
    }

    /// Shows pages as they are printed, on A4 paper without its margins, by a person whose screen is dark or light.
    pub fn print(&mut self, dark: bool) {
        const A4_PIXELS: u32 = 700;
        self.show_on("print", A4_PIXELS, dark);
    }

    fn show_on(&mut self, media: &str, width: u32, dark: bool) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
    }

    /// Runs no script of the pages that come, as a browser without JavaScript.
    pub fn run_no_scripts(&mut self) {
        self.ask("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    }

    /// Keeps a picture of the whole page for people, in `target/screenshots`.
    pub fn photograph(&mut self, name: &str) {
        let shot = self.ask("Page.captureScreenshot", json!({ "captureBeyondViewport": true }));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&folder).expect("the target directory is writable");
        let picture = base64(shot["data"].as_str().unwrap_or_default());
        std::fs::write(folder.join(format!("{name}.png")), picture).expect("it is writable");
    }

    /// What programs like axe, or a person who reads it, would find wrong with the open page on this paper.
    pub fn problems(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        for list in [ACCESSIBLE, LEGIBLE] {
            let Value::Array(found) = self.evaluate(list) else { panic!("a list") };
            problems.extend(found.iter().map(Value::to_string));
        }
        problems
    }

    /// How many pixels the open page needs, if it needs more than these.
    pub fn wider_than(&mut self, width: u32) -> Option<String> {
        let needs = self.evaluate("document.documentElement.scrollWidth");
        let fits = needs.as_u64().is_some_and(|needs| needs <= width.into());
        (!fits).then(|| format!("needs {needs} pixels of {width}"))
    }

    /// What the page has complained about since the last look, and what it loaded from elsewhere than `own`. The browser
    /// itself complains about the status of a page.
    pub fn complaints(&mut self, own: &str) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        events.iter().filter_map(|event| complaint(event, own)).collect()
    }

    /// So that the end of an earlier page's loading isn't taken for that of the next one.
    fn forget_loads(&mut self) {
        self.events.retain(|event| !is_load(event));
    }

    fn await_load(&mut self) {
        loop {
            if let Some(at) = self.events.iter().position(is_load) {
                self.events.remove(at);
                return;
            }
            let next = self.next();
            self.events.push(next);
        }
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.to, "{message}\0").expect("chromium reads");
        loop {
            let mut answer = self.next();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn next(&mut self) -> Value {
        self.from.recv_timeout(WAIT_TIMEOUT).expect("chromium says something")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes on a pipe, so that nobody waits for ever.
fn messages(from: PipeReader) -> Receiver<Value> {
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(from).split(0).map_while(Result::ok) {
            let message = serde_json::from_slice(&message).expect("chromium speaks JSON");
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    messages
}

fn is_load(event: &Value) -> bool {
    event["method"] == "Page.loadEventFired"
}

fn complaint(event: &Value, own: &str) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" | "Page.javascriptDialogOpening" => Some(parameters.to_string()),
        "Runtime.consoleAPICalled" => Some(parameters["args"].to_string()),
        "Log.entryAdded" if parameters["entry"]["source"] == "network" => None,
        "Log.entryAdded" => Some(parameters["entry"]["text"].to_string()),
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str()?;
            // The browser's own controls have pictures that are data.
            (!url.starts_with(own) && !url.starts_with("data:")).then(|| format!("loads {url}"))
        }
        _ => None,
    }
}

/// Decodes base64 (RFC 4648) without line ends.
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text.bytes().filter_map(|byte| LETTERS.iter().position(|l| *l == byte));
    let values: Vec<u32> = values.map(|value| value as u32).collect();
    let mut bytes = Vec::new();
    for group in values.chunks(4) {
        let bits = group.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
