//! What `goodput lab` takes.

use std::ffi::OsString;

use clap::Subcommand;

use super::Narrowed;
use crate::args::values::time;

const UP_EXAMPLES: &str = "\
Examples:
    goodput lab up path-loss                        # until Ctrl-C
    goodput lab up path-loss -- goodput test 10.77.1.2
    goodput lab up path-loss -- bash                # then: goodput test $FAR";

/// `goodput lab`
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the built-in scenarios, and whether they can run here
    List {
        /// Print one JSON line for each case
        #[arg(long, conflicts_with = "Narrowed")]
        json: bool,
        #[command(flatten)]
        narrowed: Narrowed,
    },
    /// Run scenarios and compare the results with the expected ones
    Run {
        /// Names or files, like path-loss or path-loss/mild/far [default: all built-in scenarios]
        ///
        /// mild/far is one case of a scenario.
        scenarios: Vec<String>,
        /// Run every case of each scenario, not only the middle one
        #[arg(long)]
        full: bool,
        /// Print one JSON line for each run
        ///
        /// The line has the case, the expected and the actual result, and the record.
        #[arg(long)]
        json: bool,
    },
    /// Compare values of a setting on the hosts of a scenario
    Compare {
        /// Name or file, with the case if there are several
        scenario: String,
        /// [far:]NAME[@SCOPE]=A,B: the first value is the baseline
        #[arg(value_name = "SETTING=A,B")]
        factor: String,
        /// Stop after this time, even if the result is inconclusive
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time::seconds)]
        max_time: f64,
        /// Print one JSON line: case, what was compared, and the record
        #[arg(long)]
        json: bool,
    },
    /// Tune the path of a scenario with settings of both hosts
    Tune {
        /// Name or file, with the case if there are several
        scenario: String,
        /// Stop after this time at the latest
        #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time::seconds)]
        max_time: f64,
        /// Print one JSON line: case and record
        #[arg(long)]
        json: bool,
    },
    /// Keep a scenario's hosts up, to try things in them
    ///
    /// Without a command, the hosts stay up until Ctrl-C, and goodput prints how to enter them. With a command, a server
    /// runs on the far host, and the hosts disappear when the command ends. In the command, $FAR is the address of the
    /// far host, $NEAR that of the near host, and $ON_FAR runs a program on the far host: $ON_FAR ip link. $ON_ROUTER
    /// runs a program on the router, if there is one. goodput ends with the command's exit code, or with 128 and the
    /// number of the signal that ended it.
    #[command(after_help = UP_EXAMPLES)]
    Up {
        /// Name or file, with the case if there are several
        scenario: String,
        /// What to run in the near host, like a shell
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Print a scenario, as a start for your own
    Show {
        /// Name or file, with a case to see its values filled in
        scenario: String,
    },
}
