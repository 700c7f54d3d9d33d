//! The objects of iperf3's JSON, with its key order (iperf 3.12 to 3.22, iperf_api.c). Unknown values are left out, as
//! iperf3 leaves out the retransmits of a system that does not count them.

use serde::Serialize;

use super::end::End;
use super::spans::Interval;
use super::start::Start;

/// The whole document.
#[derive(Debug, Default, Serialize)]
pub struct Tree {
    /// What was known at the start.
    pub start: Start,
    /// What this end counted while it ran.
    pub intervals: Vec<Interval>,
    /// What both ends counted.
    pub end: End,
    /// `-T`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The server's own output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
    /// The same for a server that prints JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_json: Option<serde_json::Value>,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
