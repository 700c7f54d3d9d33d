//! A server for one test: a process of its own, as `goodput serve` always is, which knows one client by its key.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use goodput_fleet::Task;
use goodput_kernel::{SocketFilter, foreign_sockets};
use goodput_model::{BitRate, Bytes};
use goodput_wire::keys::{KeyFile, PublicKey};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::target::{self, Far};
use crate::args::rate;
use crate::commands::serve_cost::COST;
use crate::{key_files, screen};

/// How long the server may take to begin, or to end.
pub(super) const BEGIN: Duration = Duration::from_secs(8);
/// How long the last words of a server that has ended may take.
const HEARD: Duration = Duration::from_secs(1);
/// How long it stays open beside the test itself: for the near agent to come, and for both ends to report.
const BESIDE: Duration = Duration::from_secs(45);

/// A running server. Dropping this ends it.
pub(super) struct Listener {
    /// The task that it is for.
    pub task: String,
    /// The word of the site that calls.
    pub caller: String,
    /// Where it listens.
    pub port: u16,
    /// What it proves.
    pub key: PublicKey,
    child: Child,
    /// It ends with this process, and with it the server.
    input: Option<ChildStdin>,
    /// What its test has cost, as it counts by itself.
    pub cost: Cost,
    /// Hears that, until it ends.
    hears: JoinHandle<()>,
    /// Its key, and the list of keys that it knows.
    _folder: TempDir,
    /// When it ends at the latest.
    pub closes: Instant,
    /// How often its caller was asked in vain, one time after the other.
    pub unheard: u32,
    /// Since when it ends. Who waits for that may go away, and another one waits no longer for it.
    closing_since: Option<Instant>,
    _turn: OwnedMutexGuard<()>,
}

impl Listener {
    /// Starts a server for the near end of a task: the word of its site, and the key that it will prove. Its test may have at most
    /// this rate, and cost so much. `turn` is this agent's right to be in a test.
    pub async fn open(
        task: &Task,
        (caller, near): (&str, &str),
        most: (Option<BitRate>, Option<Bytes>),
        turn: OwnedMutexGuard<()>,
    ) -> Result<Self> {
        let Far::Agent(_, asked) = target::of(task)? else {
            bail!("{} is a server that stands open; no agent opens one for it", task.target);
        };
        let near: PublicKey = near.parse()?;
        let own = KeyFile::new("agent", rand::random())?;
        let folder = folder(&own, near).context("can't make the keys of a server")?;
        let mut child = command(task, asked, most, folder.path())
            .spawn()
            .context("can't start a server for the test")?;
        // Waiting for the child would close it.
        let input = child.stdin.take();
        let Some(stdout) = child.stdout.take() else { bail!("the server has no output") };
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(repeat(stderr, format!("{} → {}", task.sender(), task.receiver())));
        }
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(BEGIN, lines.next_line()).await.context("the server did not begin")?;
        let Some(port) = line?.as_deref().and_then(port) else {
            bail!("the server for the test did not begin; the agent's log says why")
        };
        let cost = Cost::default();
        let hears = tokio::spawn(cost.clone().hear(lines));
        Ok(Self {
            task: task.id.clone(),
            caller: caller.into(),
            port,
            key: own.key.public(),
            child,
            input,
            cost,
            hears,
            _folder: folder,
            unheard: 0,
            closes: Instant::now() + Duration::from_secs_f64(task.length_s) + BESIDE,
            closing_since: None,
            _turn: turn,
        })
    }

    /// Waits until the server has served its client, or its time is over. May be dropped while it waits.
    pub async fn ended(&mut self) {
        let closes = if self.is_closing() { Instant::now() } else { self.closes };
        tokio::select! {
            () = self.gone() => {}
            () = sleep_until(closes) => self.close().await,
        }
    }

    /// Whether it was told to end.
    pub fn is_closing(&self) -> bool {
        self.closing_since.is_some()
    }

    /// Waits for the end of the process. One that ends by itself says before what its test has cost.
    async fn gone(&mut self) {
        if self.child.wait().await.is_ok_and(|status| status.success()) {
            self.cost.has_ended();
        }
    }

    /// Whether a client is connected. Who can't look does not know, and says that one is.
    pub fn has_client(&self) -> bool {
        let of_port = SocketFilter { port: Some(self.port), inodes: None };
        foreign_sockets(&of_port)
            .map_or(true, |sockets| sockets.iter().any(|one| one.local.port() == self.port))
    }

    /// Ends the server, and waits until its port is closed. May be dropped while it waits, and called again: the server has
    /// [`BEGIN`] from the first time on, and is killed then.
    pub async fn close(&mut self) {
        // It stops its flows by itself once its input ends; this host may be too busy for that.
        self.input = None;
        let since = *self.closing_since.get_or_insert_with(Instant::now);
        if timeout_at(since + BEGIN, self.gone()).await.is_err()
            && let Err(why) = self.child.kill().await
        {
            tracing::warn!("can't end the server of task {}: {why}", self.task);
        }
        // What it has said last, which is here by now.
        if !self.hears.is_finished() {
            let _ = timeout(HEARD, &mut self.hears).await;
        }
    }
}

/// What a test has cost, as the server counts that is made for it: who calls may say anything. All clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Cost(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    bytes: AtomicU64,
    /// The server has ended by itself, and has said before what it has counted.
    is_whole: AtomicBool,
}

