//! Which hosts are one, and who may change a host.

use super::*;
use crate::awaited::{AwaitedThere, Notify};
use crate::hosts::InOrder;
use crate::others::{await_dead_man, check_hold, refuse_others};
use goodput_testing::FreeBsd;

#[test]
fn a_second_goodput_is_refused() {
    in_scene(|folder| {
        let first = begin(&folder);
        let second = RemoteChanges::at(host(), folder.path(), Vec::new()).err().unwrap();
        assert!(matches!(second, RemoteError::Busy { .. }), "{second}");
        drop(first);
        begin(&folder);
    });
}

/// A process that looks like the guard of a run at this host, in a session of its own, and waits for its input to end.
fn guard(script: &str, journal: &std::path::Path) -> process::Child {
    let mut child = process::Command::new("setsid")
        .args(["sh", "-c", script, "guard"])
        .arg(journal)
        .stdin(process::Stdio::piped())
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let said = child.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    child
}

fn end(mut guard: process::Child) {
    drop(guard.stdin.take());
    guard.wait().unwrap();
}

/// Whether a run by SSH has begun to look for others in this thread's network namespace: its dead-man is there.
fn is_looking() -> bool {
    looking() > 0
}

/// How many dead-men are in this thread's network namespace.
fn looking() -> usize {
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_there = |process: &PathBuf| {
        let words = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        words.contains(goodput_settings::DEAD_MAN)
            && std::fs::read_link(process.join("ns/net")).is_ok_and(|namespace| namespace == own)
    };
    processes.filter(is_there).count()
}

/// A run at that host itself waits for it, too.
#[test]
fn the_guard_of_an_ended_run_there_is_waited_for_and_a_live_run_is_not() {
    const GUARD: &str = "echo ready; read line";
    // The run is a shell, and so is its guard.
    const OF_LIVE_RUN: &str = "sh -c 'echo ready; read line; :' guard \"$1\"; :";
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let journal = elsewhere.path().join("1.journal.jsonl");
        let begun = |journal: &std::path::Path, pid: u32| {
            std::fs::write(journal, format!("{{\"line\":\"begin\",\"pid\":{pid}}}\n")).unwrap();
        };
        begun(&journal, 0);
        let live = guard(OF_LIVE_RUN, &journal);
        begun(&journal, live.id());
        let refused = RemoteChanges::at(host(), folder.path(), Vec::new()).err().unwrap();
        assert!(matches!(refused, RemoteError::Busy { .. }), "{refused}");
        // Its dead-man ends by itself, a little later.
        wait_for("the refused run to be gone", || !is_looking());
        let waited_for = |guard: process::Child| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    wait_for("a run that looks for others", is_looking);
                    end(guard);
                });
                drop(begin(&folder));
            });
            wait_for("the run to be gone", || !is_looking());
        };
        // It could not put everything back, and its guard tries again.
        std::fs::write(&journal, "{\"line\":\"taken-over\",\"pid\":1}\n").unwrap();
        waited_for(live);
        // Another process than its run is its parent.
        let journal = elsewhere.path().join("2.journal.jsonl");
        begun(&journal, 0);
        waited_for(guard(GUARD, &journal));
        assert!(journals(&folder).is_empty());
    });
}

#[test]
fn whose_guard_is_waited_for_is_said_once() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let journal = elsewhere.path().join("1.journal.jsonl");
        std::fs::write(&journal, "{\"line\":\"begin\",\"pid\":0}\n").unwrap();
        let left = guard("echo ready; read line", &journal);
        let pid = left.id();
        let (tell, told) = std::sync::mpsc::channel();
        let notify = Notify::by(move |awaited: &AwaitedThere| tell.send(awaited.clone()).unwrap());
        let awaited = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let host = host().notifying(&notify);
                drop(RemoteChanges::at(host, folder.path(), Vec::new()).unwrap());
            });
            let mut awaited = None;
            wait_for("the notice", || {
                awaited = told.try_recv().ok();
                awaited.is_some()
            });
            end(left);
            run.join().unwrap();
            awaited.unwrap()
        });
        assert_eq!((awaited.pid, &*awaited.host), (pid, "ssh://here"));
        let whose = awaited.whose.as_ref().unwrap();
        assert!(whose.age.is_some() && !whose.user.is_empty(), "{awaited}");
        assert!(
            awaited.to_string().contains("which puts back what an ended run left"),
            "{awaited}"
        );
        drop(notify);
        assert!(told.try_recv().is_err(), "once");
    });
}

