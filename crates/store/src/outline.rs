//! A test without its detail: the plan, what came of it and the verdict. A matrix of a fleet reads that of each test; the whole
//! record is more than twenty times as long.

use goodput_model::{End, Kind, Known, Record, Snapshot};

/// The record without its detail, if it is one of a single test. It is a record, too, so that whoever reads either reads the same
/// of what both have.
pub(crate) fn outline(record: &Record) -> Option<Record> {
    if record.kind != Kind::Test {
        return None;
    }
    let mut outline = record.clone();
    for end in [&mut outline.ends.near, &mut outline.ends.far] {
        if let Known::Value(end) = end {
            reduce(end);
        }
    }
    outline.connections.clear();
    outline.intervals.clear();
    outline.latency = None;
    outline.verdict.split = None;
    outline.verdict.account = Known::missing(LEFT_OUT);
    outline.verdict.loss = Known::missing(LEFT_OUT);
    outline.verdict_reverse = None;
    outline.findings.clear();
    outline.undecided.clear();
    outline.probes.clear();
    outline.rate_searches.clear();
    outline.capture = None;
    outline.far_capture = None;
    outline.host_limits = None;
    outline.changed_hosts.clear();
    outline.doubts.clear();
    Some(outline)
}

/// Why an outline lacks it.
const LEFT_OUT: &str = "the record has it";

/// Leaves of an end who it is.
fn reduce(end: &mut End) {
    (end.before, end.after) = (Snapshot::default(), Snapshot::default());
    end.samples.clear();
    end.placement = None;
    end.movers.clear();
    end.arrivals.clear();
    end.gaps = None;
    end.host_cpu = Known::missing(LEFT_OUT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_record;

    #[test]
    fn an_outline_is_a_short_record_with_the_same_result() {
        let record = read_record(include_str!("../tests/golden/v1/test.json")).unwrap();
        let short = outline(&record).unwrap();
        let read = read_record(&short.to_readable_json().unwrap()).unwrap();
        assert_eq!(read, short);
        assert_eq!((&read.result, &read.plan), (&record.result, &record.plan));
        assert_eq!(
            (&read.verdict.limit, read.verdict.end),
            (&record.verdict.limit, record.verdict.end)
        );
        let host = |record: &Record| record.ends.far.value().map(|end| end.host.clone());
        assert_eq!(host(&read), host(&record));
        let comparison = read_record(include_str!("../tests/golden/v1/compare.json")).unwrap();
        assert_eq!(outline(&comparison), None);
    }
}
