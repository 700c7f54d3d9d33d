//! Everything that can go wrong with a host reached by SSH, with what to do about it.

use goodput_model::SettingRef;
use goodput_settings::SettingError;
use goodput_settings::rules::no_device;

use crate::address::{Address, BadAddress};

/// What went wrong. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address names no host.
    #[error(transparent)]
    BadAddress(#[from] BadAddress),
    /// The system there shapes by programs that goodput does not know.
    #[error(
        "can't read the shaper of {host}: goodput reads the queueing disciplines of Linux only"
    )]
    NoShaper {
        /// The host.
        host: String,
    },
    /// The OpenSSH client can't be started.
    #[error(
        "can't reach {host}: the program ssh does not start ({cause}); install the OpenSSH client"
    )]
    NoSsh {
        /// The host.
        host: String,
        /// Why.
        cause: std::io::Error,
    },
    /// The host's key is unknown.
    #[error(
        "can't log in to {host}: its host key is unknown ({said}); log in once with ssh, and compare the key's fingerprint"
    )]
    HostKey {
        /// The host.
        host: String,
        /// The output of ssh.
        said: String,
    },
    /// The host's key differs from the known one.
    #[error(
        "can't log in to {host}: its host key is another one than before, so that another machine may answer in its \
         place ({said}); if the host was installed anew, remove the old key with ssh-keygen -R, and log in once with ssh"
    )]
    OtherHostKey {
        /// The host.
        host: String,
        /// The output of ssh.
        said: String,
    },
    /// The login needs a password, or is not allowed.
    #[error(
        "can't log in to {host} without a password ({said}); set up a key for it, as ssh-copy-id(1) does, or name \
         another user like ssh://root@host"
    )]
    Login {
        /// The host.
        host: String,
        /// The output of ssh.
        said: String,
    },
    /// There is no connection to the host.
    #[error("can't reach {host}: {said}")]
    Unreachable {
        /// The host.
        host: String,
        /// The output of ssh.
        said: String,
    },
    /// The login neither succeeds nor fails in time.
    #[error("{host} did not let goodput in within {seconds} s ({said}); does `ssh` reach it?")]
    NoLogin {
        /// The host.
        host: String,
        /// The time limit.
        seconds: u64,
        /// The output of ssh.
        said: String,
    },
    /// The login does not lead to a shell.
    #[error("{host} gives no POSIX shell for a login without a terminal, but printed: {said}")]
    NoShell {
        /// The host.
        host: String,
        /// What was printed instead.
        said: String,
    },
    /// The session ended. The host's own process puts back its changes.
    #[error(
        "lost the connection to {host} during {doing:?}: {why}; what was changed there is put back by a process of that \
         host, and `goodput settings undo` shows whether it is"
    )]
    Lost {
        /// The host.
        host: String,
        /// What was under way: a purpose, or a command as one would type it.
        doing: String,
        /// What happened.
        why: String,
    },
    /// The process that puts settings back gave an unexpected answer.
    #[error("can't {doing} at {host}: its shell answered {words:?}; nothing more is changed there")]
    Unexpected {
        /// The host.
        host: String,
        /// What was under way.
        doing: String,
        /// The answer.
        words: String,
    },
    /// A word of a command has a line break.
    #[error("a session by SSH carries no line breaks: {command:?}")]
    LineBreak {
        /// The command, as one would type it.
        command: String,
    },
    /// A program is missing on the host.
    #[error("{host} has no program {program:?}; install it there")]
    NoProgram {
        /// The host.
        host: String,
        /// The missing program.
        program: String,
    },
    /// No program there can serve.
    #[error(
        "{host} has neither goodput nor iperf3, so no server can be started there; install one of them, or start another \
         server by hand"
    )]
    NoServer {
        /// The host.
        host: String,
    },
    /// A host lacks the program that is to serve there.
    #[error(
        "{host} has no {program}, so it can't be started there; install it, or name another program"
    )]
    ServerMissing {
        /// The host.
        host: String,
        /// The program.
        program: &'static str,
    },
    /// A server is asked for that is none.
    #[error(
        "{host}: {program} is no server that goodput starts by SSH; these are goodput and iperf3"
    )]
    NoServerProgram {
        /// The host.
        host: String,
        /// What was asked for.
        program: String,
    },
    /// A server does not begin.
    #[error(
        "{host}: {program} does not serve: {said}; another port may be free (`--far-port`, or `port` in a mesh file); if a server stands open there, name \
         it without ssh://"
    )]
    ServerFailed {
        /// The host.
        host: String,
        /// The program.
        program: &'static str,
        /// Its last words.
        said: String,
    },
    /// A command failed.
    #[error("{host}: {command:?} failed with exit code {status}: {said}")]
    Failed {
        /// The host.
        host: String,
        /// The command, as one would type it.
        command: String,
        /// Its exit code.
        status: i32,
        /// Its standard error, or its standard output if that is empty.
        said: String,
    },
    /// A script of goodput failed.
    #[error("{host}: can't {purpose}: {said}{}", remedy(said))]
    CouldNot {
        /// The host.
        host: String,
        /// What the script is for.
        purpose: String,
        /// Its exit code.
        status: i32,
        /// Its standard error, or its standard output if that is empty.
        said: String,
    },
    /// The login has too few privileges.
    #[error("{host}: not permitted to run {command:?} ({said}); {}", as_root(host))]
    NotPermitted {
        /// The host.
        host: String,
        /// The command, as one would type it.
        command: String,
        /// The command's output.
        said: String,
    },
    /// A command's output differs from its documentation.
    #[error("{host}: can't understand what {command:?} printed: {why}, in the line {line:?}")]
    NotUnderstood {
        /// The host.
        host: String,
        /// The command, as one would type it.
        command: String,
        /// The line.
        line: String,
        /// What was expected.
        why: String,
    },
    /// goodput doesn't support the host's operating system.
    #[error("{host} runs {name:?}; goodput can only change settings of Linux and FreeBSD by SSH")]
    UnknownSystem {
        /// The host.
        host: String,
        /// What `uname -s` printed.
        name: String,
    },
    /// The system has no such setting, or no command that changes it faithfully.
    #[error("{host}: goodput has no access to {setting} there: {why}")]
    NoSuchSetting {
        /// The host.
        host: String,
        /// The setting.
        setting: String,
        /// What is missing, and what could be done.
        why: String,
    },
    /// The journal could not be kept, so nothing may be changed.
    #[error(
        "can't keep the journal in {}: {cause}; without a journal goodput changes nothing; --state-dir names another directory",
        path.display()
    )]
    Journal {
        /// The journal or its directory.
        path: std::path::PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// Another goodput is changing the host.
    #[error("{host} is being changed by another goodput ({process}); wait until it is done")]
    Busy {
        /// The host.
        host: String,
        /// A process of it, and where that is.
        process: String,
    },
    /// One host stands for both ends.
    #[error(
        "can't change one host for both ends: {names}; leave out --near to change this host, or --far to let the target's goodput change its own"
    )]
    BothEnds {
        /// The host by its names, as `ssh://…`.
        names: String,
    },
    /// A dead run left the host changed, and this can't be put back.
    #[error(
        "{host} is still as an interrupted run left it; put it back first with `goodput settings undo`: {left}"
    )]
    LeftChanged {
        /// The host.
        host: String,
        /// What is left.
        left: String,
    },
    /// What was to be kept is not, and not everything is as it was before.
    #[error("{cause}; not everything is back: {left}")]
    NotBack {
        /// Why it is not kept.
        cause: Box<RemoteError>,
        /// What is left.
        left: String,
    },
    /// It is unknown what a dead run left changed at a host, and perhaps at this host.
    #[error("goodput changes nothing beside an unreadable journal of an interrupted run: {left}")]
    Damaged {
        /// The journal, and what is wrong with it.
        left: String,
    },
    /// A file of the host would have to be replaced, but is not as goodput left it.
    #[error("{host}: {path} is left as it is: {why}")]
    LeftAlone {
        /// The host.
        host: String,
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The connection was lost right after a change, by the change or by chance.
    #[error(
        "{setting}: the connection was lost right after the change ({why}), so the host puts it back by itself; if the new \
         value is the reason, this path does not work with it, unless something else on it changes, too"
    )]
    CutOff {
        /// The setting.
        setting: String,
        /// What was observed.
        why: String,
    },
    /// Everything has been put back or kept.
    #[error("these changes are closed")]
    Closed,
    /// An error that a setting of this host can have too.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// What to do about a failure, by the words of strerror(3).
