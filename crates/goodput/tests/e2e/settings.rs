//! Settings of the measurement, compared on loopback; settings of the machine are compared in the
//! lab (tests/lab.rs).

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use goodput_model::{Kind, Record};

use crate::common::{HALF_A_SECOND, Home, Server, exe, stderr, stdout};

#[test]
fn two_movers_are_compared() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&[
        "compare",
        &server.address,
        "mover=copy,sendfile",
        "--json",
        "--no-store",
        "-n",
        "1M",
        "--max-time",
        "4",
    ]);
    // Whether it comes to a conclusion is the machine's business: 0 or 4.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    let record: goodput_model::Record = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record.kind, Kind::Compare);
    let comparison = record.comparison.expect("a comparison");
    assert_eq!(comparison.arms.len(), 2);
    assert!(comparison.trials.len() >= 4, "{}", comparison.stopped);
}

#[test]
fn what_the_far_end_refuses_of_a_plan_is_refused_before_the_first_run() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-duration", "1"]);
    let compare = ["compare", &server.address, "mover=copy,sendfile", "--json-stream"];
    let output = home.run(&[&compare[..], &["--no-store", "-t", "5"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("mover=copy: "), "{said}");
    assert!(!stdout(&output).contains("trial-"), "{}", stdout(&output));
}

#[test]
fn a_range_is_judged_by_what_is_named_beside_a_placebo() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let arms = ["compare", &server.address, "chunk=32K..128K", "--placebo", "--json", "--no-store"];
    let judged_by = ["--response", "throughput,cpu,loss,interrupts"];
    let limits = ["-n", "1M", "--max-time", "8"];
    let output = home.run(&[&arms[..], &judged_by, &limits].concat());
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    let record: goodput_model::Record = serde_json::from_slice(&output.stdout).unwrap();
    let comparison = record.comparison.expect("a comparison");
    let values: Vec<_> = comparison.arms.iter().map(|arm| arm.values.join(" ")).collect();
    assert_eq!(values, ["32K", "64K", "128K", "32K"]);
    for arm in &comparison.arms {
        let names: Vec<_> = arm.responses.iter().map(|result| result.response.name()).collect();
        assert_eq!(names, ["throughput", "cpu", "loss", "interrupts"]);
        // Loopback has no interrupts, and its TCP counts what it sent again. On a busy machine there may be no time for
        // runs of every arm after the warm-up.
        let is_known: Vec<_> =
            arm.responses[2..].iter().map(|result| result.median.value().is_some()).collect();
        assert_eq!(is_known, [arm.n > 0, false], "{arm:?}: {}", comparison.stopped);
    }
    let is_beside = |trial: &goodput_model::Trial| {
        trial.conditions.get("reference-copy-s-per-gb").is_some_and(|cost| *cost > 0.0)
    };
    assert!(comparison.trials.iter().all(is_beside), "{:?}", comparison.trials);
    let have_run = comparison.arms.iter().all(|arm| arm.n > 0);
    assert!(comparison.curve.is_some() || !have_run, "{}", comparison.stopped);
}

/// A comparison that goes on for long, started by `shell`, once a run of it has ended.
fn long_comparison(home: &Home, server: &Server, shell: &str) -> (Child, BufReader<ChildStdout>) {
    let command = home.goodput(&[]);
    let mut sh = std::process::Command::new("sh");
    sh.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    sh.args(["-c", shell, "sh"]).arg(exe());
    sh.args(["compare", &server.address, "mover=copy,sendfile", "--json-stream", "--no-store"]);
    sh.args(HALF_A_SECOND).args(["--max-time", "600", "--precision", "0.001"]);
    let mut child = sh.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut said = String::new();
    while !said.contains("trial-ended") {
        let read = lines.read_line(&mut said).expect("it is a pipe");
        assert!(read > 0, "it ended early: {said}");
    }
    (child, lines)
}

fn signal(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill").args([signal, &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {signal} {pid}");
}

#[test]
fn a_lost_terminal_ends_a_comparison_with_what_is_known() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    // Whoever runs the tests may ignore it, and a shell can't change that.
    let hears = "exec env --default-signal=HUP \"$@\"";
    let (mut child, mut lines) = long_comparison(&home, &server, hears);
    // The shell sends one, and the kernel another.
    signal(&child, "-HUP");
    signal(&child, "-HUP");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("it is a pipe");
    assert_eq!(child.wait().expect("it is a child").code(), Some(2), "{rest}");
    let last = rest.lines().last().expect("the record is the last line");
    let event: serde_json::Value = serde_json::from_str(last).expect("it is JSON");
    let record: Record = serde_json::from_value(event["record"].clone()).expect("it is a record");
    assert_eq!(record.kind, Kind::Compare);
}

#[test]
fn who_is_to_outlive_the_terminal_does() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (mut child, mut lines) = long_comparison(&home, &server, "trap '' HUP; exec \"$@\"");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it lives");
    signal(&child, "-TERM");
    // A pipe that nobody reads would hold up its end.
    lines.read_to_string(&mut String::new()).expect("it is a pipe");
    child.wait().expect("it is a child");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(ignored.expect("proc(5)").trim(), 16).expect("hexadecimal");
    assert_eq!(mask & 1, 1, "SIGHUP is ignored still");
}