/// Each of them sees the other's process there.
#[test]
fn of_runs_that_wait_for_a_guard_the_first_one_goes_on_and_the_second_is_refused() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let journal = elsewhere.path().join("1.journal.jsonl");
        std::fs::write(&journal, "{\"line\":\"begin\",\"pid\":0}\n").unwrap();
        let left = guard("echo ready; read line", &journal);
        std::thread::scope(|scope| {
            // In the network namespace of this thread, as every thread that it starts.
            let first = scope.spawn(|| begin(&folder));
            wait_for("a run that looks for others", is_looking);
            let second = RemoteChanges::at(host(), elsewhere.path(), Vec::new()).err().unwrap();
            assert!(matches!(second, RemoteError::Busy { .. }), "{second}");
            end(left);
            let mut first = first.join().unwrap();
            assert_eq!(first.apply(&setting(PARAMETER), OURS).unwrap(), OURS);
            assert!(first.restore().report.is_clean());
        });
        assert!(journals(&folder).is_empty());
    });
}

/// However they meet, with nobody in the way.
#[test]
fn of_runs_that_begin_at_once_one_goes_on() {
    in_scene(|folder| {
        for _ in 0..3 {
            let runs = std::thread::scope(|scope| {
                let begin = || scope.spawn(|| RemoteChanges::at(host(), folder.path(), Vec::new()));
                let runs = [begin(), begin(), begin()];
                // The one that goes on lives until the others were judged.
                runs.map(|run| run.join().unwrap())
            });
            let (on, refused): (Vec<_>, Vec<_>) = runs.into_iter().partition(Result::is_ok);
            assert_eq!(
                on.len(),
                1,
                "{:?}",
                refused.iter().map(|run| run.as_ref().err()).collect::<Vec<_>>()
            );
            for error in refused.into_iter().filter_map(Result::err) {
                assert!(matches!(error, RemoteError::Busy { .. }), "{error}");
            }
            drop(on);
            wait_for("the runs to be gone", || !is_looking());
        }
        assert!(journals(&folder).is_empty());
    });
}

#[test]
fn a_run_that_holds_the_host_waits_for_one_that_looks_and_goes() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let holder = begin(&folder);
        // It has begun, and has not looked for others yet.
        let mut late = host();
        crate::ssh::DeadMan::start(&mut late.session).unwrap();
        let held_by = holder.dead_man();
        std::thread::scope(|scope| {
            let changes = scope.spawn(|| {
                let mut held = host();
                held.held_by = held_by;
                RemoteChanges::at(held, elsewhere.path(), Vec::new()).map(drop)
            });
            wait_for("the run that holds the host to look, too", || looking() >= 3);
            late.session.end();
            assert!(changes.join().unwrap().is_ok());
        });
    });
}

#[test]
fn while_what_a_dead_run_left_is_put_back_nobody_else_begins() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        die(changes);
        let mut undoing = host();
        assert!(undo_at(folder.path(), &mut undoing)[0].report.is_clean());
        let other = RemoteChanges::at(host(), elsewhere.path(), Vec::new()).err().unwrap();
        assert!(matches!(other, RemoteError::Busy { .. }), "{other}");
        drop(undoing);
        begin(&elsewhere);
    });
}

/// The login of another host: in a network namespace of its own.
fn another_host(name: &str) -> Host {
    let login = || {
        let script = "mount -t sysfs none /sys; exec sh";
        Session::with_shell(["unshare", "--net", "--mount", "sh", "-c", script])
    };
    Host::through(Box::new(login), &name.parse().unwrap(), &Access::default()).unwrap()
}

