//! Ranges of kernel parameters of the whole host, which only a machine of the test's own can try.

use std::fs;
use std::io::{self, Write};

use goodput_settings::parameters::DOCUMENTED;
use libtest_mimic::{Failed, Trial};

use crate::cards::TURN;
use crate::in_turn;
use crate::program::goodput;

/// Every test of this module.
pub fn all() -> Vec<Trial> {
    vec![
        Trial::test("what_is_just_outside_of_a_documented_range_is_refused", outside),
        // The program asks for the right to change this host first.
        in_turn(&TURN, "a_value_that_no_kernel_takes_is_refused_before_the_change", explained),
    ]
}

fn outside() -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for (name, range) in &DOCUMENTED {
        let file = format!("/proc/sys/{name}");
        // Not every kernel has every parameter.
        let Ok(before) = fs::read_to_string(&file) else { continue };
        for number in [range.start() - 1, range.end() + 1] {
            let refused = write(&file, &number.to_string());
            let is_refused = refused.is_err_and(|cause| {
                cause.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
            });
            if !is_refused || fs::read_to_string(&file)? != before {
                wrong.push(format!("{name}={number}"));
                write(&file, before.trim())?;
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("taken: {}", wrong.join(", ")).into()) }
}

fn write(file: &str, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

fn explained() -> Result<(), Failed> {
    let refused = goodput(&["settings", "set", "sysctl.vm.swappiness=201"]);
    let why = refused.err().and_then(|failed| Some(failed.message()?.to_string()));
    let said = why.as_deref().is_some_and(|why| why.contains("less than 0 or more than 200"));
    if said { Ok(()) } else { Err(format!("{why:?}").into()) }
}
