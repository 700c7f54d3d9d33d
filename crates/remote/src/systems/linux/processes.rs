//! Which goodputs are at work at a host, and which of them put back what an ended run left.

use std::time::Duration;

use super::row;
use crate::awaited::Whose;
use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::Process;

/// The processes whose command lines contain `mark`, in this network namespace.
pub(super) fn marked(shell: &mut dyn Shell, mark: &str) -> Result<Vec<Process>, RemoteError> {
    // grep(1) has its pattern in its own command line; with the first letter in brackets it does not match itself.
    let (first, rest) = mark.split_at(1);
    let command = Command::script("list its processes", MARKED, [format!("[{first}]{rest}")]);
    let printed = shell.output(&command)?;
    let understood = |line| {
        process(line).ok_or_else(|| {
            let expected = "a process id, when it began, and whose it is";
            row::misread(shell.host(), &command, line, expected)
        })
    };
    printed.lines().map(understood).collect()
}

fn process(line: &str) -> Option<Process> {
    let mut words = line.split(' ');
    let pid = words.next()?.parse().ok()?;
    let started = Some(words.next()?.parse().ok()?);
    Some(Process { pid, started, trusted: words.next()? == "trusted" })
}

/// The processes with `$1` in their command lines, in this network namespace, each with the ticks at which it began
/// (proc_pid_stat(5), field 22). Judged by who started them: a program with set-user-ID runs as root, with words that its
/// user chose (proc_pid_status(5): the first number of `Uid`).
const MARKED: &str = "me=$(id -ru); \
    began() { stat=$(cat \"$1/stat\" 2>/dev/null) && set -- ${stat##*)} && echo \"${20}\"; }; \
    for p in $(grep -ls -e \"$1\" /proc/[0-9]*/cmdline); do p=${p%/cmdline}; \
    [ \"$(readlink $p/ns/net)\" = \"$(readlink /proc/self/ns/net)\" ] || continue; \
    began=$(began $p); [ \"$began\" ] || continue; \
    owner=$(sed -n 's/^Uid:[^0-9]*\\([0-9]*\\).*/\\1/p' $p/status 2>/dev/null); \
    case $owner in 0 | \"$me\") owner=trusted ;; *) owner=other ;; esac; \
    printf '%s %s %s\\n' \"${p#/proc/}\" \"$began\" \"$owner\"; done";

/// Whether a guard or a dead-man puts back what a run left: the run is over, or has said so in its journal.
pub(super) fn is_putting_back(shell: &mut dyn Shell, pid: u32) -> Result<bool, RemoteError> {
    let purpose = "find out whether a process there puts settings back";
    let command = Command::script(purpose, PUTS_BACK, [pid.to_string()]);
    match shell.output(&command)?.trim() {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(row::misread(shell.host(), &command, other, "yes or no")),
    }
}

/// Says `yes` if process `$1`, which waits for the end of a run, has outlived it. No program's name says that: init may be
/// the same executable as the shell, and as goodput in a container.
///
/// A dead-man's last word is the process that started it (`ssh/begin.sh`), as its own process namespace counts. An older
/// goodput does not say it, but a parent that adopts is of another session (proc_pid_stat(5), field 6). The same process
/// started the run's shell, so while that lives the dead-man is not the only child. A guard's last word is its journal. There
/// stands which process the run is, and a run whose process lives has its guard's line there. A process that has ended puts
/// nothing back any more. The script is in a command line itself, so it must not have the name in one piece.
const PUTS_BACK: &str = "p=/proc/$1; \
    of() { sed -n \"s/^$2:.*[^0-9]\\([0-9][0-9]*\\)\\$/\\1/p\" \"$1/status\" 2>/dev/null; }; \
    session() { stat=$(cat \"$1/stat\" 2>/dev/null) && set -- ${stat##*)} && echo \"$4\"; }; \
    siblings() { for s in $(grep -ls \"^PPid:[^0-9]*$1\\$\" /proc/[0-9]*/status); do \
    [ \"$s\" = $p/status ] || sed -n 's/^State:[^A-Za-z]*[A-WYa-wy].*/one/p' $s 2>/dev/null; done; }; \
    parent=$(of $p PPid); its=$(of /proc/$parent NSpid); its=${its:-$parent}; \
    words=$(tr '\\0\\n' '\\n ' 2>/dev/null <$p/cmdline); \
    dead_man=$(printf '%s\\n' \"$words\" | sed -n '/^[g]oodput-dead-man$/,$p'); \
    if [ -z \"$words\" ]; then echo yes; \
    elif [ \"$dead_man\" ]; then starter=$(printf '%s\\n' \"$dead_man\" | sed -n 5p); \
    if [ \"$starter\" ]; then [ \"$starter\" = \"$its\" ]; \
    else [ \"$(session $p)\" = \"$(session /proc/$parent)\" ]; fi && [ \"$(siblings $parent)\" ] && echo no || echo yes; \
    else journal=$(printf '%s\\n' \"$words\" | sed -n '$p'); \
    [ ! -r \"$p/root$journal\" ] || journal=$p/root$journal; \
    run=$(sed -n '1s/.*\"pid\":\\([0-9]*\\).*/\\1/p' \"$journal\" 2>/dev/null); \
    if [ ! -e \"$journal\" ] || grep -qs -e '\"line\":\"taken-over\"' -- \"$journal\" || [ \"${run:-$its}\" != \"$its\" ]; \
    then echo yes; else echo no; fi; fi";

