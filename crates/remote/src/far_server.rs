//! A server for measurements at a host, which runs for as long as a session there.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::address::Address;
use crate::command::Command;
use crate::error::RemoteError;
use crate::plain;
use crate::shell::Shell;
use crate::ssh::{Access, LOGIN_TIME, PROGRAM_TIME, Session, host_name};

/// A program that can serve.
struct Program {
    /// Its name, which is also that of its protocol.
    name: &'static str,
    /// Port unless the user chose one; 0 is any that is free.
    port: u16,
    /// Its arguments before the port. The file `secret` in the server's folder has a token.
    before_port: &'static [&'static str],
    /// Its arguments after the port.
    after_port: &'static [&'static str],
    /// Whether it lets in only those who know the secret.
    has_secret: bool,
}

/// Programs that can serve, the best first.
const PROGRAMS: [Program; 2] = [
    Program {
        name: "goodput",
        port: 0,
        before_port: &["serve", "--require-credential", "--protocols", "goodput", "--port"],
        after_port: &["--token-file", "secret"],
        has_secret: true,
    },
    Program {
        name: "iperf3",
        port: 5201,
        before_port: &["--server", "--forceflush", "--port"],
        after_port: &[],
        has_secret: false,
    },
];

/// Finds a program, also where users install their own.
const FIND: &str = "PATH=$PATH:/usr/local/bin:$HOME/.local/bin:$HOME/.cargo/bin; command -v \"$1\"";

/// Starts a server, `"$@"`, in a folder of its own. Prints the folder, the secret, and then what the server has said when it
/// listens, has ended, or some seconds are over. A process stays with the server and ends it if the shell of the session is
/// gone, if it is told to stop, or after 30 s without a beat: a connection that is cut in silence keeps its shell for
/// hours. One line, because a session carries no others. A redirection without a command, or after echo, may fail; after
/// `:` it would end the shell.
const START: &str = "umask 077; main=$PPID; t=$(mktemp -d) && cd \"$t\" || exit; \
     od -An -tx1 -N32 /dev/urandom | tr -d ' \\n' >secret; >said; [ -s secret ] && [ -e said ] || { cd /; rm -r \"$t\"; exit 1; }; \
     { \"$@\" >said 2>&1 & server=$!; trap '' HUP INT QUIT TERM PIPE; n=0; \
     until [ -e ended ] || [ -e stop ] || [ $n -ge 30 ] || ! kill -0 \"$main\"; do \
     rm beat && n=0 || n=$((n + 1)); kill -0 \"$server\" || >ended; sleep 1; done; \
     [ -e ended ] || kill \"$server\"; wait \"$server\"; cd /; rm -r \"$t\"; } </dev/null >/dev/null 2>&1 & \
     n=0; until grep -q 'istening on ' said || [ -e ended ] || [ $n -ge 60 ]; do \
     sleep 0.1 2>/dev/null && n=$((n + 1)) || { sleep 1; n=$((n + 10)); }; done; \
     echo \"$t\"; cat secret; echo; cat said";

/// Says that the session is there, after `server` has been set to the server's folder.
const BEAT: &str = "echo 2>/dev/null >\"$server/beat\"\n";

/// Ends the server of the folder `$1`, and waits until it is gone.
const STOP: &str =
    "echo >\"$1/stop\"; n=0; while [ -d \"$1\" ] && [ $n -lt 10 ]; do sleep 1; n=$((n + 1)); done";

/// A running server. Dropping it ends the server, which takes a second or two.
pub struct FarServer {
    /// Where it is, for this host's resolver: what ssh makes of the name that the user typed.
    pub host_name: String,
    /// Where it listens.
    pub port: u16,
    /// The protocol that it speaks, by its scheme.
    pub protocol: &'static str,
    /// The token without which it refuses everybody; `None` if its protocol has no such thing.
    pub secret: Option<String>,
    folder: String,
    session: Session,
}

impl Drop for FarServer {
    fn drop(&mut self) {
        // If the connection is lost, the server ends by itself.
        let _ = self.session.run(&Command::script("end the server", STOP, [&self.folder]));
    }
}

impl fmt::Debug for FarServer {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host_name, port, protocol, .. } = self;
        write!(f, "{protocol}://{host_name}:{port}")
    }
}

