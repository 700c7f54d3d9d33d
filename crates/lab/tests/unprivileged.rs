//! The lab without root: a child of another user enters a user namespace, and what it then starts
//! can build a lab.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use goodput_lab::{Lab, Scenario, privilege};
use goodput_testing::skip;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Set in the child that runs inside the user namespace.
const INSIDE: &str = "GOODPUT_LAB_TEST_INSIDE";

/// The user `nobody` of most systems; any that is not root would do.
const NOBODY: u32 = 65534;

/// Runs the test `inside` of this file again, by a user without any rights who entered a user
/// namespace.
#[expect(unsafe_code, reason = "pre_exec runs code between fork and exec")]
fn again_as_nobody(inside: &str) -> std::io::Result<Output> {
    // By its descriptor, because the path may lead through directories that are closed to others.
    let own = std::fs::File::open("/proc/self/exe")?;
    let mut command = Command::new(format!("/proc/self/fd/{}", own.as_raw_fd()));
    command.args(["--exact", inside, "--nocapture"]).env(INSIDE, "1").uid(NOBODY).gid(NOBODY);
    command.stdout(Stdio::piped());
    let enter = || {
        // Who changes its user can't write to its own /proc files until the next exec.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        privilege::enter().map(drop).map_err(|error| {
            // Only an error number gets from here to the parent.
            eprintln!("{error}");
            std::io::Error::from_raw_os_error(libc::EPERM)
        })
    };
    // SAFETY: the child has one thread; glibc makes its allocator usable after fork, and no lock
    // of ours is held.
    unsafe { command.pre_exec(enter) };
    command.spawn()?.wait_with_output()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn an_ordinary_user_builds_the_demo_s_lab() {
    const NAME: &str = "an_ordinary_user_builds_the_demo_s_lab";
    if std::env::var_os(INSIDE).is_some() {
        return inside_the_user_namespace();
    }
    if !is_root() {
        return skip("root, to become another user");
    }
    match again_as_nobody(NAME) {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}");
            assert!(said.contains("built as nobody"), "{said}");
        }
        Err(error) => skip(&format!("user namespaces ({error})")),
    }
}

fn inside_the_user_namespace() {
    assert!(is_root(), "nobody outside is root inside");
    for name in ["burst-too-small", "shaper-rate", "path-rate", "healthy-lan"] {
        let scenario = Scenario::load(name).expect("it is built in");
        let lab = Lab::up(&scenario).expect("it needs namespaces only");
        assert!(lab.enter_hint(lab.near()).contains("--user"), "{name}");
    }
    let emulated = Scenario::load("path-loss").expect("it is built in");
    if let Some(obstacle) = emulated.obstacle() {
        assert!(obstacle.contains("/dev/net/tun") && obstacle.contains("root"), "{obstacle}");
        let error = Lab::up(&emulated).expect_err("there is an obstacle").to_string();
        assert!(error.contains("can't run here"), "{error}");
    }
    println!("built as nobody");
}

#[test]
fn a_process_with_threads_is_refused_in_words() {
    const NAME: &str = "a_process_with_threads_is_refused_in_words";
    // A test runs beside the main thread, so there are two; root needs no namespace and is let by.
    match privilege::enter() {
        Ok(privilege) => assert_eq!(privilege, privilege::Privilege::Own, "{NAME}"),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("threads") && error.contains("call privilege::enter first"));
        }
    }
}