#[test]
fn this_host_is_known_by_any_name_and_no_other_one_is_taken_for_it() {
    in_scene(|folder| {
        let alias = RemoteChanges::at(host_called("ssh://alias"), folder.path(), Vec::new());
        assert!(alias.unwrap().is_this_host());
        let far = another_host("ssh://far");
        assert!(!RemoteChanges::at(far, folder.path(), Vec::new()).unwrap().is_this_host());
        let own = tempfile::tempdir().unwrap();
        let jail = freebsd("ssh://jail", &FreeBsd::in_folder(own.path()).jail(1));
        assert!(!one_host::is_here(jail.system, &jail.identity), "it runs another system");
    });
}

#[test]
fn two_names_of_one_host_are_refused_for_two_ends() {
    in_scene(|folder| {
        let mut near = begin(&folder);
        let refused = one_host::refuse(&mut near.host, &mut host_called("ssh://alias"));
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("both ends: ssh://here is ssh://alias; leave out --near"), "{said}");
        // The same place, from which the process of the first login can't be seen.
        let contained = || {
            Session::with_shell([
                "unshare",
                "--pid",
                "--fork",
                "--mount-proc",
                "sh",
                "-c",
                "exec sh",
            ])
        };
        let address = "ssh://contained".parse().unwrap();
        let host = Host::through(Box::new(contained), &address, &Access::default());
        let refused = one_host::refuse(&mut near.host, &mut host.unwrap()).unwrap_err();
        assert!(refused.to_string().contains("perhaps ssh://here is ssh://contained"), "{refused}");
    });
}

#[test]
fn two_hosts_that_look_alike_are_both_changed() {
    in_scene(|folder| {
        let mut near = begin(&folder);
        let before = value(PARAMETER);
        near.apply(&setting(PARAMETER), OURS).unwrap();
        let mut far = another_host("ssh://far");
        one_host::refuse(&mut near.host, &mut far).unwrap();
        // As jails without an id of their own, or machines that were resumed from one snapshot.
        far.identity.clone_from(&near.host.identity);
        one_host::refuse(&mut near.host, &mut far).unwrap();
        let mut far = RemoteChanges::after_dead_runs(far, folder.path()).unwrap();
        assert_eq!(value(PARAMETER), OURS, "the other one is not undone for it");
        assert_eq!(far.apply(&setting(PARAMETER), OURS).unwrap(), OURS);
        assert!(far.restore().report.is_clean());
        assert_eq!(value(PARAMETER), OURS);
        assert!(near.restore().report.is_clean());
        assert_eq!((value(PARAMETER), journals(&folder).len()), (before, 0));
    });
}

/// Two runs that change both hosts, each as its other end, and know them by other names.
#[test]
fn of_runs_that_change_two_hosts_in_crossed_order_one_gets_both() {
    let folder = tempfile::tempdir().unwrap();
    let jails = [1, 2].map(|number| {
        let own = folder.path().join(number.to_string());
        std::fs::create_dir(&own).unwrap();
        FreeBsd::in_folder(&own).jail(number)
    });
    let run = |number: usize, names: [(&str, &FreeBsd); 2]| {
        let state_dir = folder.path().join(format!("state-{number}"));
        let hosts = names.map(|(name, jail)| freebsd(name, jail)).into();
        let order = InOrder::of(hosts, &[]);
        assert!(order.before_here.is_empty());
        let mut both: Vec<RemoteChanges> = Vec::new();
        for host in order.after_here {
            let changes = RemoteChanges::begin_beside(&state_dir, host, &mut both)?;
            both.push(changes);
        }
        Ok::<_, RemoteError>(both)
    };
    let [one, other] = &jails;
    for _ in 0..3 {
        let runs = std::thread::scope(|scope| {
            let first = scope.spawn(|| run(1, [("ssh://a", one), ("ssh://b", other)]));
            let second = scope.spawn(|| run(2, [("ssh://c", other), ("ssh://d", one)]));
            [first, second].map(|run| run.join().unwrap())
        });
        let (on, refused): (Vec<_>, Vec<_>) = runs.into_iter().partition(Result::is_ok);
        let refused: Vec<_> = refused.into_iter().filter_map(Result::err).collect();
        assert_eq!((on.len(), refused.len()), (1, 1), "{refused:?}");
        assert!(matches!(refused[0], RemoteError::Busy { .. }), "{refused:?}");
    }
}