impl Cost {
    /// What is known of it.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.0.bytes.load(Ordering::Relaxed))
    }

    /// The same, if it is all.
    pub fn whole(&self) -> Option<Bytes> {
        self.0.is_whole.load(Ordering::Relaxed).then(|| self.bytes())
    }

    /// The server has counted so much by now.
    pub fn count(&self, bytes: u64) {
        self.0.bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The server has ended by itself.
    pub fn has_ended(&self) {
        self.0.is_whole.store(true, Ordering::Relaxed);
    }

    /// Hears what the server says until it ends.
    async fn hear(self, mut lines: Lines<BufReader<ChildStdout>>) {
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(cost) = line.strip_prefix(COST).and_then(|cost| cost.parse().ok()) {
                self.count(cost);
            }
        }
    }
}

/// Repeats what a server says with the pair that it is for, until it ends.
async fn repeat(said: ChildStderr, pair: String) {
    let mut lines = BufReader::new(said).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        screen::say(format_args!("goodput: {pair}: {}", own_words(&line)));
    }
}

/// A line of a server without the name of the program, and without the blanks that a log begins with.
fn own_words(line: &str) -> &str {
    let line = line.trim_start();
    line.strip_prefix("goodput: ").unwrap_or(line)
}

/// The keys of both ends, each in a directory of its own: the server gives up its user, and may open what lies beside the
/// list.
fn folder(own: &KeyFile, near: PublicKey) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    key_files::keep(&folder.path().join("key"), own, false)?;
    let known = folder.path().join("known");
    let list = known.join("keys");
    fs::create_dir(&known)?;
    fs::write(&list, format!("near measure {near} max-measurements=1\n"))?;
    for (path, mode) in [(folder.path(), 0o755), (&*known, 0o755), (&*list, 0o644)] {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(folder)
}

fn command(
    task: &Task,
    port: Option<u16>,
    (max_rate, max_cost): (Option<BitRate>, Option<Bytes>),
    folder: &Path,
) -> Command {
    // The program as it was started, also if its file has been replaced since.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["serve", "--one-off", "--end-with-input", "--require-credential"])
        .args(["--protocols", "goodput", "--port", &port.unwrap_or(0).to_string()])
        .args(["--max-duration", &format!("{}s", task.length_s.ceil())])
        .args(max_rate.iter().flat_map(|most| ["--max-rate".into(), rate::typed(*most)]))
        .args(max_cost.iter().flat_map(|most| ["--max-cost".into(), most.0.to_string()]))
        .arg("--key")
        .arg(folder.join("key"))
        .arg("--authorized-keys")
        .arg(folder.join("known/keys"))
        // A token would let others in.
        .env_remove("GOODPUT_TOKEN_FILE")
        // Only the agent reports to systemd.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// The port in `goodput 0.1.0 listening on [::]:7487`.
fn port(line: &str) -> Option<u16> {
    let address: SocketAddr = line.rsplit_once(' ')?.1.parse().ok()?;
    Some(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_has_counted_is_all_once_it_has_ended_by_itself() {
        let cost = Cost::default();
        cost.count(7);
        assert_eq!((cost.bytes(), cost.whole()), (Bytes(7), None));
        cost.has_ended();
        assert_eq!(cost.clone().whole(), Some(Bytes(7)));
    }

    /// A server that does not end by itself, whatever becomes of its input.
    fn hung() -> Listener {
        let mut command = Command::new("sleep");
        let child = command.arg("infinity").stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = child.unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let cost = Cost::default();
        Listener {
            task: "t".into(),
            caller: "a".into(),
            port: 0,
            key: KeyFile::new("agent", [1; 32]).unwrap().key.public(),
            child,
            input: None,
            hears: tokio::spawn(cost.clone().hear(lines)),
            cost,
            _folder: tempfile::tempdir().unwrap(),
            closes: Instant::now() + BESIDE,
            unheard: 0,
            closing_since: None,
            _turn: Arc::new(tokio::sync::Mutex::new(())).try_lock_owned().unwrap(),
        }
    }

    /// As by an agent that looks each three seconds at what tests cost, and is called meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_hung_server_is_killed_in_time_however_often_its_end_is_waited_for() {
        let (mut listener, began) = (hung(), Instant::now());
        for _ in 0..3 {
            assert!(timeout(BEGIN / 4, listener.close()).await.is_err());
        }
        assert!(listener.is_closing());
        listener.ended().await;
        assert!(began.elapsed() <= BEGIN + HEARD);
        assert!(listener.child.try_wait().unwrap().is_some());
        assert_eq!(listener.cost.whole(), None, "it did not end by itself");
    }

    #[test]
    fn a_line_of_a_server_has_the_name_of_the_program_once() {
        for line in ["goodput: can't listen", " can't listen", "can't listen"] {
            assert_eq!(own_words(line), "can't listen");
        }
    }

    #[test]
    fn the_first_line_of_a_server_has_its_port() {
        assert_eq!(port("goodput 0.1.0 listening on [::]:7487"), Some(7487));
        assert_eq!(port("goodput 0.1.0 listening on 0.0.0.0:1"), Some(1));
        assert_eq!(port("goodput: can't listen"), None);
    }
}
