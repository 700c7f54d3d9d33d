//! Which goodputs are at work at a host, and which of them put back what an ended run left: what ps(1) prints.

use std::time::Duration;

use super::text::{NotUnderstood, number, read};
use crate::awaited::Whose;
use crate::command::Command;
use crate::error::RemoteError;
use crate::plain;
use crate::shell::Shell;
use crate::ssh::MARK;
use crate::system::Process;

/// The number of the process that lists, which stays the same through exec, and then all processes (ps(1)). By its words
/// it could not be told from a process of anybody's. When a process began is printed as ctime(3) does, and in local time an
/// hour comes twice a year.
const LIST: &str = "echo $$; TZ=UTC0; export TZ; \
    exec ps -axww -o pid= -o ppid= -o jid= -o ruid= -o stat= -o lstart= -o command=";

/// The names of months as ctime(3) prints them.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The processes of the asking jail whose command lines contain `mark`.
pub(super) fn marked(shell: &mut dyn Shell, mark: &str) -> Result<Vec<Process>, RemoteError> {
    list(shell, |text| Ok(List::of(text)?.marked(mark)))
}

/// Whether a dead-man puts back what a run left, because that run is over.
pub(super) fn is_putting_back(shell: &mut dyn Shell, pid: u32) -> Result<bool, RemoteError> {
    list(shell, |text| Ok(List::of(text)?.is_putting_back(pid)))
}

/// Who started a process, and when.
pub(super) fn whose(shell: &mut dyn Shell, pid: u32) -> Result<Option<Whose>, RemoteError> {
    list(shell, |text| Ok(List::of(text)?.whose(pid)))
}

fn list<T>(
    shell: &mut dyn Shell,
    parse: impl FnOnce(&str) -> Result<T, NotUnderstood>,
) -> Result<T, RemoteError> {
    read(shell, &Command::script("list the processes", LIST, [""; 0]), parse)
}

/// The processes of the jail in which ps(1) ran.
struct List<'a> {
    /// The user who asks.
    user: &'a str,
    /// When the process that asks began, which is now.
    now: u64,
    rows: Vec<Row<'a>>,
}

/// A process as ps(1) lists it; the user is who started it.
struct Row<'a> {
    pid: u32,
    parent: u32,
    jail: &'a str,
    user: &'a str,
    state: &'a str,
    /// Seconds that grow with time.
    started: u64,
    command: &'a str,
}

impl<'a> List<'a> {
    fn of(text: &'a str) -> Result<Self, NotUnderstood> {
        let (own, list) = text.split_once('\n').unwrap_or((text, ""));
        let rows: Option<Vec<_>> = list.lines().map(Row::of).collect();
        let bad = |why| NotUnderstood::new(text.lines().next().unwrap_or_default(), why);
        let mut rows = rows.ok_or_else(|| {
            bad("a line has no process, parent, jail, user, state, start and command")
        })?;
        let asking = rows.iter().find(|row| own.trim().parse() == Ok(row.pid));
        let asking = asking.ok_or_else(|| bad("the process that asks is not listed"))?;
        let (user, jail, now) = (asking.user, asking.jail, asking.started);
        rows.retain(|row| row.jail == jail);
        Ok(Self { user, now, rows })
    }

    fn marked(&self, mark: &str) -> Vec<Process> {
        let marked = self.rows.iter().filter(|row| row.command.contains(mark));
        let process = |row: &Row<'_>| Process {
            pid: row.pid,
            trusted: row.user == "0" || row.user == self.user,
            started: Some(row.started),
        };
        marked.map(process).collect()
    }

    /// ps(1) has the number of a user for all; the clock may have been set back since the process began.
    fn whose(&self, pid: u32) -> Option<Whose> {
        let row = self.rows.iter().find(|row| row.pid == pid && row.lives())?;
        let user = if row.user == "0" { "root".into() } else { format!("user {}", row.user) };
        let age = self.now.checked_sub(row.started).map(Duration::from_secs);
        Some(Whose { user: plain::one_line(&user), from: None, age })
    }

    /// A dead-man's last word is the process that started it (`ssh/begin.sh`). The same process started the run's shell, so
    /// while that lives the dead-man is not the only child. What has ended puts nothing back any more; an older goodput does
    /// not say who started it.
    fn is_putting_back(&self, pid: u32) -> bool {
        let Some(row) = self.rows.iter().find(|row| row.pid == pid && row.lives()) else {
            return true;
        };
        let starter = row.starter();
        let mut siblings =
            self.rows.iter().filter(|other| other.pid != pid && other.parent == row.parent);
        match starter {
            Some(starter) => starter != row.parent || !siblings.any(Row::lives),
            None => false,
        }
    }
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let (word, behind) = rest.trim_start().split_once(' ')?;
            rest = behind;
            Some(word)
        };
        let (pid, parent) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let (jail, user, state) = (word()?, word()?, word()?);
        let [_, month, day, time, year] = [word()?, word()?, word()?, word()?, word()?];
        let started = started(month, day, time, year)?;
        Some(Self { pid, parent, jail, user, state, started, command: rest.trim_start() })
    }

    /// A process that has ended stays listed until its parent has asked for it.
    fn lives(&self) -> bool {
        !self.state.starts_with('Z')
    }

    /// What follows the name of a dead-man: its mark, its patience, and who started it. FreeBSD has no network namespace to
    /// name.
    fn starter(&self) -> Option<u32> {
        let (_, words) = self.command.rsplit_once(&format!(" {MARK} "))?;
        let [_, _, starter] = words.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        starter.parse().ok()
    }
}

