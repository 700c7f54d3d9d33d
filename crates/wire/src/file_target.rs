//! What the protocols of file targets have in common: the host of the file does not know goodput, so no server of ours
//! speaks these protocols, and they are not in the list.

use std::time::{Duration, Instant};

use crate::direct::Answering;
use crate::error::WireError;
use crate::far_end::FarEnd;
use crate::greeting;
use crate::session::{ClientConfig, First, FirstDatagram, Protocol, Session};

/// Until all flows are open: the file is read once first.
pub(crate) const OPENING_TIMEOUT: Duration = Duration::from_secs(120);

/// The protocol of a file, with the `client` that reports what can't be done with it.
pub(crate) const fn protocol(
    id: &'static str,
    summary: &'static str,
    client: fn(Instant, ClientConfig) -> Box<dyn Session>,
) -> Protocol {
    Protocol {
        id,
        summary,
        port: 0,
        has_control: false,
        far_end: FarEnd {
            // It sends nothing before it is asked.
            awaits_begin: true,
            ..FarEnd::PLAIN
        },
        takes_the_rest: false,
        recognises: |_| First::Foreign,
        recognises_datagram: |_| FirstDatagram::Foreign,
        greet: greeting::none,
        client,
        server: |now, config| {
            Box::new(Answering::new(now, config, |_, _, _| {
                Err(WireError::Foreign { seems: "a client of a file".into() })
            }))
        },
    }
}
