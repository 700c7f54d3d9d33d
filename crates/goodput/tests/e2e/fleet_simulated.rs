//! A real coordinator with simulated agents: more than a machine has room for, and some whose clocks are wrong. They are on the
//! bus as agents are, and each test has its record at once.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use goodput_bus::{Bus, BusError, Keys, Outcomes, Proof, Server};
use goodput_fleet::places::{AGENTS, OUTCOME, OUTCOMES, TASK, of_task};
use goodput_fleet::{End, KEPT_S, Outcome, Sealed, Task, word};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Fleet, announcement};

/// Agents that are announced at the same time.
const AT_ONCE: usize = 100;
/// As the program has it: what outcomes may take.
const OUTCOMES_BYTES: u64 = 1 << 30;

/// By how many hours the clock of a site's host is ahead.
type Ahead = fn(&str) -> i64;

/// Simulates the agents of these sites until the bus ends. On return, they are announced.
fn simulate(fleet: &Fleet, sites: Vec<String>, ahead: Ahead) {
    let (url, (tell, told)) = (fleet.nats.url(), channel());
    let work = async move {
        let (name, inbox) = ("simulated", "_INBOX.simulated");
        let server = Server { url: &url, proof: Proof::None, authority: None, name, inbox };
        let bus = Bus::connect(server).await?;
        // Names that stay: on a busy host, so many can't be renewed in time. The coordinator takes the bucket as it is.
        let agents = bus.keys(AGENTS, None).await?;
        let kept = Duration::from_secs(KEPT_S);
        let outcomes = bus.outcomes(OUTCOMES, OUTCOME, kept, OUTCOMES_BYTES).await?;
        let mut tasks = bus.questions(&format!("{TASK}.*")).await?;
        announce(&agents, &sites).await?;
        let _ = tell.send(());
        loop {
            let task = tasks.next().await?;
            tokio::spawn(measure(outcomes.clone(), task.body().to_vec(), ahead));
        }
    };
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // It ends with the bus, which ends with the test.
        let _: Result<(), BusError> = runtime.expect("there is room").block_on(work);
    });
    told.recv().expect("they are announced");
}

async fn announce(agents: &Keys, sites: &[String]) -> Result<(), BusError> {
    for some in sites.chunks(AT_ONCE) {
        let put = some.iter().map(|site| async move {
            let key = word(site).expect("it is a name");
            agents.put(&key, &announcement(site)).await
        });
        join_all(put).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    }
    Ok(())
}

/// The record of a task, with the time by the clock of its near site.
async fn measure(outcomes: Outcomes, message: Vec<u8>, ahead: Ahead) {
    let sealed = Sealed::read(&message).expect("the coordinator seals it");
    let task: Task = serde_json::from_str(&sealed.task).expect("it is a task");
    let example = include_str!("../../src/report/example/record.json");
    let mut record: Value = serde_json::from_str(example).expect("it is JSON");
    let now = Timestamp::now() + SignedDuration::from_hours(ahead(&task.near));
    record["started"] = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    record["target"] = task.target.clone().into();
    let outcome = Outcome::new(&task.id, &task.near, End::Record(record));
    let place = of_task(&word(&task.near).expect("it is a name"), &task.id);
    let _ = outcomes.put_once(&place, &outcome).await;
}

/// A full mesh of sites that all can be called.
fn mesh(sites: &[String]) -> String {
    let tables = sites.iter().map(|site| format!("[site.{site}]\ntarget = \"{site}.example\"\n"));
    "[test]\nlength = \"1s\"\npause = \"0s\"\n".to_owned() + &tables.collect::<String>()
}

/// The most memory that a process has had at any moment, bytes (proc_pid_status(5), `VmHWM`).
fn peak_bytes(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("it has memory");
    1024 * kib.parse::<u64>().expect("it is a number")
}

/// Two rounds of a full mesh, in which each site is in a test. With a thousand sites, it is beyond the bound still
/// (docs/decisions/fleet.md): `GOODPUT_SITES=1000` measures that.
#[test]
fn the_coordinator_of_many_agents_needs_less_than_100_mb() {
    const SITES: usize = 200;
    const MOST_BYTES: u64 = 100_000_000;
    let asked = std::env::var("GOODPUT_SITES").ok().and_then(|sites| sites.parse().ok());
    let count: usize = asked.unwrap_or(SITES);
    let Some(fleet) = Fleet::new() else { return };
    let sites: Vec<_> = (0..count).map(|number| format!("site-{number}")).collect();
    let mesh = fleet.mesh(&mesh(&sites));
    simulate(&fleet, sites, |_| 0);
    let home = Home::new();
    let run = ["run", &mesh, "--once", "--metrics", "127.0.0.1:0"];
    let mut run = fleet.coordinate(&home, &run);
    let lines = BufReader::new(run.stdout.take().expect("stdout is piped")).lines();
    let all = count * (count - 1);
    let (done, last) = (format!("  {}/{all}  ", 2 * count), format!("/{all}  "));
    let mut without_record = Vec::new();
    for line in lines {
        let line = line.expect("it is text");
        if line.contains(&last) && line.contains("no record") {
            without_record.push(line.clone());
        }
        if line.contains(&done) {
            break;
        }
    }
    assert_eq!(without_record, [""; 0]);
    let peak = peak_bytes(&run);
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
    println!("{count} sites: at most {peak} bytes");
    assert!(peak < MOST_BYTES, "{peak} bytes of {MOST_BYTES}");
}

/// The clock of one site is seven hours behind, and that of another one as much ahead.
#[test]
fn agents_whose_clocks_are_hours_off_are_tested_as_the_others() {
    let Some(fleet) = Fleet::new() else { return };
    let sites = ["a", "b", "c"].map(String::from);
    let mesh = fleet.mesh(&mesh(&sites));
    simulate(&fleet, sites.to_vec(), |site| match site {
        "a" => 0,
        "b" => -7,
        _ => 7,
    });
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    assert!(said.contains("3 sites, 6 of 6 pairs tested"), "{said}");
    // Each record keeps the time of the host that made it.
    let now = Timestamp::now();
    let hours = |started: &str| {
        let started: Timestamp = started.parse().expect("it is a time");
        let s = started.duration_since(now).as_secs_f64();
        (s / 3600.0).round() as i64
    };
    let mut clocks: Vec<_> =
        records(home.path()).iter().map(|record| hours(&record.started)).collect();
    clocks.sort_unstable();
    assert_eq!(clocks, [-7, -7, 0, 0, 7, 7]);
    let output = home.run(&["fleet", "matrix", "--mesh", &mesh]);
    assert!(stdout(&output).contains("6 of 6 pairs tested"), "{}", stdout(&output));
}