/// Seconds between moments of the clock as it was set.
fn started(month: &str, day: &str, time: &str, year: &str) -> Option<u64> {
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let [hour, minute, second] = time.split(':').map(number).collect::<Option<Vec<_>>>()?[..]
    else {
        return None;
    };
    let days = days(number(year)?, month, number(day)?)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days between dates of the Gregorian calendar; January is month 0. Counted in years that begin in March, so that the leap day
/// is their last one: each five of their months have 153 days.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) =
        if month < 2 { (year.checked_sub(1)?, month + 10) } else { (year, month - 2) };
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ps(1) prints, with the mark of a session as `mark`.
    fn listed(rows: &[&str]) -> String {
        format!("1000\n{}\n", rows.join("\n"))
    }

    const PS: &str = "1000 901 0 1001 R  Mon Nov 30 13:42:31 2026 ps -axww -o pid= -o ppid=";

    #[test]
    fn processes_of_this_jail_are_found_by_their_mark() {
        let text = listed(&[
            "    1    0 0    0 ILs Tue Nov  3 09:00:00 2026 /sbin/init --",
            "  812    1 0    0 I   Mon Nov 30 13:42:30 2026 sh -c goodput-mark 7",
            "  900    1 3    0 I   Mon Nov 30 13:42:30 2026 sh -c goodput-mark 7",
            "  901    1 0 1002 I   Mon Nov 30 13:42:31 2026 sh -c goodput-mark -axww -o pid= -o jid=",
            "  902    1 0 1001 I   Thu Dec  1 00:00:00 2026 sh -c goodput-mark 7",
            PS,
        ]);
        let found = List::of(&text).unwrap().marked("goodput-mark");
        let told: Vec<_> = found.iter().map(|one| (one.pid, one.trusted)).collect();
        assert_eq!(told, [(812, true), (901, false), (902, true)]);
        assert!(found.is_sorted_by_key(Process::place), "{found:?}");
        let list = List::of(&text).unwrap();
        let whose = |pid| list.whose(pid).map(|whose| whose.to_string());
        assert_eq!(whose(812).as_deref(), Some("of root, began 1 s ago"));
        assert_eq!(whose(901).as_deref(), Some("of user 1002, began 0 s ago"));
        assert_eq!(whose(902).as_deref(), Some("of user 1001"), "the clock was set back");
        assert_eq!(whose(900), None, "of another jail");
        let bad = ["7\n1 0 0 0 I Mon Nov 3 09:00:00 2026 init\n", "1000\nwhat\n", "what", ""];
        let bad = bad.map(str::to_owned).into_iter();
        for bad in bad.chain([text.replace("Dec", "Dez"), text.replace("13:42:30", "13:42")]) {
            assert!(List::of(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_are_seconds_apart_whatever_month_they_are_in() {
        let at = |month, day, time, year| started(month, day, time, year).unwrap();
        let apart = |from: u64, to: u64| to - from;
        assert_eq!(
            apart(at("Nov", "30", "23:59:58", "2026"), at("Dec", "1", "00:00:03", "2026")),
            5
        );
        assert_eq!(
            apart(at("Dec", "31", "23:59:59", "2026"), at("Jan", "1", "00:00:00", "2027")),
            1
        );
        let leap = apart(at("Feb", "28", "00:00:00", "2028"), at("Mar", "1", "00:00:00", "2028"));
        let common = apart(at("Feb", "28", "00:00:00", "2026"), at("Mar", "1", "00:00:00", "2026"));
        assert_eq!((leap, common), (2 * 86_400, 86_400));
    }

    #[test]
    fn a_dead_man_whose_run_is_over_puts_back() {
        const DEAD_MAN: &str =
            "I Mon Nov 30 13:42:30 2026 sh -c : goodput-dead-man; goodput-dead-man m 30 ";
        let is_over = |parent: u32, starter: &str, other: &str| {
            let dead_man = format!("812 {parent} 0 1001 {DEAD_MAN} {starter}");
            let other = format!("813 {other} Mon Nov 30 13:42:30 2026 sh");
            List::of(&listed(&[&dead_man, &other, PS])).unwrap().is_putting_back(812)
        };
        assert!(!is_over(811, "811", "811 0 1001 I"), "its run's shell lives");
        assert!(is_over(811, "811", "811 0 1001 Z"));
        assert!(is_over(811, "811", "810 0 1001 I"));
        assert!(is_over(1, "811", "1 0 0 I"), "init is no run");
        assert!(!is_over(811, "", "811 0 1001 I"), "an older one does not say it");
        let gone = listed(&[PS]);
        assert!(List::of(&gone).unwrap().is_putting_back(812));
    }
}
