//! What happens during a watch, for a person.

use goodput_model::{Bytes, Seconds, Verdict, counted};
use goodput_watch::{Difference, Limit};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::named::in_words;
use super::{Changed, Event, HeldUp, HistoryDelay, TestTook, Tested};
use crate::report::change_point::ChangePoint;
use crate::report::labelled::{line, lines};
use crate::report::shifted::Shifted;
use crate::report::style::{bad, good, plain};

/// The event for a person, in lines, with times of this host's zone.
pub fn text(event: &Event) -> String {
    text_in(event, &zone_here())
}

/// A time as each line begins with it, in this host's zone.
pub fn moment(at: &str) -> String {
    second(at, &zone_here())
}

/// The zone of this host, which may not say where it is.
fn zone_here() -> TimeZone {
    let zone = TimeZone::system();
    if zone.is_unknown() { TimeZone::UTC } else { zone }
}

/// The event for a person, in lines, with times of this zone.
pub fn text_in(event: &Event, zone: &TimeZone) -> String {
    let of_target = |at: &str, target: &str, what: &str| {
        format!("{}  {}  {what}\n", second(at, zone), plain(target))
    };
    match event {
        Event::Begin {
            at,
            targets,
            every_s,
            budget_bytes,
            test_bytes,
            budget_lasts_s,
            used_bytes,
            learning_tests,
        } => {
            let short = budget_lasts_s.map(|lasts_s| too_small(lasts_s, *used_bytes));
            let learns = learning_tests.map(|tests| learns(tests, *every_s));
            let more: String = short.into_iter().chain(learns).collect();
            let begins = begin(targets, *every_s, *budget_bytes, *test_bytes);
            format!("{}  {begins}{more}", second(at, zone))
        }
        Event::MadeInAnotherWay { at, target, test, learning_tests } => {
            of_target(at, target, &in_another_way(test, *learning_tests))
        }
        Event::Late { at, tests, targets, because } => {
            format!("{}  {}", second(at, zone), late(*tests, targets, because))
        }
        Event::Tested(test) => tested(test, zone),
        Event::NoResult { at, target, why, since, .. } => {
            let since = match since == at {
                true => String::new(),
                false => format!("; no result since {}", named(since, at, zone)),
            };
            let why = plain(without_target(why, target));
            of_target(at, target, &format!("{}: {why}{since}", bad("no result")))
        }
        Event::NotTested { at, target, why, .. } => {
            of_target(at, target, &format!("not tested: {}", plain(without_target(why, target))))
        }
        Event::Back { at, target, since } => {
            let since = named(since, at, zone);
            of_target(
                at,
                target,
                &format!("{}; it did not answer from {since} on", good("answers again")),
            )
        }
        Event::UsedUp { at, target, used_bytes, budget_bytes, free_at } => {
            let free = match free_at {
                Some(free) => format!("a test fits again at {}", named(free, at, zone)),
                None => "a test never fits".into(),
            };
            let used = format!("{used_bytes} of {budget_bytes} in 24 hours");
            of_target(at, target, &format!("not tested: the budget is used up, {used}; {free}"))
        }
        Event::Changed(change) => changed(change, zone),
        Event::Shifted(shift) => shifted(shift, zone),
    }
}

/// A reason without the target before it, which the line has already.
fn without_target<'a>(why: &'a str, target: &str) -> &'a str {
    let rest = why.strip_prefix(target).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(why)
}

/// What a watch will do.
fn begin(targets: &[String], every_s: f64, budget: Bytes, test: Option<Bytes>) -> String {
    let (targets, every) = (plain(&targets.join(", ")), interval(every_s));
    let cost = match test {
        Some(bytes) => format!("costs {bytes}, and more if packets are lost"),
        None => "costs what its path lets through".into(),
    };
    format!(
        "watching {targets}: testing each every {every}; a test {cost}; all together at most {budget} in 24 hours\n"
    )
}

