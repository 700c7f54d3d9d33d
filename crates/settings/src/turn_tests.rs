//! Two runs that would change one network namespace.

use std::path::Path;

use goodput_model::SettingRef;
use goodput_netlink::namespace;

use crate::testing::{Victim, guard, in_scene};
use crate::{Changes, SettingError, Turn};

/// A process that has changed a setting of this namespace.
fn another_run(state_dir: &Path) -> Victim {
    let mut run = Victim::start(state_dir, &["link.txqueuelen@eth1=77".into()], -1);
    run.wait_until_applied();
    run
}

#[test]
fn a_second_run_is_refused_until_the_first_one_is_done_or_dead() {
    in_scene(|state_dir| {
        let begin = || Changes::begin(state_dir, guard());
        let first = another_run(state_dir);
        let refused = begin().unwrap_err();
        assert!(matches!(refused, SettingError::Busy { .. }), "{refused}");
        let said = refused.to_string();
        assert!(said.contains(&format!("process {}", first.pid())), "{said}");
        let elsewhere = state_dir.with_file_name("elsewhere");
        assert!(matches!(Changes::begin(&elsewhere, guard()), Err(SettingError::Busy { .. })));
        assert!(matches!(Turn::take(state_dir, &guard()), Err(SettingError::Busy { .. })));
        assert!(first.finish());
        let mut changes = begin().unwrap();
        changes.apply(&"link.txqueuelen@eth0".parse().unwrap(), "77").unwrap();
        assert!(changes.restore().is_clean());

        let mut second = another_run(state_dir);
        second.kill_with_guard();
        let mut changes = begin().unwrap();
        assert!(changes.settled()[0].is_clean());
        assert!(changes.restore().is_clean());
    });
}

#[test]
fn a_run_in_another_namespace_is_nobodys_business() {
    in_scene(|state_dir| {
        let _first = another_run(state_dir);
        let begun = namespace::in_new_namespace(|| Changes::begin(state_dir, guard()).map(drop));
        assert!(begun.unwrap().is_ok());
    });
}

#[test]
fn a_run_of_several_steps_keeps_its_turn_between_them() {
    in_scene(|state_dir| {
        let setting: SettingRef = "link.txqueuelen@eth0".parse().unwrap();
        let turn = Turn::take(state_dir, &guard()).unwrap();
        for _ in 0..2 {
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&setting, "77").unwrap();
            assert!(changes.restore().is_clean());
        }
        assert!(Victim::try_start(state_dir, &["link.txqueuelen@eth1=77".into()]).is_none());
        drop(turn);
        assert!(another_run(state_dir).finish());
        assert_eq!(crate::leftovers(state_dir), []);
    });
}

/// The process that a run by SSH leaves in `namespace`, as its command line shows it. It ends with its input.
fn a_run_by_ssh(name: &str, namespace: &str) -> std::process::Child {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "echo ready; read line", name, "mark", "30", namespace]);
    let pipes = shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut run = pipes.spawn().unwrap();
    let mut ready = String::new();
    let said = run.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    run
}

fn end(mut run: std::process::Child) {
    drop(run.stdin.take());
    run.wait().unwrap();
}

/// The namespace of this thread, as a login there prints it.
fn here() -> String {
    std::fs::read_link("/proc/thread-self/ns/net").unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_run_by_ssh_keeps_others_out_until_it_ends() {
    in_scene(|state_dir| {
        let run = a_run_by_ssh(crate::DEAD_MAN, &here());
        let busy = |refused: Result<(), SettingError>| match refused {
            Err(SettingError::Busy { pid }) => pid,
            other => panic!("{other:?}"),
        };
        assert_eq!(busy(Changes::begin(state_dir, guard()).map(drop)), run.id());
        assert_eq!(busy(Turn::take(state_dir, &guard()).map(drop)), run.id());
        let elsewhere =
            namespace::in_new_namespace(|| Changes::begin(state_dir, guard()).map(drop));
        assert!(elsewhere.unwrap().is_ok());
        end(run);
        // As an older goodput leaves it.
        let older = a_run_by_ssh(crate::DEAD_MAN, "");
        assert_eq!(busy(Changes::begin(state_dir, guard()).map(drop)), older.id());
        end(older);
        let others = [("something-else", &*here()), (crate::DEAD_MAN, "net:[1]")];
        let others = others.map(|(name, namespace)| a_run_by_ssh(name, namespace));
        assert!(Changes::begin(state_dir, guard()).is_ok());
        others.into_iter().for_each(end);
        assert_eq!(crate::leftovers(state_dir), []);
    });
}

#[test]
fn a_turn_shows_a_guard_to_runs_by_ssh_until_it_ends() {
    in_scene(|state_dir| {
        let turn = Turn::take(state_dir, &guard()).unwrap();
        let guard = format!("/proc/{}/cmdline", turn.guard_pid().unwrap());
        let words = || std::fs::read_to_string(&guard).unwrap_or_default();
        assert!(words().contains(".journal.jsonl"), "{}", words());
        drop(turn);
        goodput_testing::wait_for("the guard to end", || words().is_empty());
        assert_eq!(crate::leftovers(state_dir), []);
    });
}