impl FarServer {
    /// How long it may take to start one: the login, a look for each program, the start, and a word for its beats.
    pub const START_TIME: Duration =
        LOGIN_TIME.saturating_add(PROGRAM_TIME.saturating_mul(PROGRAMS.len() as u32 + 2));

    /// How long it may take to end one.
    pub const END_TIME: Duration = PROGRAM_TIME;

    /// Starts `program`; without one, the first one that the host has: goodput or iperf3. It listens at `port`; without one,
    /// goodput listens at any that is free, and iperf3 at its own.
    ///
    /// # Errors
    /// When `program` is none of these, there is no session (see [`Session::open`]), the host has no such program, or the
    /// server does not begin.
    pub fn start(
        address: &Address,
        access: &Access,
        program: Option<&str>,
        port: Option<u16>,
    ) -> Result<Self, RemoteError> {
        let programs = named(program, address)?;
        let host_name = host_name(address, access)?;
        Self::within(Session::open(address, access)?, host_name, &programs, port)
    }

    fn within(
        mut session: Session,
        host_name: String,
        programs: &[&'static Program],
        port: Option<u16>,
    ) -> Result<Self, RemoteError> {
        let host = session.host().to_owned();
        let Some((program, path)) = find(&mut session, programs)? else {
            return Err(match programs {
                [only] => RemoteError::ServerMissing { host, program: only.name },
                _ => RemoteError::NoServer { host },
            });
        };
        let said = session.output(&program.start(&path, port))?;
        let (folder, rest) = said.split_once('\n').unwrap_or((&said, ""));
        let (secret, said) = rest.split_once('\n').unwrap_or((rest, ""));
        let Some(port) = port_in(said) else {
            let said = last_words(said);
            return Err(RemoteError::ServerFailed { host, program: program.name, said });
        };
        session.run(&Command::new("export", [format!("server={folder}")]))?;
        session.keep_sending(BEAT);
        let secret = program.has_secret.then(|| secret.to_owned());
        let folder = folder.to_owned();
        Ok(Self { host_name, port, protocol: program.name, secret, folder, session })
    }
}

/// The programs that are asked for, of which any will do.
fn named(name: Option<&str>, address: &Address) -> Result<Vec<&'static Program>, RemoteError> {
    let is_asked_for = |program: &&Program| name.is_none_or(|name| program.name == name);
    let programs: Vec<_> = PROGRAMS.iter().filter(is_asked_for).collect();
    match (programs.is_empty(), name) {
        (true, Some(name)) => {
            let program = plain::one_line(name);
            Err(RemoteError::NoServerProgram { host: address.to_string(), program })
        }
        _ => Ok(programs),
    }
}

