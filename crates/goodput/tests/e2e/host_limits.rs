//! What single kinds of work would allow on this host, beside a test.

use goodput_model::{HostLimits, HostWork, Known, WorkLimit};

use crate::common::{Home, Server, record, stdout};

fn test(arguments: &[&str]) -> HostLimits {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut all = vec!["test", &server.address, "--json", "--no-store", "--host-limits", "-t", "1"];
    all.extend(arguments);
    *record(&home.run(&all)).host_limits.expect("it was asked for")
}

#[test]
fn each_kind_of_work_has_a_limit_and_the_mover_says_which_bounds_it() {
    let limits = test(&[]);
    let known = |limit: &Known<WorkLimit>| *limit.value().unwrap_or_else(|| panic!("{limit:?}"));
    for limit in [&limits.copying, &limits.page_references].map(known) {
        assert!(limit.bits_per_s.0 > 0.0 && limit.piece_bytes.0 == 128 << 10, "{limit:?}");
    }
    assert!(known(&limits.empty_calls).bits_per_s.0 > 0.0, "of the bytes that a call moved");
    assert_eq!((limits.bounded_by, limits.cpus), (Known::Value(HostWork::Copying), 1));
    match &limits.profile {
        Known::Value(profile) => {
            let sum: f64 = profile.groups.iter().map(|share| share.percent).sum();
            assert!((sum - 100.0).abs() < 1e-6 && profile.samples > 0, "{profile:?}");
        }
        // Not permitted, or the flow had no CPU for a second.
        Known::Missing(why) => {
            assert!(why.missing.contains("perf") || why.missing.contains("sample"), "{why}");
        }
    }
    let spliced = test(&["--mover", "splice"]);
    // On some hosts the calls for so little each allow less.
    let bounds = [HostWork::PageReferences, HostWork::EmptyCalls].map(Known::Value);
    assert!(bounds.contains(&spliced.bounded_by), "{:?}", spliced.bounded_by);
}

#[test]
fn the_report_compares_the_goodput_with_it() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let run = home.run(&["test", &server.address, "--no-store", "--host-limits", "-n", "50M"]);
    let text = stdout(&run);
    assert!(text.contains("% of what copying alone would allow on one CPU of this host"), "{text}");
    assert!(text.contains("\ncpu time "), "{text}");
    let without = home.run(&["test", &server.address, "--no-store", "-n", "1M"]);
    assert!(!stdout(&without).contains("alone would allow"), "nobody asked for it");
}
