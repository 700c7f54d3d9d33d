//! Debian's PostgreSQL, with its files in a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Running, certificate, free_port};
use crate::{skip, wait_for};

/// Where Debian has the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The user and group `nobody`: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

/// Who logs in: with this password by TCP, and without one at the socket in the folder.
const USER: &str = "goodput";
const PASSWORD: &str = "secret";

/// The server that tests of this program share now.
static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());

/// A server with databases of its own, which ends with it.
pub struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    address: SocketAddr,
    server: Mutex<Option<Child>>,
    databases: AtomicUsize,
}

/// The server that the running tests share. None, and the test is skipped, if PostgreSQL is not installed.
pub fn postgres() -> Option<Arc<Postgres>> {
    let mut shared = locked(&SHARED);
    if let Some(running) = shared.upgrade() {
        return Some(running);
    }
    let started = Arc::new(own_postgres()?);
    *shared = Arc::downgrade(&started);
    Some(started)
}

/// A server for one test, which may stop it.
pub fn own_postgres() -> Option<Postgres> {
    let Some(programs) = programs() else {
        skip("PostgreSQL is not installed");
        return None;
    };
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let (server, databases) = (Mutex::new(None), AtomicUsize::new(0));
    let postgres = Postgres { folder, programs, address, server, databases };
    postgres.initialize();
    postgres.listen("127.0.0.1");
    Some(postgres)
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?.filter_map(Result::ok);
    let programs = versions.map(|version| version.path().join("bin"));
    programs.filter(|bin| bin.join("initdb").exists()).max()
}

impl Postgres {
    fn initialize(&self) {
        let folder = self.folder.path();
        certificate(folder, false);
        let password = folder.join("password");
        fs::write(&password, PASSWORD).expect("the folder is writable");
        fs::set_permissions(folder.join("key.pem"), fs::Permissions::from_mode(0o600))
            .expect("the key is ours");
        if is_root() {
            let files = ["", "key.pem", "cert.pem", "password"].map(|name| folder.join(name));
            files.iter().for_each(|file| {
                chown(file, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
            });
        }
        let mut initdb = self.command("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--username", USER]);
        initdb.args(["--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile"]);
        initdb.arg(password).arg("--pgdata").arg(folder.join("data"));
        let made = initdb.output().expect("initdb can be started");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Starts it again, at its socket only: its port may be another's by now.
    pub fn start(&self) {
        self.listen("");
    }

    fn listen(&self, host: &str) {
        let folder = self.folder.path();
        let mut command = self.command("postgres");
        // Nothing of a test has to survive a power cut.
        command.args(["-F", "-h", host, "-p", &self.address.port().to_string(), "-k"]);
        command.arg(folder).arg("-D").arg(folder.join("data")).args(["-c", "ssl=on"]);
        for (option, file) in [("ssl_cert_file", "cert.pem"), ("ssl_key_file", "key.pem")] {
            command.arg("-c").arg(format!("{option}={}", folder.join(file).display()));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        *locked(&self.server) = Some(command.spawn().expect("the server can be started"));
        wait_for("PostgreSQL to accept connections", || {
            self.client("pg_isready").output().is_ok_and(|output| output.status.success())
        });
    }

    /// Ends it at once, with all its connections. What it has stored stays.
    pub fn stop(&self) {
        if let Some(mut server) = locked(&self.server).take() {
            signal(&server, "-QUIT");
            let _ = server.wait();
        }
    }

    /// Lets it do nothing, not even refuse.
    pub fn freeze(&self) {
        if let Some(server) = &*locked(&self.server) {
            signal(server, "-STOP");
        }
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        if let Some(server) = &*locked(&self.server) {
            signal(server, "-CONT");
        }
    }

    /// Makes an empty database. Returns its name.
    pub fn new_database(&self) -> String {
        let name = format!("net{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Says this to a database. Returns what it answers, a line for each row.
    pub fn sql(&self, database: &str, text: &str) -> String {
        let mut psql = self.client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text]);
        let said = psql.output().expect("psql can be started");
        assert!(said.status.success(), "{text}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).trim_end().to_owned()
    }

    /// A session that does this to a database and keeps its locks, for as long as it is held.
    pub fn hold(&self, database: &str, text: &str) -> Running {
        let mut psql = self.client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-d", database]);
        let child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("psql can be started");
        let said = format!("BEGIN; {text}; SELECT 'held';\n");
        let written = child.stdin.as_mut().map(|input| input.write_all(said.as_bytes()));
        assert!(written.is_some_and(|written| written.is_ok()), "psql reads");
        let mut answer = String::new();
        let read = child.stdout.as_mut().map(|out| BufReader::new(out).read_line(&mut answer));
        assert!(read.is_some_and(|read| read.is_ok()) && answer == "held\n", "{answer}");
        Running(child)
    }

    /// The URL of a database at the server's socket, where no password is asked for.
    pub fn url(&self, database: &str) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{socket}:{}/{database}", self.address.port())
    }

    /// The URL of a database by TCP, with this password. Nobody answers there after it was started again.
    pub fn tcp_url(&self, database: &str, password: &str) -> String {
        format!("postgres://{USER}:{password}@{}/{database}", self.address)
    }

    /// The password by TCP.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The file with its certificate, which nobody else has signed.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// A client of PostgreSQL, at the server's socket.
    fn client(&self, program: &str) -> Command {
        let mut client = self.command(program);
        client.arg("-h").arg(self.folder.path());
        client.args(["-p", &self.address.port().to_string(), "-U", USER]);
        client
    }

    /// A program of PostgreSQL, as a user who is not root.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => as_nobody(&program),
            false => Command::new(program),
        };
        // Others may not enter the directory of the tests.
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.thaw();
        self.stop();
    }
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={NOBODY}"));
    command.arg("--clear-groups").arg(program);
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn signal(server: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &server.id().to_string()]).status();
    assert!(sent.is_ok_and(|sent| sent.success()), "kill {signal}");
}

/// The value, also after a test that held it has failed.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
