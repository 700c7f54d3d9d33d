//! This host's history in a browser: pages made on this side, which load nothing from elsewhere.
//!
//! ```text
//! browser ──▶ server (sockets, TLS, times) ──▶ site ──▶ gate (who may see and do what)
//!                 │                             └────▶ pages (one file each) ──▶ layout ──▶ answer
//! scraper ────────┴──▶ metrics
//! pages ──▶ history (store), pictures (charts), and what the program hands over (program)
//! ```
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod answer;
mod asked;
mod gate;
mod graph;
mod layout;
mod metrics;
mod pages;
mod places;
mod program;
mod progress;
mod runs;
mod secret;
mod server;
mod site;
mod tls;
mod unsent;

pub use gate::Gate;
pub use metrics::Metrics;
pub use program::{
    ChangesPart, LoggedChange, MeasureAsked, Measures, MeshAsked, NoResult, PathChange, Program,
    Running, SettingLine,
};
pub use secret::Secret;
pub use server::{Answers, Listening, WebError, listen};
pub use site::Site;
pub use tls::{Tls, TlsError};