#[test]
fn this_host_has_its_place_among_those_reached_by_ssh() {
    let folder = tempfile::tempdir().unwrap();
    let jail = FreeBsd::in_folder(folder.path());
    let hosts = || {
        ["3", "1", "2"].map(|boot| {
            let mut host = freebsd("ssh://a", &jail);
            host.identity[0] = boot.into();
            host
        })
    };
    let boots = |hosts: Vec<Host>| -> String {
        hosts.into_iter().map(|host| host.identity[0].clone()).collect()
    };
    let order = InOrder::of(hosts().into(), &["2".to_owned()]);
    assert_eq!((boots(order.before_here), boots(order.after_here)), ("1".into(), "23".into()));
}

#[test]
fn a_session_at_this_host_reads_what_this_host_knows_of_itself() {
    in_scene(|_| assert_eq!(host().identity, goodput_settings::identity_here().unwrap()));
}

/// A login at a simulated FreeBSD.
fn freebsd(name: &str, userland: &FreeBsd) -> Host {
    let words = userland.environment().map(|(name, value)| format!("{name}={}", value.display()));
    let login = move || Session::with_shell(["env", &words[0], &words[1], "/bin/sh"]);
    Host::through(Box::new(login), &name.parse().unwrap(), &Access::default()).unwrap()
}

#[test]
fn two_jails_that_report_the_same_are_two_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let jails = ["a", "b"].map(|name| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        FreeBsd::in_folder(&own).jail(34)
    });
    let near = freebsd("ssh://a", &jails[0]);
    let mut near = RemoteChanges::at(near, &folder.path().join("state"), Vec::new()).unwrap();
    let mut far = freebsd("ssh://b", &jails[1]);
    assert_eq!((&far.identity, &far.machine), (&near.host.identity, &None));
    one_host::refuse(&mut near.host, &mut far).unwrap();
    let refused = one_host::refuse(&mut near.host, &mut freebsd("ssh://alias", &jails[0]));
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("ssh://a is ssh://alias"), "{said}");
}

#[test]
fn between_two_changes_of_a_run_that_holds_the_host_nobody_else_begins() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let refuses_others = || {
            let other = RemoteChanges::at(host(), elsewhere.path(), Vec::new());
            matches!(other, Err(RemoteError::Busy { .. }))
        };
        let holder = begin(&folder);
        assert!(refuses_others());
        let mut held = host();
        held.held_by = holder.dead_man();
        let mut changes = RemoteChanges::after_dead_runs(held, folder.path()).unwrap();
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        assert!(changes.restore().report.is_clean());
        assert!(refuses_others());
        let mut late = host();
        late.held_by = holder.dead_man();
        drop(holder);
        assert!(!refuses_others() && journals(&folder).is_empty());
        let late = RemoteChanges::after_dead_runs(late, folder.path());
        assert!(matches!(late, Err(RemoteError::Lost { .. })), "somebody else may have changed it");
    });
}

#[test]
fn a_process_that_got_the_number_of_a_dead_man_is_not_that_dead_man() {
    in_scene(|folder| {
        let other = begin(&folder);
        let its = other.dead_man().unwrap();
        let mut of_it = host();
        of_it.held_by = Some(its.clone());
        assert!(refuse_others(&mut of_it).is_ok(), "its own changes may go on");
        let gone = DeadManId { mark: Some("the-mark-of-another".into()), ..its };
        let mut held = host();
        held.held_by = Some(gone.clone());
        let refused = refuse_others(&mut held);
        assert!(matches!(refused, Err(RemoteError::Busy { .. })), "{refused:?}");
        await_dead_man(&mut host(), &gone).expect("nobody waits for somebody else's");
        assert!(matches!(check_hold(&mut held), Err(RemoteError::Lost { .. })));
    });
}
