//! One run of one entry: server, client, their CPU time and memory, and what the receiver counted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, Signal, kill_process};

use super::contest::{Contest, Entry, Kind};
use super::load::{Load, Transport};
use super::measure::{
    AT_REST, CPU, FAILED, FAR_PEAK, LOSS, Measure, NEAR_PEAK, PACKETS, RATE, Values,
};
use super::net::{address, wait_for};
use super::programs::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit};
use super::stage::Stage;
use super::watch::Watched;

/// How long a program may take beyond the requested time: a client, and then its server.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How often peak memory is read; it only grows. The end is noticed as quickly.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// How long a server has for what it does once, after it listens, before it is at rest.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// Runs an entry of a contest once.
pub fn run(stage: &Stage<'_>, contest: &Contest, entry: &Entry) -> Result<Values> {
    let (program, extra) = match &entry.kind {
        Kind::Measured(measure) => return measure(stage, &contest.load),
        Kind::AtRest(program) => return at_rest(stage, contest, program),
        Kind::Runs(program, extra) | Kind::RunsIfGiven(program, extra) => (*program, *extra),
    };
    if contest.load.clients > 1 {
        return crowd(stage, contest, program, extra);
    }
    let seconds = stage.seconds;
    let job = job(stage, contest);
    let mut watched = Watched::start(contest.watch, stage)?;
    let cpu_before = children_cpu_s()?;
    let mut server = listening(stage, program, &job)?;
    let began = SystemTime::now();
    let mut client =
        StartedProgram::start(stage.client(program).args((program.client)(&job)).args(extra))?;
    let processes = [client.child.id(), server.child.id()];
    let patience = Duration::from_secs(seconds.into()) + WAIT_TIMEOUT;
    let peaks = client.accompany(&server, patience, || watched.look(processes))?;
    server.leave(program.leaves)?;
    let cpu_s = children_cpu_s()? - cpu_before;
    let said = ProgramOutputs { client: client.said()?, server: server.said()? };
    let counted = (program.count)(&job, &said)?;
    let mut values = values(&contest.load, counted, cpu_s, peaks)?;
    values.extend(watched.finish(&job, program, began)?);
    Ok(values)
}

fn job<'a>(stage: &Stage<'_>, contest: &'a Contest) -> Job<'a> {
    let (address, port) = (address(stage.place), stage.port);
    Job { load: &contest.load, address, port, seconds: stage.seconds }
}

/// A program's server, once it listens.
fn listening(stage: &Stage<'_>, program: &Program, job: &Job<'_>) -> Result<StartedProgram> {
    let mut server = StartedProgram::start(stage.server(program).args((program.server)(job)))?;
    stage.net.wait_for_listener(stage.place, &mut server.child, stage.port)?;
    Ok(server)
}

/// Many clients at once, each a process. The rate is the payload of all over the time from the first start to the last
/// end: what each says of its own time would not add up.
fn crowd(
    stage: &Stage<'_>,
    contest: &Contest,
    program: &Program,
    extra: &[&str],
) -> Result<Values> {
    let (load, job) = (&contest.load, job(stage, contest));
    let mut server = listening(stage, program, &job)?;
    let began = Instant::now();
    let arguments = (program.client)(&job);
    let start = |_| StartedProgram::start(stage.client(program).args(&arguments).args(extra));
    let mut clients = (0..load.clients).map(start).collect::<Result<Vec<_>>>()?;
    let until = began + Duration::from_secs(stage.seconds.into()) + WAIT_TIMEOUT;
    let ended: Vec<bool> = clients.iter_mut().map(|client| client.ends_well(until)).collect();
    let took_s = began.elapsed().as_secs_f64();
    server.leave(ServerExit::Interrupted)?;
    let bytes = match program.counts_at {
        CountsAt::Server => {
            let all = Load { flows: load.flows * load.clients, ..*load };
            let said = ProgramOutputs { server: server.said()?, ..ProgramOutputs::default() };
            vec![
                (program.count)(&Job { load: &all, ..job }, &said)
                    .map(|counted| counted.bytes)
                    .ok(),
            ]
        }
        CountsAt::Client => clients
            .iter_mut()
            .map(|client| {
                let said = ProgramOutputs { client: client.said().ok()?, ..Default::default() };
                Some((program.count)(&job, &said).ok()?.bytes)
            })
            .collect(),
    };
    crowd_values(&ended, &bytes, took_s)
}

/// The values of clients of which these ended well, and that counted these bytes, one by one or all together.
fn crowd_values(ended: &[bool], bytes: &[Option<f64>], took_s: f64) -> Result<Values> {
    let all = bytes.iter().flatten().sum::<f64>();
    if all <= 0.0 {
        bail!("nothing was received");
    }
    let is_counted = |number: usize| bytes.get(number).unwrap_or(&bytes[0]).is_some();
    let failed =
        (0..).zip(ended).filter(|(number, ended)| !(**ended && is_counted(*number))).count();
    let failed_percent = 100.0 * failed as f64 / ended.len() as f64;
    let rate = (RATE.id.into(), all * 8.0 / took_s);
    Ok(Values::from([rate, (FAILED.id.into(), failed_percent)]))
}