#[test]
fn a_damaged_journal_is_shown_until_a_person_sets_it_aside() {
    let home = Home::new();
    let folder = home.path().join("of-journals");
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let journal = folder.join("1-1.journal.jsonl");
    std::fs::write(&journal, "\0\0\0").unwrap();
    let state = ["--state-dir", folder.to_str().unwrap()];
    let run = |words: &[&str]| home.run(&[&state[..], words].concat());
    let shown = run(&["settings", "undo"]);
    assert_eq!(shown.status.code(), Some(2));
    for words in ["its first line is not valid; nothing was changed", "undo --damaged"] {
        assert!(stdout(&shown).contains(words), "{words}: {}", stdout(&shown));
    }
    assert_eq!(std::fs::read(&journal).unwrap(), [0; 3]);
    let aside = run(&["settings", "undo", "--damaged"]);
    assert!(stdout(&aside).contains("set aside as"), "{}{}", stdout(&aside), stderr(&aside));
    assert!(aside.status.success() && !journal.exists());
    assert!(stdout(&run(&["settings", "undo"])).contains("nothing to undo"));
}

#[test]
fn an_interrupted_run_of_nothing_leaves_nothing_to_undo() {
    let home = Home::new();
    let text = stdout(&home.run(&["settings", "undo"]));
    assert!(text.contains("nothing to undo"), "{text}");
}