/// The first of the programs that the host has, and its path there.
fn find(
    session: &mut Session,
    programs: &[&'static Program],
) -> Result<Option<(&'static Program, String)>, RemoteError> {
    for program in programs {
        let output = session.run(&Command::script("look for a server", FIND, [program.name]))?;
        if output.status == 0 {
            return Ok(Some((program, output.stdout.trim().into())));
        }
    }
    Ok(None)
}

impl Program {
    fn start(&self, path: &str, port: Option<u16>) -> Command {
        let port = port.unwrap_or(self.port).to_string();
        let command = Command::script("start a server", START, [path]);
        let words = [self.before_port, &[&port], self.after_port].concat();
        command.args(words.into_iter().map(String::from))
    }
}

/// The port in `goodput 0.1.0 listening on [::]:7487` and `Server listening on 5201 (test #1)`.
fn port_in(said: &str) -> Option<u16> {
    let (_, place) = said.lines().find_map(|line| line.split_once("istening on "))?;
    let place = place.split_whitespace().next()?;
    place.parse().ok().or_else(|| Some(place.parse::<SocketAddr>().ok()?.port()))
}

/// The last line that says something: iperf3 ends with `iperf3: exiting`.
fn last_words(said: &str) -> String {
    let mut lines = said.lines().map(plain::one_line).rev();
    let line = lines.find(|line| !line.is_empty() && !line.ends_with(": exiting"));
    line.unwrap_or_else(|| "it said nothing".into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use goodput_testing::wait_for;

    use super::*;

    /// Shells that a host may have. Scripts run in them under the name `sh`.
    const SHELLS: [&str; 3] = ["/bin/sh", "/bin/bash", "/bin/busybox"];

    /// A session for each shell that this machine has.
    fn sessions_with(folder: &Path, script: &str) -> impl Iterator<Item = Session> {
        let there = SHELLS.into_iter().filter(|shell| Path::new(shell).exists());
        there.map(move |shell| {
            let name = folder.join("sh");
            let _ = std::fs::remove_file(&name);
            symlink(shell, &name).unwrap();
            session_with(folder, script)
        })
    }

    /// A session on this host that finds only a goodput that is this script.
    fn session_with(folder: &Path, script: &str) -> Session {
        let program = folder.join("goodput");
        goodput_testing::write_script(&program, &format!("#!/bin/sh\n{script}\n"));
        let mut session = Session::with_shell(["sh"]).unwrap();
        let place = format!("PATH={}:/usr/bin:/bin HOME=/nowhere", folder.display());
        session.run(&Command::new("export", place.split(' '))).unwrap();
        session
    }

    fn any() -> Vec<&'static Program> {
        named(None, &"ssh://b".parse().unwrap()).unwrap()
    }

    #[test]
    fn the_program_that_is_asked_for_is_started_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let address: Address = "ssh://b".parse().unwrap();
        let session =
            session_with(folder.path(), "echo \"listening on 0.0.0.0:7\"; exec sleep 1000");
        const MISSING: Program = Program {
            name: "iperf9",
            port: 0,
            before_port: &[],
            after_port: &[],
            has_secret: false,
        };
        let error = FarServer::within(session, "b".into(), &[&MISSING], None).unwrap_err();
        assert!(error.to_string().contains("has no iperf9"), "{error}");
        assert_eq!(named(Some("goodput"), &address).unwrap()[0].name, "goodput");
        let error = named(Some("nc\u{7}"), &address).err().unwrap().to_string();
        assert!(error.contains("goodput and iperf3") && !error.contains('\u{7}'), "{error}");
    }

    #[test]
    fn a_server_has_a_secret_and_ends_with_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let script = format!(
            "{{ pwd; echo $$; cat secret; echo; echo \"$@\"; }} >{}; echo \"goodput 0 listening on [::]:77\"; \
             exec sleep 1000",
            told.display()
        );
        for session in sessions_with(folder.path(), &script) {
            let server = FarServer::within(session, "b.example".into(), &any(), Some(77)).unwrap();
            let place = (server.port, server.protocol, &*server.host_name);
            assert_eq!(place, (77, "goodput", "b.example"));
            let told = std::fs::read_to_string(&told).unwrap();
            let [place, process, secret, arguments] = told.lines().collect::<Vec<_>>()[..] else {
                panic!("{told}")
            };
            assert_eq!((server.secret.as_deref(), secret.len()), (Some(secret), 64));
            assert!(arguments.contains(" --port 77 --token-file secret"), "{arguments}");
            let process = Path::new("/proc").join(process);
            assert!(process.exists() && Path::new(place).exists());
            drop(server);
            assert!(!process.exists() && !Path::new(place).exists(), "over when it is dropped");
        }
    }

    #[test]
    fn a_server_ends_when_its_session_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo \"goodput 0 listening on [::]:77\"; exec sleep 1000";
        for session in sessions_with(folder.path(), script) {
            let mut server = FarServer::within(session, "b.example".into(), &any(), None).unwrap();
            let place = Path::new(&server.folder).to_owned();
            assert!(place.exists());
            server.session.cut();
            wait_for("the end of the server", || !place.exists());
        }
    }

    #[test]
    fn a_server_that_does_not_begin_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let session =
            session_with(folder.path(), "echo more; echo >&2 'the port is taken'; exit 2");
        let error = FarServer::within(session, "b".into(), &any(), None).unwrap_err();
        let RemoteError::ServerFailed { said, .. } = error else { panic!("{error}") };
        assert_eq!(said, "the port is taken");
    }

    #[test]
    fn a_server_that_fails_says_why_before_it_exits() {
        let taken =
            "iperf3: error - unable to start listener for connections: Address already in use";
        assert_eq!(last_words(&format!("{taken}\niperf3: exiting\n")), taken);
        assert_eq!(last_words(""), "it said nothing");
    }

    #[test]
    fn the_port_is_what_either_program_says() {
        let lines = "-----\nServer listening on 5201 (test #1)\n-----";
        assert_eq!(port_in(lines), Some(5201));
        assert_eq!(port_in("goodput 0.1.0 listening on 0.0.0.0:1"), Some(1));
        assert_eq!(port_in("goodput: can't listen on [::]:1"), None);
    }
}