/// What a server costs that no client uses.
fn at_rest(stage: &Stage<'_>, contest: &Contest, program: &Program) -> Result<Values> {
    let server = listening(stage, program, &job(stage, contest))?;
    std::thread::sleep(SETTLE_TIME);
    let (before, began) = (cpu_ns(&server.child)?, Instant::now());
    std::thread::sleep(Duration::from_secs(stage.seconds.into()));
    let (after, seconds) = (cpu_ns(&server.child)?, began.elapsed().as_secs_f64());
    let us_per_s = grown(&before, &after) as f64 / 1e3 / seconds;
    Ok(Values::from([(AT_REST.id.into(), us_per_s)]))
}

fn values(load: &Load, counted: Counted, cpu_s: f64, peaks: Peaks) -> Result<Values> {
    if counted.bytes <= 0.0 || counted.bits_per_s <= 0.0 {
        bail!("nothing was received");
    }
    let mut values = Values::new();
    let mut add = |measure: &Measure, value: f64| values.insert(measure.id.into(), value);
    add(&RATE, counted.bits_per_s);
    add(&CPU, cpu_s / (counted.bytes / 1e9));
    if load.transport == Transport::Udp {
        add(&PACKETS, counted.bits_per_s / 8.0 / f64::from(load.chunk_bytes));
    }
    counted.lost_percent.map(|lost| add(&LOSS, lost));
    peaks.near_bytes.map(|bytes| add(&NEAR_PEAK, bytes));
    peaks.far_bytes.map(|bytes| add(&FAR_PEAK, bytes));
    Ok(values)
}

/// The highest resident memory seen; growth in the last moment is missed.
#[derive(Debug, Default, Clone, Copy)]
struct Peaks {
    near_bytes: Option<f64>,
    far_bytes: Option<f64>,
}

/// A program that does not outlive this process, and its output.
struct StartedProgram {
    child: Child,
    out: File,
    err: File,
}

impl StartedProgram {
    fn start(command: &mut Command) -> Result<Self> {
        let (out, err) = (tempfile::tempfile()?, tempfile::tempfile()?);
        command.stdout(out.try_clone()?).stderr(err.try_clone()?).stdin(Stdio::null());
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("can't start {name}"))?;
        Ok(Self { child, out, err })
    }

    /// Waits until the client has ended successfully; meanwhile reads the memory of both, and calls `look`.
    fn accompany(
        &mut self,
        server: &Self,
        patience: Duration,
        mut look: impl FnMut(),
    ) -> Result<Peaks> {
        let started = Instant::now();
        let mut peaks = Peaks::default();
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.check("the client", status)?;
                return Ok(peaks);
            }
            if started.elapsed() > patience {
                bail!("the client has not ended after {} s", patience.as_secs());
            }
            peaks.near_bytes = peak_bytes(&self.child).or(peaks.near_bytes);
            peaks.far_bytes = peak_bytes(&server.child).or(peaks.far_bytes);
            look();
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether it ends successfully by then.
    fn ends_well(&mut self, until: Instant) -> bool {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) if Instant::now() < until => std::thread::sleep(POLL_INTERVAL),
                _ => return false,
            }
        }
    }

    /// Waits for the server's end, and requests it if the server would stay; afterwards the server's CPU time counts as
    /// ours.
    fn leave(&mut self, leaves: ServerExit) -> Result<()> {
        if leaves == ServerExit::ByItself {
            return wait_for("the server to end", || Ok(self.child.try_wait()?.is_some()));
        }
        let mut asked: Option<Instant> = None;
        wait_for("the server to end after SIGINT", || {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            // Some programs must be asked twice while they still wait for a client.
            if asked.is_none_or(|asked| asked.elapsed() > STOP_TIMEOUT) {
                kill_process(Pid::from_child(&self.child), Signal::INT)?;
                asked = Some(Instant::now());
            }
            Ok(false)
        })
    }

    fn check(&mut self, who: &str, status: ExitStatus) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        let (err, out) = (text(&mut self.err)?, text(&mut self.out)?);
        let lines = err.lines().chain(out.lines()).map(str::trim);
        let line = lines.filter(|line| !line.is_empty()).find(|line| line.contains("rror"));
        let line = line.or_else(|| err.lines().chain(out.lines()).next());
        bail!("{who} ended with {status}: {}", line.unwrap_or("it said nothing"))
    }

    fn said(&mut self) -> Result<String> {
        text(&mut self.out)
    }
}

