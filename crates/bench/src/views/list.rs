//! The pages of a long history, as a browser asks for them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use goodput_model::median;

use super::{Figure, Stage};
use goodput_tools::shell::run as run_command;

/// How often each page is asked for.
const TIMES: usize = 11;

/// Pages with a list, with what is in the history (`crates/store/examples/long_history.rs`).
const PAGES: [(&str, &str); 4] = [
    ("the list", "/"),
    ("a search for a target", "/?q=host-77"),
    ("a search without a result", "/?q=nowhere"),
    ("a path over time", "/path?target=host-7"),
];

pub fn figures(stage: &Stage<'_>) -> Result<Vec<Figure>> {
    let fill = stage.program.parent().context("a program is in a folder")?;
    let fill = fill.join("examples/long_history");
    let mut filled = Command::new(&fill);
    filled.arg(stage.folder()).arg(stage.options.results.to_string()).stdout(Stdio::null());
    run_command(&mut filled).with_context(|| format!("can't run {}", fill.display()))?;
    let web = Web::start(stage)?;
    let mut figures = Vec::new();
    for (name, path) in PAGES {
        let mut milliseconds = Vec::new();
        for _ in 0..TIMES {
            let began = Instant::now();
            web.get(path)?;
            milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let milliseconds = median(milliseconds).context("nothing was asked")?;
        let what = format!("{name} of {} results, milliseconds", stage.options.results);
        figures.push(Figure::at_most(what, milliseconds, 100.0));
    }
    Ok(figures)
}

/// A running `goodput web`; it ends with this.
struct Web {
    child: Child,
    address: String,
}

impl Web {
    fn start(stage: &Stage<'_>) -> Result<Self> {
        let mut web = Command::new(&stage.program);
        web.args(["web", "--listen", "127.0.0.1:0"]).env("XDG_DATA_HOME", stage.folder());
        web.env("XDG_STATE_HOME", stage.folder());
        let mut child = web.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("stdout is piped")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().trim_end_matches('/').rsplit("//").next().unwrap_or_default();
        Ok(Self { child, address: address.into() })
    }

    fn get(&self, path: &str) -> Result<()> {
        let mut stream = TcpStream::connect(&self.address)
            .with_context(|| format!("`goodput web` does not answer at {:?}", self.address))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{path} was refused");
        Ok(())
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // If this fails, it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
