//! Output of other programs, for any measurement and for scripts written against those programs. Each
//! format has its own file.
//!
//! An unknown value is left out if the format allows that. Otherwise it is what the real program prints
//! when it does not know, and the code says so.

mod counts;
mod csv;
mod cut;
pub mod iperf2_csv;
pub mod iperf2_sums;
pub mod iperf2_text;
pub mod iperf3;
pub mod iperf3_stream;
pub mod iperf3_text;
pub mod nuttcp;
pub mod nuttcp_parse;
pub mod nuttcp_verbose;
pub mod nuttcp_verbose_parse;
pub mod pscheduler;
mod replay;
mod text;
pub mod ttcp;

use std::net::SocketAddr;

use goodput_engine::Event;
use goodput_model::{Plan, Record};

pub use replay::print;
pub use text::is_unit;

/// This list is authoritative: `--format`, `goodput list formats` and the conformance test are made
/// from it.
pub const ALL: &[&Format] = &[
    &iperf3::FORMAT,
    &iperf3_stream::FORMAT,
    &iperf3_text::FORMAT,
    &nuttcp::FORMAT,
    &nuttcp_parse::FORMAT,
    &nuttcp_verbose::FORMAT,
    &nuttcp_verbose_parse::FORMAT,
    &iperf2_csv::FORMAT,
    &iperf2_text::FORMAT,
    &ttcp::FORMAT,
    &pscheduler::FORMAT,
];

/// An output format.
#[derive(Debug)]
pub struct Format {
    /// Its id for `--format`, equal to the file's name.
    pub id: &'static str,
    /// One line for `goodput list formats`.
    pub summary: &'static str,
    /// Why this format can't say what is in a record, as a sentence without its capital and point; `None` if it can. Its writer
    /// then prints nothing at the end.
    pub refuses: fn(&Record) -> Option<String>,
    /// Creates a writer for one measurement.
    pub writer: fn(Context) -> Box<dyn Writer>,
}

/// What a writer knows before anything has happened.
#[derive(Debug, Clone)]
pub struct Context {
    /// What will be measured.
    pub plan: Plan,
    /// The far end, as the user typed it.
    pub target: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Address of the client, if this end is the server.
    pub served: Option<SocketAddr>,
    /// Flows that this end had served before: iperf 2 continues its numbering.
    pub served_flows: u64,
    /// The user's choices for the format.
    pub style: Style,
}

/// The user's choices for a format.
#[derive(Debug, Clone, Default)]
pub struct Style {
    /// Which intervals to print.
    pub intervals: Intervals,
    /// Prefix of each line.
    pub title: Option<String>,
    /// Unit of rates as in iperf's `-f`: a, k, m, g, t for bits, capitals for bytes.
    pub units: Option<char>,
}

/// Which intervals to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Intervals {
    /// The program's default: iperf3 prints intervals, the others do not.
    #[default]
    Usual,
    /// All.
    All,
    /// None.
    None,
}

/// Prints one measurement while it runs and when it has ended.
pub trait Writer: Send {
    /// The lines for one event, each with its line end; mostly none.
    fn event(&mut self, _event: &Event) -> String {
        String::new()
    }

    /// The lines for the whole measurement, after all events.
    fn finish(&mut self, record: &Record) -> String;

    /// Output in place of a result, if the program prints errors on standard output.
    fn fail(&mut self, _why: &str) -> Option<String> {
        None
    }
}

/// The format with this id; the error lists the known ones.
pub fn find(id: &str) -> Result<&'static Format, String> {
    ALL.iter().copied().find(|format| format.id == id).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|format| format.id).collect();
        format!("no format is called {id:?}; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