/// Who started a process, and when.
pub(super) fn whose(shell: &mut dyn Shell, pid: u32) -> Result<Option<Whose>, RemoteError> {
    let command = Command::script("find out whose a process there is", WHOSE, [pid.to_string()]);
    let printed = shell.output(&command)?;
    // A process that ends meanwhile has no user, or no times.
    let mut words = printed.split_whitespace();
    let Some(user) = words.next() else { return Ok(None) };
    let age_s = words.next().and_then(|word| word.parse().ok());
    let from = words.next().and_then(|word| word.parse().ok());
    let user = crate::plain::one_line(user);
    Ok(Some(Whose { user, from, age: age_s.map(Duration::from_secs) }))
}

/// The owner of process `$1`, how many seconds ago it began (proc_pid_stat(5), field 22; `-` if that is unknown), and from
/// where its user logged in (ssh(1), `SSH_CONNECTION`). Only root and the user may read the last one.
const WHOSE: &str = "p=/proc/$1; user=$(stat -c %U $p 2>/dev/null) || exit 0; \
    began() { stat=$(cat $p/stat 2>/dev/null) && set -- ${stat##*)} && echo \"${20}\"; }; \
    hz=$(getconf CLK_TCK 2>/dev/null) || hz=100; began=$(began); up=$(cut -d. -f1 /proc/uptime 2>/dev/null); \
    [ \"$began\" ] && [ \"$up\" ] && age=$((up - began / hz)) || age=-; \
    from=$(tr '\\0' '\\n' 2>/dev/null <$p/environ | sed -n 's/^SSH_CONNECTION=\\([^ ]*\\) .*/\\1/p'); \
    printf '%s %s %s\\n' \"$user\" \"$age\" \"$from\"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::{DeadMan, MARK, Session};
    use goodput_testing::{in_namespace, wait_for};

    /// A login whose shell is a child of process 1 of its namespace, which is the same executable, in the same session.
    /// Process 1 ends once `file` is gone.
    fn beside_init(file: &str) -> Session {
        let init =
            format!("mount -t sysfs none /sys; sh; while [ -e '{file}' ]; do sleep 0.1; done");
        let words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", &init];
        Session::with_shell(words).unwrap()
    }

    fn parent(pid: u32) -> String {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().to_owned()
    }

    /// Each end of a run that its host can see: the connection, and the process from which everything was started.
    #[test]
    fn a_dead_man_whose_run_is_over_is_known_even_if_init_is_the_same_program() {
        in_namespace(|| {
            for is_killed in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("wait");
                std::fs::write(&file, "").unwrap();
                let mut session = beside_init(file.to_str().unwrap());
                let dead_man = DeadMan::start(&mut session).unwrap();
                let wait = format!("while [ -e '{}' ]; do sleep 0.1; done", file.display());
                dead_man.arm(&mut session, 1, &wait).unwrap();
                let mut beside = Session::with_shell(["sh"]).unwrap();
                let found = marked(&mut beside, dead_man.id.word()).unwrap();
                let [Process { pid, started: Some(_), trusted: true }] = found[..] else {
                    panic!("{found:?}")
                };
                assert!(!is_putting_back(&mut beside, pid).unwrap(), "the run is at work");
                match is_killed {
                    true => {
                        let kill = ["-9", &parent(pid)];
                        assert!(
                            std::process::Command::new("kill")
                                .args(kill)
                                .status()
                                .unwrap()
                                .success()
                        );
                    }
                    false => session.cut(),
                }
                wait_for("the end of the run to be seen", || {
                    is_putting_back(&mut beside, pid).unwrap()
                });
            }
        });
    }

    #[test]
    fn a_dead_man_of_an_earlier_version_is_judged_by_its_session() {
        in_namespace(|| {
            let of_old = "sh -c 'echo ready; read line; :' goodput-dead-man mark 30 ns";
            // The run's shell has two children: its own, and the dead-man.
            let run = format!("sleep 1000 & echo $!; {of_old}; kill $!");
            let mut child = std::process::Command::new("sh")
                .args(["-c", &run])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let said = std::io::BufReader::new(child.stdout.take().unwrap());
            let lines: Vec<_> = std::io::BufRead::lines(said).take(2).map(Result::unwrap).collect();
            assert_eq!(lines[1], "ready");
            let mut beside = Session::with_shell(["sh"]).unwrap();
            let pids: Vec<_> =
                marked(&mut beside, MARK).unwrap().into_iter().map(|one| one.pid).collect();
            let dead_man = pids.into_iter().find(|pid| *pid != child.id()).unwrap();
            assert!(!is_putting_back(&mut beside, dead_man).unwrap());
            drop(child.stdin.take());
            child.wait().unwrap();
            assert!(is_putting_back(&mut beside, dead_man).unwrap(), "it has ended");
        });
    }

    #[test]
    fn a_look_at_others_is_none_of_them() {
        assert!(![MARKED, PUTS_BACK].iter().any(|script| script.contains(MARK)));
    }

    #[test]
    fn a_line_that_is_not_understood_is_refused() {
        assert_eq!(
            process("7 99 other"),
            Some(Process { pid: 7, started: Some(99), trusted: false })
        );
        for bad in ["", "7", "7 trusted", "7 99", "x 99 trusted"] {
            assert_eq!(process(bad), None, "{bad}");
        }
    }
}