/// What is said of tests that begin a series.
fn in_another_way(test: &[Difference], learning: usize) -> String {
    let test: Vec<_> = test.iter().map(with_it).collect();
    format!(
        "tests are made in another way than before, and are compared with each other alone: {}. A change of the path \
         can be found again after {}",
        test.join("; "),
        counted(learning, "test")
    )
}

/// What is said of targets whose changes can't be found yet.
fn learns(tests: usize, every_s: f64) -> String {
    /// Seconds of a day and of an hour.
    const UNITS: [(f64, &str); 2] = [(86_400.0, "days"), (3600.0, "hours")];
    let (needs, seconds) = (if tests == 1 { "test" } else { "tests" }, tests as f64 * every_s);
    let long = UNITS.iter().find(|(unit, _)| seconds >= 2.0 * unit);
    let time = long.map_or_else(
        || Seconds(seconds).to_string(),
        |(unit, name)| format!("{:.0} {name}", seconds / unit),
    );
    format!(
        "goodput learns what is usual first: it can report a change after {tests} more {needs} of each target, in about \
         {time}; a target that does not answer is reported at once\n"
    )
}

/// What is said of tests that were left out.
fn late(tests: u64, targets: &[String], because: &HeldUp) -> String {
    let left_out = if tests == 1 { "test was" } else { "tests were" };
    let why = held_up(because);
    format!("{tests} {left_out} left out ({}){why}\n", plain(&targets.join(", ")))
}

/// What held up a watch, the longest first, and what helps.
fn held_up(HeldUp { test, turn_s, history, host_s }: &HeldUp) -> String {
    let often = "; test less often (--every)";
    let of_test = |TestTook { target, took_s }: &TestTook| {
        (*took_s, format!("the test of {} took {took_s:.1} s", plain(target)), often)
    };
    let of_turn = |turn_s: f64| {
        (turn_s, format!("another watch on this host had the turn for {turn_s:.1} s"), often)
    };
    let of_history = |history: &HistoryDelay| (history.took_s, slow_history(history), "");
    let of_host = |host_s: f64| {
        let words = "this host is busy, or nobody reads what the watch prints";
        (host_s, format!("the watch could not go on for {host_s:.1} s: {words}"), "")
    };
    let all = [
        test.as_ref().map(of_test),
        turn_s.map(of_turn),
        history.as_ref().map(of_history),
        host_s.map(of_host),
    ];
    let mut all: Vec<_> = all.into_iter().flatten().collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    let Some((_, _, helps)) = all.first() else { return String::new() };
    let words: Vec<&str> = all.iter().map(|(_, words, _)| &**words).collect();
    format!(": {}{helps}", words.join("; "))
}

/// A time between tests in its largest whole unit.
pub fn interval(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    let whole = units.into_iter().find(|(unit, _)| seconds >= *unit && seconds % unit == 0.0);
    whole.map_or_else(
        || Seconds(seconds).to_string(),
        |(unit, name)| format!("{} {name}", seconds / unit),
    )
}

/// What is said of a budget that lasts for this time only, of which some is used already.
fn too_small(lasts_s: f64, used: Bytes) -> String {
    let lasts = match lasts_s / 3600.0 {
        hours if hours >= 1.0 => format!("{hours:.1}"),
        _ => Seconds(lasts_s.round()).to_string(),
    };
    let used = match used {
        Bytes(0) => String::new(),
        used => format!(" after the {used} that are used already"),
    };
    format!(
        "{}: it lasts for {lasts} of 24 hours{used}, and the tests of the rest are left out; make tests smaller (-n), test \
         less often (--every), or allow more (--budget)\n",
        bad("the budget is too small for this")
    )
}

/// What is said of a history that kept tests waiting.
fn slow_history(HistoryDelay { took_s, why }: &HistoryDelay) -> String {
    let why = why.as_ref().map(|why| format!(": {}", plain(why))).unwrap_or_default();
    format!("the watch waited {took_s:.1} s for the history{why}")
}