impl Drop for StartedProgram {
    fn drop(&mut self) {
        // If this fails, it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The highest resident memory so far: `VmHWM`, proc_pid_status(5). The peak of getrusage(2) also includes memory from
/// before exec, which is this process's.
fn peak_bytes(child: &Child) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024.0)
}

/// CPU time of each thread of a process, nanoseconds, by its number: the first number of its schedstat
/// (Documentation/scheduler/sched-stats.rst). A thread that ends meanwhile is left out.
fn cpu_ns(child: &Child) -> Result<BTreeMap<OsString, u64>> {
    let tasks = format!("/proc/{}/task", child.id());
    let tasks = fs::read_dir(&tasks).with_context(|| format!("read {tasks}"))?;
    let read = |task: std::io::Result<fs::DirEntry>| {
        let task = task.ok()?;
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        Some((task.file_name(), text.split_whitespace().next()?.parse().ok()?))
    };
    let threads: BTreeMap<_, _> = tasks.filter_map(read).collect();
    ensure!(!threads.is_empty(), "the schedstat of no thread can be read");
    Ok(threads)
}

/// CPU time between two looks, nanoseconds: of a thread that began between them all, of one that has ended none.
fn grown(before: &BTreeMap<OsString, u64>, after: &BTreeMap<OsString, u64>) -> u64 {
    let earlier = |thread: &OsString| before.get(thread).copied().unwrap_or_default();
    after.iter().map(|(thread, ns)| ns.saturating_sub(earlier(thread))).sum()
}

/// User and system time of all our children that have ended and were waited for, getrusage(2).
pub fn children_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.iter().map(|t| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_tools::shell::command;

    #[test]
    fn a_program_that_fails_says_why() {
        let mut running = StartedProgram::start(
            command("sh").args(["-c", "echo hint >&2; echo 'Error: no' >&2; exit 3"]),
        )
        .unwrap();
        let status = running.child.wait().unwrap();
        let error = running.check("the client", status).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("Error: no"), "{error}");
    }

    #[test]
    fn a_server_that_stays_is_asked_to_leave() {
        // In the background of a script the signal is ignored; children would inherit this.
        let interruptible = ["--default-signal=INT", "sleep", "60"];
        let mut server = StartedProgram::start(command("env").args(interruptible)).unwrap();
        server.leave(ServerExit::Interrupted).unwrap();
    }

    #[test]
    fn our_own_peak_is_not_that_of_a_child() {
        let mut child = StartedProgram::start(command("sleep").arg("60")).unwrap();
        wait_for("it to be itself", || {
            Ok(peak_bytes(&child.child).is_some_and(|bytes| bytes > 0.0))
        })
        .unwrap();
        child.child.kill().unwrap();
    }

    #[test]
    fn a_client_of_many_fails_by_itself() {
        let of = |ended: &[bool], bytes: &[Option<f64>]| {
            let values = crowd_values(ended, bytes, 2.0).unwrap();
            (values[RATE.id], values[FAILED.id])
        };
        let each = [Some(1e9), None, Some(1e9), Some(1e9)];
        assert_eq!(of(&[true, true, false, true], &each), (12e9, 50.0));
        assert_eq!(of(&[true, false], &[Some(1e9)]), (4e9, 50.0), "the server counted all");
        assert!(crowd_values(&[true], &[None], 1.0).is_err());
    }

    #[test]
    fn what_runs_uses_the_cpu() {
        let mut child =
            StartedProgram::start(command("sh").args(["-c", "while :; do :; done"])).unwrap();
        let nothing = BTreeMap::new();
        wait_for("it to use the CPU", || Ok(grown(&nothing, &cpu_ns(&child.child)?) > 1_000_000))
            .unwrap();
        child.child.kill().unwrap();
    }

    #[test]
    fn a_thread_that_ends_takes_nothing_from_the_others() {
        let look = |threads: &[(&str, u64)]| -> BTreeMap<OsString, u64> {
            threads.iter().map(|(thread, ns)| ((*thread).into(), *ns)).collect()
        };
        let before = look(&[("7", 500), ("8", 90_000)]);
        assert_eq!(grown(&before, &look(&[("7", 700), ("9", 30)])), 230);
    }

    #[test]
    fn values_have_what_the_load_has() {
        let counted = Counted { bytes: 2e9, bits_per_s: 8e9, lost_percent: Some(1.0) };
        let of = |load: Load| values(&load, counted, 1.0, Peaks::default()).unwrap();
        let udp = of(Load::udp(1000));
        assert_eq!((udp[PACKETS.id], udp[CPU.id], udp[LOSS.id]), (1e6, 0.5, 1.0));
        assert!(!of(Load::tcp(1000)).contains_key(PACKETS.id));
        let nothing = Counted { bytes: 0.0, ..counted };
        assert!(values(&Load::tcp(1000), nothing, 1.0, Peaks::default()).is_err());
    }
}