const REMEDIES: [(&str, &str); 3] = [
    ("No space left on device", "make room on that file system"),
    ("Disk quota exceeded", "make room on that file system"),
    ("Read-only file system", "make that file system writable (mount -o remount,rw)"),
];

fn remedy(said: &str) -> String {
    let known = REMEDIES.iter().find(|(words, _)| said.contains(words));
    known.map(|(_, remedy)| format!("; {remedy}, and try again")).unwrap_or_default()
}

/// Which address to use instead of one whose login is not permitted something.
fn as_root(host: &str) -> String {
    match host.parse::<Address>() {
        Ok(Address { user: Some(user), .. }) if user == "root" => {
            "this login as root may not: see what limits it there (a jail, a container, securelevel)".into()
        }
        Ok(address) => {
            let root = Address { user: Some("root".into()), ..address };
            format!("log in as root, like {root}")
        }
        Err(_) => "log in as root".into(),
    }
}

/// How programs report that the kernel does not take a value: EINVAL, ERANGE and EOPNOTSUPP in the words of strerror(3), of
/// glibc, FreeBSD and musl, and ethtool(8) about features.
const NOT_TAKEN: [&str; 7] = [
    "Invalid argument",
    "Numerical result out of range",
    "Result too large",
    "Result not representable",
    "Operation not supported",
    "Not supported",
    "Could not change any device features",
];