#[test]
fn an_effective_value_can_be_read() {
    let home = Home::new();
    let text = stdout(&home.run(&["settings", "get", "sysctl.net.ipv4.tcp_rmem"]));
    assert_eq!(text.split_whitespace().count(), 3, "{text}");
    let unknown = home.run(&["settings", "get", "sysctl.net.ipv4.tcp_rmen"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("tcp_rmem"), "{}", stderr(&unknown));
}

#[test]
fn what_a_dead_run_left_is_reported_and_can_be_forgotten() {
    let home = Home::new();
    let folder = home.path().join("journals");
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let setting: goodput_model::SettingRef = "link.mtu@eth0".parse().unwrap();
    let setting = serde_json::to_string(&setting).unwrap();
    // A namespace that nobody is in: no inode has this number.
    let journal = format!(
        "{{\"line\":\"begin\",\"format\":1,\"pid\":1,\"boot_id\":\"{}\",\"netns\":1}}\n\
         {{\"line\":\"intent\",\"setting\":{setting},\"original\":\"1500\",\
         \"exact\":\"1500\",\"to\":\"9000\"}}\n",
        boot.trim()
    );
    std::fs::write(folder.join("1.journal.jsonl"), journal).unwrap();
    let run = |words: &[&str]| {
        let place = ["--state-dir", folder.to_str().unwrap()];
        home.run(&[&place[..], words].concat())
    };
    let said = stderr(&run(&["check", "lo"]));
    assert!(said.contains("link.mtu@eth0") && said.contains("settings undo"), "{said}");
    let waiting = run(&["settings", "undo"]);
    // In this namespace, all is as it was.
    assert_eq!(waiting.status.code(), Some(0), "{}", stdout(&waiting));
    assert!(stdout(&waiting).contains("--forget"), "{}", stdout(&waiting));
    // From inside a container nobody can know that a namespace is gone.
    let asked = stdout(&run(&["settings", "undo", "--forget"]));
    let forgotten = match asked.contains("--forget-unseen") {
        true => stdout(&run(&["settings", "undo", "--forget-unseen"])),
        false => asked,
    };
    assert!(forgotten.contains("namespace is gone"), "{forgotten}");
    assert!(stdout(&run(&["settings", "undo"])).contains("nothing to undo"));
}

/// A journal of a dead run in this namespace, which would have changed a parameter and did not come to it.
fn plant_journal(folder: &Path) -> PathBuf {
    std::fs::DirBuilder::new().mode(0o700).create(folder).expect("it is new");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("proc is there");
    let netns = std::fs::metadata("/proc/self/ns/net").expect("proc is there").ino();
    let value = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("proc is there");
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let setting: goodput_model::SettingRef = "sysctl.net.ipv4.tcp_rmem".parse().expect("a name");
    let setting = serde_json::to_string(&setting).expect("JSON");
    let journal = format!(
        "{{\"line\":\"begin\",\"format\":1,\"pid\":1,\"boot_id\":\"{}\",\"netns\":{netns}}}\n\
         {{\"line\":\"intent\",\"setting\":{setting},\"original\":\"{value}\",\
         \"exact\":\"{value}\",\"to\":\"4096 8192 65536\"}}\n",
        boot.trim()
    );
    let path = folder.join("1.journal.jsonl");
    std::fs::write(&path, journal).expect("it is writable");
    path
}

#[test]
fn a_server_that_changes_settings_settles_what_is_left_and_asks_nobody_to() {
    for settles in [true, false] {
        let home = Home::new();
        let token = home.secret("token", "4cf1d5a6e0b27c9388ab41f02d6e759c");
        let allowed = [
            "--token-file",
            token.to_str().unwrap(),
            "--allow-settings",
            "sysctl.net.ipv4.tcp_rmem",
        ];
        let arguments = if settles { &allowed[..] } else { &[] };
        let journal = plant_journal(&home.path().join("state"));
        let _server = Server::start(&home, arguments);
        let log = std::fs::read_to_string(home.path().join("server.log")).unwrap();
        assert_eq!(journal.exists(), !settles, "{log}");
        assert_eq!(log.contains("settings undo"), !settles, "{log}");
        assert_eq!(log.contains("tcp_rmem: already as it was"), settles, "{log}");
    }
}

#[test]
fn files_that_keep_values_are_printed_and_none_is_written() {
    let home = Home::new();
    let rmem = "sysctl.net.ipv4.tcp_rmem=4096 131072 6291456";
    let arguments = ["settings", "show-files", rmem, "qdisc.kind@lo=fq"];
    let text = stdout(&home.run(&arguments));
    assert!(text.contains("# /etc/sysctl.d/"), "{text}");
    assert!(text.contains("net.ipv4.tcp_rmem = 4096 131072 6291456\n"), "{text}");
    // No networkd configures it.
    let at_boot = "settings set \"qdisc.kind@lo=fq\"";
    assert!(text.contains("# /etc/systemd/system/goodput-settings.service\n"), "{text}");
    assert!(text.contains(at_boot), "{text}");
    let file = text.lines().find_map(|line| line.strip_prefix("# /etc/sysctl.d/")).unwrap();
    let there = std::fs::read_to_string(format!("/etc/sysctl.d/{file}")).unwrap_or_default();
    assert!(!there.contains("4096 131072 6291456"), "it was written: {there}");
    let old = home.run(&["settings", "save", rmem]);
    assert!(text.contains(stdout(&old).trim()), "the name before is still understood");
    let none = home.run(&["settings", "show-files", "qdisc.kind@eth0"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("SETTING=VALUE"), "{}", stderr(&none));
}

/// Runs goodput in a network namespace and with a copy of /etc that end with it; `None` without the right to. Each
/// line of `commands` is one call. In the copy, folders that goodput writes to are there and empty.
fn in_a_world_of_its_own(home: &Home, commands: &[&str]) -> Option<String> {
    let calls: Vec<_> =
        commands.iter().map(|call| format!("\"$0\" {call} 2>&1 || echo exit $?")).collect();
    let script = format!(
        "cp -a /etc {copy} && mount --bind {copy} /etc || exit 77\n\
         for d in sysctl.d udev/rules.d systemd; do\n\
         mkdir -p /etc/$d && mount -t tmpfs none /etc/$d || exit 77\n\
         done\n{}",
        calls.join("\n"),
        copy = home.path().join("etc").display(),
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", &script]).arg(exe());
    command.env("GOODPUT_STATE_DIR", home.path().join("state")).stdin(Stdio::null());
    let output = command.output().ok()?;
    (output.status.code() == Some(0)).then(|| stdout(&output))
}

/// The first process is one of the test's own, so that its namespaces can be seen on any machine. Whatever goodput does,
/// the host's own folder stays as it is.
#[test]
fn nothing_is_saved_from_a_namespace_that_has_the_files_of_the_host() {
    let home = Home::new();
    let script = "mount -t tmpfs none /etc/sysctl.d || exit 77\n\
                  unshare --net \"$0\" settings set sysctl.net.ipv4.tcp_sack=0 --save 2>&1\n\
                  echo exit $?\n\
                  ls /etc/sysctl.d";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script]).arg(exe());
    command.env("GOODPUT_STATE_DIR", home.path().join("state")).stdin(Stdio::null());
    let output = command.output().expect("it starts");
    if output.status.code() != Some(0) {
        return goodput_testing::skip("the right to mount (root)");
    }
    let said = stdout(&output);
    assert!(said.contains("can't be saved from this network namespace"), "{said}");
    assert!(said.ends_with("exit 2\n"), "{said}");
}

#[test]
fn a_value_is_saved_listed_and_removed() {
    let home = Home::new();
    let file = "/etc/sysctl.d/90-goodput.conf";
    let said = in_a_world_of_its_own(
        &home,
        &[
            "settings set sysctl.net.ipv4.tcp_sack=0 --save",
            "settings get sysctl.net.ipv4.tcp_sack",
            "settings saved",
            "settings set socket.rcvbuf=4M --save",
            "settings undo --saved",
            "settings saved",
        ],
    );
    let Some(said) = said else { return goodput_testing::skip("the right to mount (root)") };
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].ends_with(&format!("1 → 0 (kept by {file})")), "{said}");
    assert_eq!(lines[1], "0");
    assert_eq!(lines[2], format!("{file}: sysctl.net.ipv4.tcp_sack=0"));
    assert!(said.contains("belongs to a measurement") && said.contains("exit 2"), "{said}");
    assert!(said.contains(&format!("removed {file}")), "{said}");
    assert!(lines.last().is_some_and(|last| last.contains("keeps no setting")), "{said}");
}
