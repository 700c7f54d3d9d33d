//! What `goodput lab` takes.

use clap::Subcommand;

use super::Narrowed;

/// `goodput lab`
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// The scenarios that come with goodput, and whether they can run here
    List {
        /// Print one JSON line for each case
        #[arg(long, conflicts_with = "Narrowed")]
        json: bool,
        #[command(flatten)]
        narrowed: Narrowed,
    },
    /// Run scenarios and compare what comes out with what is expected
    Run {
        /// Names or files, with the case where one has several, like path-loss/mild/far; all that
        /// come with goodput where none is given
        scenarios: Vec<String>,
        /// Run every case of each, not only the one in the middle
        #[arg(long)]
        full: bool,
        /// Print one JSON line for each run: case, what was expected, what came, and the record
        #[arg(long)]
        json: bool,
    },
    /// Compare values of a setting in the hosts of a scenario
    Compare {
        /// Name or file, with the case where it has several
        scenario: String,
        /// [far:]NAME[@SCOPE]=A,B: the first value is the baseline
        #[arg(value_name = "SETTING=A,B")]
        factor: String,
        /// Print one JSON line: case, what was compared, and the record
        #[arg(long)]
        json: bool,
    },
    /// Keep a scenario's hosts up until Ctrl-C, and say how to get into them
    Up {
        /// Name or file, with the case where it has several
        scenario: String,
    },
    /// Print a scenario, as a start for your own
    Show {
        /// Name or file, with the case to see one filled in
        scenario: String,
    },
}