fn tested(test: &Tested, zone: &TimeZone) -> String {
    let Tested { at, target, goodput_bits_per_s, limit, limiter, end, incomplete, .. } = test;
    let part = incomplete.as_ref().map(|why| format!("  only a part: {}", plain(why)));
    let limit = match limiter {
        Some(limiter) => format!("{} most of the time", limiter.at(*end)),
        None if limit == Verdict::NO_LIMIT => words(limit),
        None => format!("{} ({end})", words(limit)),
    };
    let beside =
        (!test.beside.is_empty()).then(|| format!("  beside {}", plain(&test.beside.join(", "))));
    let rest: String = [part, beside].into_iter().flatten().collect();
    let target = plain(target);
    format!("{}  {target}  {goodput_bits_per_s}  {limit}{rest}\n", second(at, zone))
}

fn changed(change: &Changed, zone: &TimeZone) -> String {
    let Changed { found, percent, low_percent, high_percent, .. } = change;
    let ChangePoint { at, target, tests, .. } = found;
    let (since, whose) = (since(found, zone), found.subject());
    let what = match &found.takes_back {
        Some(earlier) => {
            let earlier = named(earlier, at, zone);
            format!("since {since} {whose} is as before {earlier} again: {}", amount(*percent))
        }
        None => bad(format!("since {since} {whose} gives {}", amount(*percent))),
    };
    let mut text = format!(
        "{}  {}  {what} ({low_percent:+.0} to {high_percent:+.0} %, {tests} tests)\n",
        second(at, zone),
        plain(target),
    );
    let sides = [
        side(&change.before_bits_per_s.to_string(), found.limit_before.as_ref()),
        side(&change.since_bits_per_s.to_string(), found.limit_since.as_ref()),
    ];
    explain(&mut text, &sides, found);
    text
}

fn shifted(shift: &Shifted, zone: &TimeZone) -> String {
    let ChangePoint { at, target, takes_back, .. } = &shift.found;
    let (since, what, whose) = (since(&shift.found, zone), shift.what(), shift.found.subject());
    let what = match takes_back {
        Some(earlier) => {
            let (quantity, earlier) = (shift.quantity, named(earlier, at, zone));
            format!("since {since} the {quantity} is as before {earlier} again: {whose} {what}")
        }
        None => bad(format!("since {since} {whose} {what}")),
    };
    let mut text = format!("{}  {}  {what}\n", second(at, zone), plain(target));
    explain(&mut text, &sides(shift), &shift.found);
    text
}

/// When a change began, and how surely: `Tuesday 14:05 (between Tuesday 13:35 and Tuesday 14:20)`.
fn since(found: &ChangePoint, zone: &TimeZone) -> String {
    let name = |time: &String| named(time, &found.at, zone);
    let since = name(&found.since);
    match &found.since_between {
        None => since,
        Some([earliest, latest]) => {
            format!("{since} (between {} and {})", name(earliest), name(latest))
        }
    }
}

/// Adds both sides of a change, what else changed, and how to compare them.
fn explain(text: &mut String, [before, since]: &[String; 2], found: &ChangePoint) {
    line(text, "before", before);
    line(text, "since", since);
    lines(text, "test", found.test.iter().map(with_it));
    let changes: Vec<_> = found.changed.iter().map(with_it).collect();
    let nothing: Option<String> =
        changes.is_empty().then(|| "nothing else that either end reports".into());
    lines(text, "changed", nothing.into_iter().chain(changes));
    if let Some(host) = &found.of_host {
        line(text, "found by", &format!("a watch on {}", plain(host)));
    }
    let [before, since] = found.records();
    line(text, "compare", &format!("goodput history {before} {since}"));
}

pub(super) fn sides(shift: &Shifted) -> [String; 2] {
    let ([before, since], found) = (shift.values(), &shift.found);
    [side(&before, found.limit_before.as_ref()), side(&since, found.limit_since.as_ref())]
}

pub(super) fn with_it(difference: &Difference) -> String {
    let Difference { what, before, since } = &in_words(difference);
    format!("{}: {}, before {}", plain(what), plain(since), plain(before))
}

pub(super) fn amount(percent: f64) -> String {
    let word = if percent < 0.0 { "less" } else { "more" };
    format!("{:.0} % {word}", percent.abs())
}

