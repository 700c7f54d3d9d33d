//! The program on virtual hosts: every built-in scenario against its expected verdict, settings
//! put back after every kind of end, and probes that split what looks alike.
//!
//! One test at a time: several would share the CPUs that they measure. Needs network namespaces,
//! which root may make, and others where the kernel lets them.

mod probes;
mod put_back;
mod scenarios;
mod stage;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests = match goodput_lab::privilege::enter() {
        Ok(_) => scenarios::all().into_iter().chain(put_back::all()).chain(probes::all()).collect(),
        Err(why) => vec![needs("lab", why.to_string())],
    };
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// A test that can't run here: a skip that is printed and counted, and a failure where everything
/// is required.
fn needs(name: &str, what: String) -> Trial {
    let required = std::env::var("GOODPUT_REQUIRE").is_ok_and(|value| value == "all");
    let line = format!("SKIPPED {name}: needs {what}");
    if required {
        return Trial::test(name, move || Err(Failed::from(line)));
    }
    eprintln!("{line}");
    Trial::test(name, || Ok(())).with_ignored_flag(true)
}
