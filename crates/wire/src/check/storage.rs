//! Whether a plan's source, sink and header make sense.

use goodput_model::{Direction, Length, Plan, Source, Transport};

use super::Problems;

/// Longest path of a file (`PATH_MAX`, linux/limits.h).
const MAX_NAME_BYTES: usize = 4096;

/// Largest header: far more than any protocol writes before a file, and little memory.
const MAX_HEADER_BYTES: u32 = 1 << 20;

/// Adds every problem to `problems`.
pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    let storage = &plan.storage;
    if plan.length == Length::Source && storage.source.is_none() && plan.fetches.is_none() {
        problems.push("it should end with its source, but has none".into());
    }
    if plan.socket.cork && plan.transport == Transport::Udp {
        problems.push("a cork (TCP_CORK) is for TCP, and this is UDP".into());
    }
    if storage.header_more && storage.header_bytes == 0 {
        problems.push("MSG_MORE needs a header (--header)".into());
    }
    if storage.is_memory() {
        return;
    }
    if plan.transport != Transport::Tcp || plan.direction == Direction::Both {
        problems.push("files are sent over TCP, in one direction".into());
    }
    if storage.header_bytes > MAX_HEADER_BYTES {
        let bytes = storage.header_bytes;
        problems.push(format!("a header of {bytes} bytes is more than {MAX_HEADER_BYTES}"));
    }
    if storage.header_bytes > 0 && storage.source.is_none() {
        problems.push("a header needs a source to precede".into());
    }
    // If the source is sent repeatedly, the receiver can't know which bytes are header.
    if storage.header_bytes > 0 && storage.sink.is_some() && plan.length != Length::Source {
        problems.push("in a sink, repeated headers look like data".into());
    }
    if storage.source == Some(Source::Memory(goodput_model::Bytes(0))) {
        problems.push("a source of 0 bytes measures nothing".into());
    }
    check_names(plan, problems);
}

fn check_names(plan: &Plan, problems: &mut Problems) {
    let source = plan.storage.source.as_ref().and_then(|source| match source {
        Source::File { name, .. } => Some(name),
        Source::Memory(_) | Source::Input => None,
    });
    let sink = plan.storage.sink.as_ref().map(|sink| &sink.name);
    for name in [source, sink].into_iter().flatten() {
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
            problems.push("a file's name has 1 to 4096 bytes, none of them zero".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Bytes, Cache, Sink, Storage};

    use super::*;

    fn file() -> Option<Source> {
        Some(Source::File { name: "big".into(), cache: Cache::Warm })
    }

    fn problems(change: impl FnOnce(&mut Plan)) -> Problems {
        let storage = Storage { source: file(), ..Storage::default() };
        let mut plan = Plan { storage, length: Length::Source, ..Plan::standard() };
        change(&mut plan);
        let mut problems = Problems::new();
        check(&plan, &mut problems);
        problems
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        let more = problems(|plan| plan.storage.header_more = true);
        assert!(more.len() == 1 && more[0].contains("--header"), "{more:?}");
        let cork = problems(|plan| {
            (plan.socket.cork, plan.transport) = (true, Transport::Udp);
            (plan.storage, plan.length) = (Storage::default(), Length::Seconds(1.0));
        });
        assert!(cork.len() == 1 && cork[0].contains("TCP_CORK"), "{cork:?}");
    }

    #[test]
    fn a_file_with_a_header_and_a_sink_makes_sense() {
        let sink = Sink { name: "copy".into(), direct: true, fsync: true };
        let found = problems(|plan| {
            plan.storage.sink = Some(sink);
            plan.storage.header_bytes = 512;
        });
        assert_eq!(found, Problems::new());
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        let bad: [&dyn Fn(&mut Plan); 7] = [
            &|p| p.storage.source = None,
            &|p| p.transport = Transport::Udp,
            &|p| p.direction = Direction::Both,
            &|p| p.storage.header_bytes = u32::MAX,
            &|p| p.storage.source = Some(Source::Memory(Bytes(0))),
            &|p| p.storage.source = Some(Source::File { name: "a\0b".into(), cache: Cache::Cold }),
            &|p| {
                p.storage.sink = Some(Sink { name: "x".into(), direct: false, fsync: false });
                p.storage.header_bytes = 1;
                p.length = Length::Seconds(1.0);
            },
        ];
        for change in bad {
            assert_eq!(problems(change).len(), 1);
        }
    }
}