/// A value of one side, and what limited it.
pub(super) fn side(value: &str, limit: Option<&Limit>) -> String {
    match limit {
        None => value.into(),
        Some(limit) => format!("{value}, {}", plain(&limit.summary)),
    }
}

/// A limit in words; that of a newer goodput by its id.
fn words(rule: &str) -> String {
    match goodput_diagnose::rules::find(rule) {
        Some(rule) => rule.title.into(),
        None if rule == Verdict::NO_LIMIT => "No limit found".into(),
        None => plain(rule),
    }
}

/// Date and time with the zone, to the second: tests may be a second apart.
fn second(at: &str, zone: &TimeZone) -> String {
    let form = "%Y-%m-%d %H:%M:%S %Z";
    local(at, zone).map_or_else(|| at.into(), |time| time.strftime(form).to_string())
}

/// A time as a person near `at`, which names the zone, would call it. One of the other half of the year, with another offset,
/// names its own zone: when the clocks go back, an hour comes twice.
fn named(time: &str, at: &str, zone: &TimeZone) -> String {
    /// Within these seconds, a day of the week is clear: six days.
    const WEEK_S: i64 = 6 * 86_400;
    /// Within these seconds, minutes are too coarse: tests may be seconds apart.
    const JUST_NOW_S: i64 = 600;
    let (Some(local), Some(now)) = (local(time, zone), local(at, zone)) else { return time.into() };
    let apart_s = now.timestamp().as_second() - local.timestamp().as_second();
    let is_near = apart_s.abs() < WEEK_S;
    let form = match is_near {
        true if local.date() == now.date() && apart_s.abs() < JUST_NOW_S => "%H:%M:%S",
        true if local.date() == now.date() => "%H:%M",
        true => "%A %H:%M",
        false => "%Y-%m-%d %H:%M",
    };
    let own_zone = if local.offset() == now.offset() { "" } else { " %Z" };
    local.strftime(&format!("{form}{own_zone}")).to_string()
}