impl RemoteError {
    /// The same for a change of `setting` to `value`: if the kernel there does not take the value, as on this host.
    pub(crate) fn of_a_change(self, setting: &SettingRef, value: &str) -> Self {
        let (Self::Failed { host, said, .. } | Self::CouldNot { host, said, .. }) = &self else {
            return self;
        };
        if !NOT_TAKEN.iter().any(|words| said.contains(words)) {
            return self;
        }
        let cause = format!("{host}: {said}").into();
        let operation = format!("change it to {value:?}");
        SettingError::Refused { operation, setting: setting.clone(), cause }.into()
    }

    /// `host` has no `device`, the device of a setting, only those with these `names`: as on this host.
    pub(crate) fn no_device(
        host: &str,
        setting: &SettingRef,
        device: &str,
        names: impl Iterator<Item = String>,
    ) -> Self {
        let what = no_device(&format!("{device} at {host}"), names.collect());
        SettingError::Gone { setting: setting.clone(), what }.into()
    }

    /// The setting of which the kernel there did not take a value, if that is why, and nothing stayed changed.
    pub fn not_taken(&self) -> Option<SettingRef> {
        match self {
            Self::Setting(error) => error.not_taken().cloned(),
            _ => None,
        }
    }

    /// Whether a privilege is missing.
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::NotPermitted { .. } | Self::Login { .. } => true,
            Self::NotBack { cause, .. } => cause.not_permitted(),
            Self::Setting(error) => matches!(error, SettingError::NotPermitted { .. }),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_the_kernel_does_not_take_is_reported_as_on_this_host() {
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        let of_a_change = |said: &str| {
            let (host, command) = ("ssh://b".to_owned(), "ethtool -K eth0 tso on".to_owned());
            let failed = RemoteError::Failed { host, command, status: 1, said: said.into() };
            failed.of_a_change(&setting, "on")
        };
        for said in
            ["netlink error: Operation not supported", "Could not change any device features"]
        {
            let refused = of_a_change(said);
            assert_eq!(refused.not_taken(), Some(setting.clone()));
            let words = format!(
                "offload.tso@eth0: the kernel refuses to change it to \"on\" (ssh://b: {said})"
            );
            assert_eq!(refused.to_string(), words);
        }
        let other = of_a_change("netlink error: Device or resource busy");
        assert!(matches!(other, RemoteError::Failed { .. }) && other.not_taken().is_none());
    }
}