fn local(at: &str, zone: &TimeZone) -> Option<Zoned> {
    Some(at.parse::<Timestamp>().ok()?.to_zoned(zone.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::for_a_page;
    use super::*;
    use crate::report::{change_point, shifted};
    use anstream::adapter::strip_str;
    use goodput_model::{BitRate, Limiter, Place};

    fn printed(event: &Event) -> String {
        strip_str(&text(event)).to_string()
    }

    fn utc(event: &Event) -> String {
        strip_str(&text_in(event, &TimeZone::UTC)).to_string()
    }

    fn change() -> Changed {
        let limit = |rule: &str, summary: &str| {
            let (rule, summary) = (rule.into(), summary.into());
            Some(Limit { rule, limiter: None, end: Place::Path, summary })
        };
        let found = ChangePoint {
            limit_before: limit("path-rate", "the path, at 940 Mbit/s"),
            limit_since: limit("policer", "a policer with a bucket of 18 packets"),
            changed: vec![Difference {
                what: "kernel of the far end".into(),
                before: "Linux 6.1".into(),
                since: "Linux 6.12\u{1b}[2J".into(),
            }],
            ..change_point::tests::example()
        };
        Changed {
            found,
            percent: -41.0,
            low_percent: -43.0,
            high_percent: -39.2,
            before_bits_per_s: BitRate(9.4e8),
            since_bits_per_s: BitRate(5.55e8),
        }
    }

    #[test]
    fn a_change_is_said_with_its_time_both_sides_and_what_else_changed() {
        let text = printed(&Event::Changed(change().into()));
        let day = named("2026-11-24T14:05:00Z", "2026-11-27T15:20:00Z", &TimeZone::system());
        assert!(
            text.contains(&format!("since {day} the path gives 41 % less (-43 to -39 %, 8 tests)")),
            "{text}"
        );
        assert!(text.contains("940 Mbit/s, the path, at 940 Mbit/s"), "{text}");
        assert!(text.contains("555 Mbit/s, a policer with a bucket of 18 packets"), "{text}");
        assert!(
            text.contains("kernel of the far end: Linux 6.12\u{fffd}[2J, before Linux 6.1"),
            "{text}"
        );
        assert!(text.contains("goodput history 811 819"), "{text}");
        let mut alone = change();
        alone.found.changed.clear();
        assert!(printed(&Event::Changed(alone.into())).contains("nothing else"));
    }

    /// What changed of a test.
    fn of_test() -> Vec<Difference> {
        vec![Difference {
            what: "sending mover of the near end".into(),
            before: "copy".into(),
            since: "gso\u{1b}".into(),
        }]
    }

    #[test]
    fn a_change_of_the_test_is_never_one_of_the_path() {
        let mut change = change();
        change.found.test = of_test();
        let mut shift = shifted::tests::example();
        shift.found.test = of_test();
        for back in [None, Some("2026-11-23T09:00:00Z".to_owned())] {
            change.found.takes_back.clone_from(&back);
            shift.found.takes_back = back;
            for event in
                [Event::Changed(change.clone().into()), Event::Shifted(shift.clone().into())]
            {
                let text = printed(&event);
                assert!(text.contains(" a test ") && !text.contains("the path "), "{text}");
                let mover = "test        sending mover of the near end: gso\u{fffd}, before copy\n";
                assert!(text.contains(mover), "{text}");
                let page = for_a_page(&event).expect("it is a change");
                assert_eq!(page.whose, "a test");
                assert!(page.with_it[0].starts_with("sending mover"), "{page:?}");
            }
        }
    }

    #[test]
    fn a_change_that_takes_one_back_is_said_as_that() {
        let earlier = "2026-11-23T09:00:00Z";
        let mut back = Changed { percent: 69.5, ..change() };
        back.found.takes_back = Some(earlier.into());
        let text = printed(&Event::Changed(back.into()));
        let day = named(earlier, "2026-11-27T15:20:00Z", &TimeZone::system());
        assert!(text.contains(&format!("the path is as before {day} again: 70 % more")), "{text}");
        assert!(!text.contains("the path gives"), "{text}");
    }

    #[test]
    fn a_change_whose_beginning_is_unsure_says_between_which_times_it_was() {
        let mut change = change();
        let between = ["2026-11-24T13:35:00Z", "2026-11-24T14:20:00Z"].map(str::to_owned);
        change.found.since_between = Some(between);
        let text = text_in(&Event::Changed(change.into()), &TimeZone::UTC);
        let words = "since Tuesday 14:05 (between Tuesday 13:35 and Tuesday 14:20) the path gives 41 % less";
        assert!(strip_str(&text).to_string().contains(words), "{text}");
    }

    #[test]
    fn a_change_of_the_round_trip_is_said_with_both_values_and_what_limits_the_path() {
        let mut shift = shifted::tests::example();
        shift.found.limit_since = change().found.limit_since;
        let text = printed(&Event::Shifted(shift.clone().into()));
        let day = named(&shift.found.since, &shift.found.at, &TimeZone::system());
        for words in [
            format!("since {day} the path has a round trip 3.1 times as long (2.9 to 3.3 times"),
            "31 ms, a policer with a bucket of 18 packets".into(),
            "10 ms\n".into(),
            "nothing else".into(),
            "goodput history 811 819".into(),
        ] {
            assert!(text.contains(&words), "{words}: {text}");
        }
        shift.found.takes_back = Some("2026-11-23T09:00:00Z".into());
        let text = printed(&Event::Shifted(shift.into()));
        assert!(text.contains("the round trip is as before"), "{text}");
    }

    #[test]
    fn a_limit_is_said_in_words_and_that_of_a_newer_goodput_by_its_id() {
        assert_eq!(words("path-rate"), "Something on the path limits the rate");
        assert_eq!(words("none"), "No limit found");
        assert_eq!(words("of-tomorrow\n"), "of-tomorrow\u{fffd}");
    }

    #[test]
    fn what_took_most_of_the_time_is_said_of_a_test_without_a_rules_limit() {
        let text = printed(&Event::Tested(Tested {
            at: "2026-11-27T15:20:00Z".into(),
            target: "nas".into(),
            record: None,
            goodput_bits_per_s: BitRate(8e6),
            limit: Verdict::NO_LIMIT.into(),
            limiter: Some(Limiter::ReceiveWindow),
            end: Place::Far,
            probability: None,
            round_trip_s: None,
            smallest_round_trip_s: None,
            lost_share: None,
            incomplete: None,
            beside: vec!["goodput test nas\n".into()],
            bytes: Bytes(1000),
            used_bytes: Bytes(1000),
        }));
        let words =
            "8 Mbit/s  receive window (far) most of the time  beside goodput test nas\u{fffd}\n";
        assert!(text.ends_with(words), "{text}");
    }

    #[test]
    fn what_a_test_costs_and_that_the_budget_does_not_suffice_are_said_first() {
        let used = |test_bytes, budget_lasts_s, used| {
            utc(&Event::Begin {
                at: "2026-11-27T15:20:07Z".into(),
                learning_tests: None,
                targets: vec!["nas".into(), "b\u{202e}".into()],
                every_s: 4.0,
                budget_bytes: Bytes(22_000_000_000),
                test_bytes,
                budget_lasts_s,
                used_bytes: Bytes(used),
            })
        };
        let begin = |test_bytes, budget_lasts_s| used(test_bytes, budget_lasts_s, 0);
        let short = begin(Some(Bytes(3_333_334)), Some(26_396.0));
        let expected = "2026-11-27 15:20:07 UTC  watching nas, b\u{fffd}: testing each every 4 s; a test costs 3.33 MB, and more if packets are lost; all \
                        together at most 22 GB in 24 hours\n";
        assert!(short.starts_with(expected), "{short}");
        assert!(short.contains("too small for this: it lasts for 7.3 of 24 hours, and"), "{short}");
        let short = used(Some(Bytes(3_333_334)), Some(400.0), 20_000_000_000);
        let words = "of 24 hours after the 20 GB that are used already, and";
        assert!(short.contains(words), "{short}");
        assert_eq!(begin(Some(Bytes(1000)), None).lines().count(), 1);
        assert!(begin(None, None).contains("a test costs what its path lets through;"));
    }

    #[test]
    fn what_a_watch_can_not_find_yet_is_said_with_the_number_of_tests() {
        assert!(
            learns(192, 900.0).contains("after 192 more tests of each target, in about 2 days")
        );
        assert!(learns(24, 86_400.0).contains("24 more tests of each target, in about 24 days"));
        assert!(learns(1, 900.0).contains("1 more test of each target, in about 900 s"));
        assert!(learns(17_280, 10.0).contains("in about 2 days"));
        assert!(learns(40, 900.0).contains("in about 10 hours"));
    }

    fn late(tests: u64, because: HeldUp) -> Event {
        let targets = vec!["nas".into(), "b\n".into()];
        Event::Late { at: "2026-11-26T14:05:00Z".into(), tests, targets, because }
    }

    #[test]
    fn one_test_left_out_is_one_and_its_target_is_named() {
        let words = |tests| printed(&late(tests, HeldUp::default()));
        assert!(words(1).ends_with("  1 test was left out (nas, b\u{fffd})\n"), "{}", words(1));
        assert!(words(2).ends_with("  2 tests were left out (nas, b\u{fffd})\n"));
    }

    #[test]
    fn who_is_late_names_what_took_the_time_the_longest_first() {
        let test = Some(TestTook { target: "b\n".into(), took_s: 61.23 });
        let history = Some(HistoryDelay { took_s: 9.0, why: None });
        let both = HeldUp { test, history, ..HeldUp::default() };
        let words = "): the test of b\u{fffd} took 61.2 s; the watch waited 9.0 s for the history; test less often (--every)\n";
        let text = printed(&late(1, both));
        assert!(text.ends_with(words), "{text}");
        let others = HeldUp { turn_s: Some(20.0), host_s: Some(30.0), ..HeldUp::default() };
        let words = "for 30.0 s: this host is busy, or nobody reads what the watch prints; another watch on this host had the turn \
                     for 20.0 s\n";
        let text = printed(&late(1, others));
        assert!(text.ends_with(words), "{text}");
    }

    #[test]
    fn who_is_late_because_of_the_history_says_so() {
        let text = |why: Option<&str>| {
            let why = why.map(str::to_owned);
            let history = Some(HistoryDelay { took_s: 20.04, why });
            printed(&late(2, HeldUp { history, ..HeldUp::default() }))
        };
        let locked = text(Some("can't write to h.db: process 7 (x) keeps it locked"));
        assert!(
            locked.ends_with(
                "2 tests were left out (nas, b\u{fffd}): the watch waited 20.0 s for the history: can't write to h.db: process 7 (x) keeps it \
                 locked\n"
            ),
            "{locked}"
        );
        assert!(text(None).ends_with("20.0 s for the history\n"), "{}", text(None));
    }

    #[test]
    fn a_gap_is_no_rate_and_a_used_up_budget_is_said() {
        let (at, since) = ("2026-11-27T15:20:00Z", "2026-11-27T14:20:00Z");
        let gap = |since: &str| Event::NoResult {
            at: at.into(),
            target: "nas".into(),
            why: "can't connect\nnas  9 Gbit/s".into(),
            since: since.into(),
            bytes: Bytes(0),
            used_bytes: Bytes(0),
        };
        let text = printed(&gap(at));
        assert!(
            text.contains("no result: can't connect\u{fffd}nas")
                && !text.contains("no result since"),
            "{text}"
        );
        assert!(printed(&gap(since)).contains("no result since"));
        let named = |why: &str| without_target(why, "nas").to_owned();
        assert_eq!(named("nas: can't connect to nas:7487"), "can't connect to nas:7487");
        assert_eq!(named("nas2: can't connect"), "nas2: can't connect");
        let used = Event::UsedUp {
            at: at.into(),
            target: "nas".into(),
            used_bytes: Bytes(5_000_000_000),
            budget_bytes: Bytes(5_000_000_000),
            free_at: None,
        };
        assert!(printed(&used).contains(
            "not tested: the budget is used up, 5 GB of 5 GB in 24 hours; a test never fits"
        ));
    }

    #[test]
    fn a_test_that_this_host_did_not_make_is_no_word_about_its_target() {
        let at = "2026-11-26T14:05:00Z".into();
        let why = "another process had the turn".into();
        let (target, [bytes, used_bytes]) = ("nas".into(), [Bytes(0); 2]);
        let event = Event::NotTested { at, target, why, bytes, used_bytes };
        let text = strip_str(&text_in(&event, &TimeZone::UTC)).to_string();
        assert_eq!(
            text,
            "2026-11-26 14:05:00 UTC  nas  not tested: another process had the turn\n"
        );
    }

    #[test]
    fn tests_that_are_made_in_another_way_are_named_with_what_differs() {
        let (at, target) = ("2026-11-27T15:20:07Z".into(), "nas\n".into());
        let event = Event::MadeInAnotherWay { at, target, test: of_test(), learning_tests: 192 };
        let expected = "2026-11-27 15:20:07 UTC  nas\u{fffd}  tests are made in another way than before, and are compared with each other alone: sending \
             mover of the near end: gso\u{fffd}, before copy. A change of the path can be found again after 192 tests\n";
        assert_eq!(utc(&event), expected);
        let json = serde_json::to_value(event).unwrap();
        assert_eq!(json["event"], "made-in-another-way", "{json}");
    }

    #[test]
    fn events_are_json_objects_that_name_themselves() {
        let json = serde_json::to_value(Event::Changed(change().into())).unwrap();
        assert_eq!(
            (&json["event"], &json["limit_since"]["rule"]),
            (&"changed".into(), &"policer".into())
        );
        // One object, as the history has it.
        assert_eq!((&json["percent"], &json["target"]), (&(-41.0).into(), &"nas".into()), "{json}");
        assert_eq!(serde_json::from_value::<Changed>(json).unwrap(), change());
        let shift = shifted::tests::example();
        let json = serde_json::to_value(Event::Shifted(shift.clone().into())).unwrap();
        assert_eq!((&json["event"], &json["tests"]), (&"shifted".into(), &8.into()), "{json}");
        assert_eq!(serde_json::from_value::<Shifted>(json).unwrap(), shift);
        let json = serde_json::to_value(late(2, HeldUp { host_s: Some(2.5), ..HeldUp::default() }));
        let targets = ["nas", "b\n"];
        let expected = serde_json::json!({
            "event": "late", "at": "2026-11-26T14:05:00Z", "tests": 2, "targets": targets, "host_s": 2.5
        });
        assert_eq!(json.unwrap(), expected);
    }

    #[test]
    fn a_time_long_ago_has_its_date() {
        let named = |time| named(time, "2026-11-27T15:20:00Z", &TimeZone::UTC);
        assert_eq!(named("2026-01-01T12:00:00Z"), "2026-01-01 12:00");
        assert_eq!(named("not a time"), "not a time");
        assert_eq!(named("2026-11-27T15:19:47Z"), "15:19:47", "minutes would be the same");
    }

    #[test]
    fn all_times_of_a_text_are_of_one_zone_which_it_names() {
        let event = Event::Changed(change().into());
        let text = strip_str(&text_in(&event, &TimeZone::UTC)).to_string();
        assert!(text.starts_with("2026-11-27 15:20:00 UTC  nas  since Tuesday 14:05 "), "{text}");
        let zone = TimeZone::posix("CET-1").unwrap();
        let text = strip_str(&text_in(&event, &zone)).to_string();
        assert!(text.starts_with("2026-11-27 16:20:00 CET  nas  since Tuesday 15:05 "), "{text}");
    }

    /// Berlin, New York, and an island where the clocks move by half an hour, in the other half of the year.
    const PLACES: [&str; 3] = [
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    ];

    #[test]
    fn the_hour_that_comes_twice_is_named_with_its_zone() {
        let zone = TimeZone::posix(PLACES[0]).unwrap();
        let named = |time, at| named(time, at, &zone);
        let sunday = "2026-10-25T12:00:00Z";
        assert_eq!(named("2026-10-25T00:30:00Z", sunday), "02:30 CEST");
        assert_eq!(named("2026-10-25T01:30:00Z", sunday), "02:30");
        assert_eq!(named("2026-10-24T12:05:00Z", sunday), "Saturday 14:05 CEST");
        assert_eq!(named("2026-07-01T12:05:00Z", sunday), "2026-07-01 14:05 CEST");
        // The hour that is left out in spring.
        let (before, after) = ("2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z");
        assert_eq!(named(before, after), "01:59:00 CET");
        assert_eq!(named(after, before), "03:00:00 CEST");
        assert_eq!(second(after, &zone), "2026-03-29 03:00:00 CEST");
    }

    /// Every half hour of a year: what is said of it is said of no other time of that week.
    #[test]
    fn no_two_times_have_the_same_name() {
        let first = 1_767_225_600; // 2026-01-01
        let text = |n: i64| Timestamp::from_second(first + n * 1800).unwrap().to_string();
        for place in PLACES {
            let zone = TimeZone::posix(place).unwrap();
            for day in (7..365).step_by(3) {
                let at = text(day * 48);
                let names = (day * 48 - 5 * 48..=day * 48).map(|n| named(&text(n), &at, &zone));
                let all: Vec<_> = names.collect();
                let apart: std::collections::BTreeSet<_> = all.iter().collect();
                assert_eq!(apart.len(), all.len(), "{place}: {at}");
            }
        }
    }

    #[test]
    fn a_time_between_tests_is_in_its_largest_whole_unit() {
        let all = [900.0, 3600.0, 5400.0, 90.0, 86_400.0].map(interval);
        assert_eq!(all, ["15 min", "1 h", "90 min", "90 s", "1 d"]);
    }
}
