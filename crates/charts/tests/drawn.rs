//! Kept records as pictures.

mod kept;

use std::collections::BTreeSet;

use goodput_charts::{ALL, Figure, Shown, figures, figures_of_both, page, ticket};
use goodput_model::{
    BitRate, Bytes, CapturedPayload, EndName, GapBin, Gaps, HostCpu, Known, PacketCapture, Record,
    Response, ResponseResult, Transport,
};

use kept::RECORDS;

fn records() -> impl Iterator<Item = (&'static str, Record)> {
    RECORDS.into_iter().map(|(name, json)| (name, serde_json::from_str(json).expect(name)))
}

fn drawn(record: &Record) -> Vec<Figure> {
    figures(record, |_| true)
}

fn shown(record: &Record, figures: Vec<Figure>) -> Shown<'_> {
    Shown { record, text: "as printed <script>".into(), figures }
}

#[test]
fn every_chart_is_drawn_of_some_record_and_says_what_it_shows() {
    let mut seen = BTreeSet::new();
    let with_pauses = ("with pauses", with_pauses());
    for (name, record) in records().chain([with_pauses]) {
        for chart in ALL {
            let figures = figures(&record, |other| other.id == chart.id);
            seen.extend(figures.iter().map(|_| chart.id));
            for figure in figures {
                let alt = &figure.alt;
                assert!(!alt.is_empty() && !alt.starts_with("can't draw"), "{name}: {alt}");
                let has_numbers = !figure.table.rows.is_empty();
                assert!(has_numbers || figure.svg.is_none(), "{name}: {}", figure.id);
                let columns = figure.table.columns.len();
                assert!(
                    figure.table.rows.iter().all(|row| row.len() == columns),
                    "{name}: {}",
                    figure.id
                );
            }
        }
    }
    let all: BTreeSet<_> = ALL.iter().map(|chart| chart.id).collect();
    assert_eq!(seen, all);
}

#[test]
fn the_way_from_application_to_application_is_drawn_and_names_every_step() {
    for (name, record) in records() {
        let seen = record.result.directions.iter().filter(|one| !one.path_steps.is_empty());
        let figures = figures(&record, |chart| chart.id == "path");
        assert_eq!(figures.len(), seen.clone().count(), "{name}");
        for (direction, figure) in seen.zip(figures) {
            let svg = figure.svg.unwrap_or_else(|| panic!("{name}: no picture"));
            for step in &direction.path_steps {
                assert!(svg.contains(&format!("{}: ", step.label())), "{name}: {}", step.label());
            }
        }
    }
}

#[test]
fn every_picture_is_well_formed_and_has_a_name_for_screen_readers() {
    for (name, record) in records() {
        for figure in drawn(&record) {
            let Some(svg) = &figure.svg else { continue };
            let parsed = roxmltree::Document::parse(svg);
            let parsed = parsed.unwrap_or_else(|why| panic!("{name}: {}: {why}\n{svg}", figure.id));
            let root = parsed.root_element();
            assert_eq!(root.attribute("role"), Some("img"), "{name}: {}", figure.id);
            assert_eq!(
                root.attribute("aria-label"),
                Some(&figure.alt[..]),
                "{name}: {}",
                figure.id
            );
            assert!(root.children().filter(|child| child.is_element()).count() > 10, "{svg}");
        }
    }
}

#[test]
fn ids_are_unique_in_a_page() {
    for (name, record) in records() {
        let figures = drawn(&record);
        let ids: BTreeSet<_> = figures.iter().map(|figure| &figure.id).collect();
        assert_eq!(ids.len(), figures.len(), "{name}");
    }
}

#[test]
fn a_page_loads_nothing_and_runs_nothing_of_a_hostile_peer() {
    const EVIL: &str = "<script>alert('x')</script><img src=x onerror=y>";
    for (name, mut record) in records() {
        record.target = EVIL.into();
        record.verdict.summary = EVIL.into();
        record.doubts.push(EVIL.into());
        if let Known::Value(far) = &mut record.ends.far {
            far.host.name = EVIL.into();
        }
        for finding in &mut record.findings {
            finding.advice.push(EVIL.into());
            finding.changes.iter_mut().for_each(|change| change.to = format!("`{EVIL}"));
            finding.evidence.iter_mut().for_each(|witness| witness.text = EVIL.into());
        }
        if let Some(comparison) = &mut record.comparison {
            comparison.arms.iter_mut().for_each(|arm| arm.values = vec![EVIL.into()]);
        }
        let figures = drawn(&record);
        let page = page(&[shown(&record, figures.clone())]);
        // On a phone, words are cut between lines.
        let inside = page.replace("src=x", "");
        for forbidden in ["<script", "<img", "<link", "url(", "src="] {
            assert!(!inside.contains(forbidden), "{name}: {forbidden}");
        }
        assert!(page.contains("&lt;script&gt;"), "{name}: it is shown as text");
        let ticket = ticket(&[shown(&record, figures)], "t").text;
        // Markdown takes nothing in indented lines for HTML.
        let prose = ticket.lines().filter(|line| !line.starts_with("    "));
        assert!(prose.clone().all(|line| !line.contains("<script")), "{name}: {ticket}");
    }
}

#[test]
fn a_ticket_shows_every_picture_that_it_comes_with_and_says_what_each_shows() {
    for (name, record) in records() {
        let figures = drawn(&record);
        let pictures = figures.iter().filter(|figure| figure.svg.is_some()).count();
        let one = || shown(&record, figures.clone());
        for results in 1..=3 {
            let results: Vec<_> = (0..results).map(|_| one()).collect();
            let ticket = ticket(&results, "a #b");
            assert_eq!(ticket.pictures.len(), pictures * results.len(), "{name}");
            let names: BTreeSet<_> = ticket.pictures.iter().map(|(file, _)| file).collect();
            assert_eq!(names.len(), ticket.pictures.len(), "{name}: no file is written twice");
            for (file, svg) in &ticket.pictures {
                let link = format!("]({})", file.replace(' ', "%20").replace('#', "%23"));
                let (before, after) = ticket.text.split_once(&link).expect(file);
                let (_, alt) = before.rsplit_once("\n![").expect(file);
                let said = after.trim_start().lines().next().unwrap_or_default();
                assert!(alt.len() > 5 && said.len() > 10, "{name}: {alt}: {said}");
                assert!(svg.starts_with("<svg"), "{svg}");
            }
            let begins = match results.len() {
                1 => "# goodput: ".into(),
                several => format!("# goodput: {several} results\n\n| result |"),
            };
            assert!(ticket.text.starts_with(&begins), "{name}: {}", ticket.text);
        }
    }
}

/// With two results, what is compared by eye is not ten pictures away.
#[test]
fn a_ticket_of_two_results_has_charts_of_one_kind_together() {
    let record = of("window");
    let both = figures_of_both([&record, &record], |_| true);
    let both = both.map(|figures| shown(&record, figures));
    let text = ticket(&both, "t").text;
    let (_, charts) = text.split_once("# Both results\n").expect("they have a heading");
    let headings: Vec<_> = charts.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(headings.len() > 4);
    for pair in headings.chunks(2) {
        let [first, second] = pair else { panic!("{headings:?}") };
        assert_eq!(first.replace("(first)", ""), second.replace("(second)", ""));
    }
    assert!(charts.contains("same scales"), "{charts}");
}

/// A table begins after an empty line, or GitHub and GitLab show its characters (GitHub Flavored Markdown, section 4.6).
#[test]
fn a_ticket_has_the_numbers_of_every_picture_folded_beside_it() {
    for (name, record) in records() {
        let figures = drawn(&record);
        let pictures = figures.iter().filter(|figure| figure.svg.is_some()).count();
        let text = ticket(&[shown(&record, figures)], "t").text;
        let mut folded = text.split("<details><summary>Numbers</summary>\n\n").skip(1).peekable();
        assert!(folded.peek().is_some(), "{name}");
        assert_eq!(folded.clone().count(), pictures, "{name}");
        for after in folded {
            let (table, _) = after.split_once("\n\n</details>\n\n").expect(name);
            let rows: Vec<&str> = table.lines().collect();
            assert!(rows.len() > 2 && rows[1].starts_with("|---|"), "{name}: {table}");
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            assert!(rows.iter().all(|row| cells(row) == cells(rows[0])), "{name}: {table}");
        }
    }
}

#[test]
fn a_record_of_which_nothing_is_known_still_makes_a_page() {
    let (_, mut record) = records().next().unwrap();
    record.ends.near = Known::missing("gone");
    record.ends.far = Known::missing("gone");
    record.intervals.clear();
    record.result.directions.clear();
    let figures = drawn(&record);
    assert!(figures.iter().all(|figure| figure.svg.is_none()), "{figures:?}");
    assert!(page(&[shown(&record, figures)]).contains(&record.verdict.summary));
}

/// A clock of either end that is set back by half of the run.
#[test]
fn times_that_step_back_are_drawn_and_make_nothing_negative() {
    for (name, mut record) in records() {
        let figures_before = drawn(&record).len();
        for end in [&mut record.ends.near, &mut record.ends.far] {
            let Known::Value(end) = end else { continue };
            let half_s = end.samples.last().map_or(0.0, |last| last.at_s) / 2.0;
            let late = end.samples.iter_mut().filter(|sample| sample.at_s > half_s);
            late.for_each(|sample| sample.at_s -= half_s);
        }
        let half_s = record.intervals.last().map_or(0.0, |last| last.to_s) / 2.0;
        for interval in record.intervals.iter_mut().filter(|one| one.from_s >= half_s) {
            interval.from_s -= half_s;
            interval.to_s -= half_s;
        }
        let figures = drawn(&record);
        assert_eq!(figures.len(), figures_before, "{name}");
        for figure in figures.iter().filter(|one| one.id.starts_with("rate")) {
            let cells = figure.table.rows.iter().flatten();
            assert!(cells.clone().all(|cell| !cell.starts_with('-')), "{name}: {:?}", figure.table);
        }
    }
}

#[test]
fn counts_beyond_all_measure_end_neither_the_report_nor_the_program() {
    for (_, mut record) in records() {
        record.result.goodput_bits_per_s.0 = 1.7e308;
        record.result.precision_percent = Known::Value(1e300);
        for end in [&mut record.ends.near, &mut record.ends.far] {
            let Known::Value(end) = end else { continue };
            for (at, sample) in end.samples.iter_mut().enumerate() {
                sample.at_s = at as f64 * f64::MIN_POSITIVE;
                sample.received_bytes = if at % 2 == 0 { u64::MAX } else { 0 };
                for flow in &mut sample.flows {
                    flow.bytes = sample.received_bytes;
                    if let Known::Value(tcp) = &mut flow.tcp {
                        tcp.total_retrans_segments = Some(u64::MAX);
                        tcp.rtt_us = Some(u64::MAX);
                    }
                }
            }
        }
        assert!(page(&[shown(&record, drawn(&record))]).contains("</html>"));
    }
}

fn of(name: &str) -> Record {
    records().find(|(known, _)| *known == name).expect("it is kept").1
}

fn one(record: &Record, id: &str) -> Figure {
    let mut found = drawn(record).into_iter().filter(|figure| figure.id == id);
    found.next().unwrap_or_else(|| panic!("there is no figure {id}"))
}

#[test]
fn each_of_two_directions_has_its_own_ceiling_and_interval() {
    let mut record = of("both");
    let ids = ["rate-from-near", "rate-from-far"];
    for (direction, times) in record.result.directions.iter_mut().zip([1.5, 2.5]) {
        let ceiling = BitRate(direction.goodput_bits_per_s.0 * times);
        direction.ceiling_bits_per_s = Some(Known::Value(ceiling));
        direction.precision_percent = Some(Known::Value(times));
    }
    for (id, direction) in ids.iter().zip(&record.result.directions) {
        let figure = one(&record, id);
        let ceiling = direction.ceiling_bits_per_s.as_ref().and_then(Known::value).unwrap();
        let said = format!("The path could carry {ceiling}.");
        assert!(figure.alt.contains(&said) && figure.alt.contains(" ± "), "{}", figure.alt);
        assert!(figure.svg.unwrap().contains("\nceiling\n"), "{id}");
    }
}

/// What an older goodput kept: one ceiling, of the direction that the first verdict is about.
#[test]
fn the_ceiling_of_an_older_record_is_that_of_its_main_direction() {
    let mut record = of("both");
    record.result.ceiling_bits_per_s = Known::Value(BitRate(1e10));
    let main = format!("rate-from-{}", record.verdict.sender);
    for id in ["rate-from-near", "rate-from-far"] {
        assert_eq!(one(&record, id).alt.contains("could carry"), id == main, "{id}");
    }
}

#[test]
fn limiters_of_a_moment_stand_upon_each_other() {
    use goodput_model::{AccountShare, AccountSlice, Limiter, Place};
    let mut record = of("window");
    let Known::Value(account) = &mut record.verdict.account else { panic!("it has one") };
    let part = |limiter, share| AccountShare { limiter, end: Place::Far, share };
    account.slices = (0..10)
        .map(|n| AccountSlice {
            from_s: f64::from(n) * 0.2,
            to_s: f64::from(n + 1) * 0.2,
            parts: vec![part(Limiter::ReceiveWindow, 0.75), part(Limiter::Host, 0.25)],
        })
        .collect();
    let figure = one(&record, "rate");
    let svg = figure.svg.unwrap();
    assert!(svg.contains("receive window") && svg.contains("\nhost\n"), "{svg}");
    let said = "receive window 75 %, host 25 %";
    assert!(figure.table.rows.iter().any(|row| row[3] == said), "{:?}", figure.table);
}

#[test]
fn a_ceiling_is_a_line_and_one_far_above_is_said() {
    let mut record = of("window");
    let goodput = record.result.goodput_bits_per_s.0;
    let without = one(&record, "rate");
    assert!(!without.alt.contains("could carry"), "{}", without.alt);
    for (factor, is_drawn) in [(1.5, true), (1000.0, false)] {
        let ceiling = BitRate(goodput * factor);
        record.result.ceiling_bits_per_s = Known::Value(ceiling);
        let figure = one(&record, "rate");
        let said = format!("The path could carry {ceiling}.");
        assert!(figure.alt.contains(&said), "{}", figure.alt);
        assert_eq!(figure.svg.is_some_and(|svg| svg.contains("\nceiling\n")), is_drawn, "{factor}");
    }
}

#[test]
fn losses_are_marks_above_the_rate_too() {
    let mut record = of("window");
    let Known::Value(near) = &mut record.ends.near else { panic!("it reported") };
    let half = near.samples.len() / 2;
    for (at, sample) in near.samples.iter_mut().enumerate() {
        for flow in &mut sample.flows {
            let Known::Value(tcp) = &mut flow.tcp else { continue };
            tcp.total_retrans_segments = Some(if at < half { 0 } else { 7 });
        }
    }
    let rate = one(&record, "rate").svg.expect("it is drawn");
    assert!(rate.contains("segments sent again") && rate.matches("<circle").count() == 1, "{rate}");
    assert!(one(&record, "losses").alt.starts_with("7 segments sent again"));
}

#[test]
fn every_flow_has_its_rate() {
    let record = of("both");
    for id in ["flows-from-near", "flows-from-far"] {
        let figure = one(&record, id);
        assert_eq!(figure.table.rows.len(), 3, "{:?}", figure.table);
        assert!(figure.alt.starts_with("3 flows, between "), "{}", figure.alt);
    }
    let rate = one(&record, "rate-from-near");
    assert!(rate.svg.expect("it is drawn").contains("each of 3 flows"));
    let columns = rate.table.columns;
    assert!((0..3).all(|flow| columns.contains(&format!("flow {flow}"))), "{columns:?}");
    assert!(drawn(&of("window")).iter().all(|figure| !figure.id.starts_with("flows")), "one flow");
}

fn pauses() -> Gaps {
    let bins = [(1e-6, 3), (4e-6, 9)].map(|(from_s, count)| GapBin { from_s, count });
    Gaps { longest_s: 6e-6, histogram: bins.into(), rhythm: None }
}

/// A test by UDP whose receiver kept the pauses between datagrams.
fn with_pauses() -> Record {
    let mut record = of("udp");
    let Known::Value(far) = &mut record.ends.far else { panic!("it reported") };
    far.gaps = Some(pauses());
    record
}

#[test]
fn pauses_of_datagrams_and_of_captured_packets_are_histograms() {
    let gaps = pauses();
    let is_of_pauses = |figure: &Figure| figure.id.starts_with("gaps");
    assert!(!drawn(&of("udp")).iter().any(is_of_pauses), "not reported");
    let mut record = with_pauses();
    let payload = CapturedPayload {
        sender: EndName::Near,
        transport: Transport::Udp,
        packets: 13,
        largest_bytes: Bytes(1500),
        sizes: Vec::new(),
        gaps,
    };
    record.capture = Some(Box::new(PacketCapture {
        device: "<b>eth0".into(),
        file: "own.pcapng".into(),
        packets: 13,
        dropped: 0,
        not_read: 0,
        not_kept: 0,
        failure: None,
        payload: vec![payload],
    }));
    for id in ["gaps-of-datagrams", "gaps-udp-from-near-at-near"] {
        let figure = one(&record, id);
        assert_eq!(figure.table.rows[0], ["0 s", "2 µs", "3"], "{id}");
        assert!(figure.alt.ends_with("the longest is 6 µs."), "{}", figure.alt);
        assert!(figure.svg.is_some_and(|svg| !svg.contains("<b>")), "{id}");
    }
}

#[test]
fn runs_that_do_not_count_are_rings() {
    let mut record = of("compare");
    let comparison = record.comparison.as_mut().expect("it is one");
    comparison.trials.iter_mut().for_each(|trial| trial.discarded = None);
    let all = one(&record, "runs");
    let rings = |figure: &Figure| {
        let svg = figure.svg.as_ref().expect("it is drawn");
        svg.matches("<circle").count() - svg.matches("opacity=\"0.8\"").count()
    };
    assert!(rings(&all) == 0 && all.alt.ends_with("No run was discarded."), "{}", all.alt);
    let trial = &mut record.comparison.as_mut().expect("it is one").trials[0];
    trial.discarded = Some("warm-up".into());
    let figure = one(&record, "runs");
    assert!(figure.alt.contains("One run was discarded; a ring shows"), "{}", figure.alt);
    assert_eq!(rings(&figure), 1);
}

#[test]
fn charts_of_one_run_of_a_comparison_stand_folded_behind_those_of_all_runs() {
    let record = of("compare");
    let page = page(&[shown(&record, drawn(&record))]);
    let fold = page.find("<details class=\"one-run\">").expect("it is folded");
    let at = |id: &str| page.find(&format!("id=\"result-1-{id}\"")).expect(id);
    for id in ["effects", "in-order", "runs"] {
        assert!(at(id) < fold, "{id}");
    }
    for id in ["rate", "window", "cpu-near"] {
        assert!(at(id) > fold, "{id}");
    }
    assert!(page.contains("(it does not count: warm-up)"), "{page}");
    let test = of("window");
    assert!(!self::page(&[shown(&test, drawn(&test))]).contains("class=\"one-run\""));
}

/// What stands beside the grid of a picture: the labels of its axes.
fn labels(figure: &Figure) -> Vec<String> {
    let svg = figure.svg.as_ref().expect("it is drawn");
    let parsed = roxmltree::Document::parse(svg).expect("well-formed");
    let texts = parsed.descendants().filter(|node| node.has_tag_name("text"));
    let texts = texts.filter_map(|node| Some(node.text()?.trim().to_owned()));
    texts.filter(|text| text.ends_with("bit/s") || text.ends_with(" s")).collect()
}

#[test]
fn two_results_have_one_scale() {
    let first = of("window");
    let mut second = first.clone();
    let Known::Value(far) = &mut second.ends.far else { panic!("it reported") };
    far.samples.iter_mut().for_each(|sample| sample.received_bytes *= 3);
    second.result.directions[0].goodput_bits_per_s.0 *= 3.0;
    let rate = |figures: &[Figure]| {
        labels(figures.iter().find(|figure| figure.id == "rate").expect("there is one"))
    };
    assert_ne!(rate(&drawn(&first)), rate(&drawn(&second)));
    let [one, other] = figures_of_both([&first, &second], |_| true);
    assert_eq!(rate(&one), rate(&other));
    assert_eq!(rate(&other), rate(&drawn(&second)), "the larger one keeps its own");
    let [alone, same] = figures_of_both([&first, &first], |_| true);
    assert!(alone == same && alone == drawn(&first));
}

#[test]
fn a_page_of_two_results_has_their_charts_in_pairs() {
    let records = [of("window"), of("both")];
    let [first, second] = figures_of_both([&records[0], &records[1]], |chart| chart.id == "rate");
    let ids = |figures: &[Figure]| figures.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&first), ["rate"]);
    assert_eq!(ids(&second), ["rate-from-near", "rate-from-far"]);
    let page = page(&[shown(&records[0], first), shown(&records[1], second)]);
    assert_eq!(page.matches(r#"<div class="pair">"#).count(), 2, "what both have, and the rest");
    assert!(page.contains("single runs prove nothing") || page.contains("No ratio"), "{page}");
    assert_eq!(page.matches("<article").count(), 2);
}

/// One direction against both: what they share stands beside each other, on one scale, and nothing beside a gap.
#[test]
fn one_direction_stands_beside_the_same_one_of_two() {
    let records = [of("window"), of("both")];
    let is_rate = |figures: &[Figure], id: &str| {
        labels(figures.iter().find(|figure| figure.id == id).expect("there is one"))
    };
    let figures = figures_of_both([&records[0], &records[1]], |_| true);
    assert_eq!(is_rate(&figures[0], "rate"), is_rate(&figures[1], "rate-from-near"));
    let [first, second] = figures;
    let shown = [shown(&records[0], first), shown(&records[1], second)];
    let [page, text] = [page(&shown), ticket(&shown, "t").text];
    let pair = page.find("id=\"first-rate\"").expect("it is there");
    let rest = &page[pair..];
    let row = &rest[..rest.find("<div class=\"pair\">").expect("there are more rows")];
    assert!(row.contains("id=\"second-rate-from-near\""), "{row}");
    for text in [page, text] {
        assert!(!text.contains("no such figure"), "{text}");
        assert!(text.contains("in which the near host sends"), "{text}");
        let (_, alone) = text.split_once("Only the second result has these").expect("it has");
        assert!(alone.contains("Goodput over time, sent by the far host"), "{alone}");
        assert!(!alone.contains("Goodput over time, sent by the near host"), "{alone}");
    }
}

/// Who follows an arm from chart to chart knows it by its colour.
#[test]
fn an_arm_has_one_colour_in_every_chart_of_a_page() {
    let record = of("arms");
    let colours = |id: &str| {
        let svg = one(&record, id).svg.expect("it is drawn");
        let parsed = roxmltree::Document::parse(&svg).expect("well-formed");
        let drawn = parsed
            .descendants()
            .filter(|node| node.has_tag_name("circle") || node.has_tag_name("polyline"));
        let of = |node: roxmltree::Node| {
            let colours = [node.attribute("fill"), node.attribute("stroke")];
            colours
                .into_iter()
                .flatten()
                .filter(|c| *c != "none")
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        drawn.flat_map(of).collect::<BTreeSet<_>>()
    };
    const ARM: &str = "#C81EAA";
    for id in ["effects", "in-order", "runs", "arms-over-time"] {
        let colours = colours(id);
        assert!(colours.iter().any(|colour| colour.eq_ignore_ascii_case(ARM)), "{id}: {colours:?}");
    }
    assert!(!colours("arms-over-time").iter().any(|colour| colour.eq_ignore_ascii_case("#0072B2")));
}

/// A name that a peer, a device or a user chose does not widen a page: cells and headings wrap, pictures have a size.
#[test]
fn long_names_wrap_and_absurd_numbers_are_short() {
    let mut record = of("compare");
    record.target = "t".repeat(3000);
    record.result.goodput_bits_per_s.0 = 1.7e308;
    let comparison = record.comparison.as_mut().expect("it compares");
    for (number, arm) in comparison.arms.iter_mut().enumerate() {
        arm.values = vec![format!("{}{number}", "v".repeat(3000))];
        arm.goodput_bits_per_s = Known::Value(BitRate(1.7e308));
    }
    let figures = drawn(&record);
    for svg in figures.iter().filter_map(|figure| figure.svg.as_ref()) {
        let parsed = roxmltree::Document::parse(svg).expect("well-formed");
        let texts = parsed.descendants().filter(|node| node.has_tag_name("text"));
        for text in texts.filter_map(|node| node.text()) {
            assert!(text.trim().chars().count() <= 110, "{text}");
        }
    }
    let page = page(&[shown(&record, figures)]);
    assert!(page.contains("1.70e296 Tbit/s") && !page.contains(&"0".repeat(100)), "{page}");
    assert!(goodput_charts::style().contains("max-width:24rem;overflow-wrap:break-word"));
}

#[test]
fn a_comparison_shows_its_difference_in_every_number_it_was_judged_by() {
    let mut record = of("compare");
    let comparison = record.comparison.as_mut().expect("it compares");
    comparison.responses = vec![Response::PerCpu, Response::Throughput, Response::Latency];
    for arm in &mut comparison.arms {
        let result =
            |response, against| ResponseResult { response, median: Known::Value(1.0), against };
        arm.responses = vec![
            result(Response::PerCpu, arm.goodput.clone()),
            result(Response::Throughput, arm.goodput.clone()),
            result(Response::Latency, None),
        ];
    }
    let figures = figures(&record, |chart| chart.id == "comparison");
    let ids: Vec<_> = figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["effects", "effects-throughput", "in-order", "runs"]);
    let titles = [&figures[0], &figures[1]].map(|figure| figure.title.as_str());
    assert_eq!(
        titles,
        [
            "Difference in goodput per CPU from the baseline",
            "Difference in goodput from the baseline"
        ]
    );
}

#[test]
fn both_arms_of_a_change_are_drawn_over_time_with_who_limited_them() {
    let mut record = of("arms");
    let figure = one(&record, "arms-over-time");
    for words in ["tcp_wmem=4096 16384 65536: between", "send buffer", "path rate"] {
        assert!(figure.alt.contains(words), "{}", figure.alt);
    }
    let comparison = record.comparison.as_mut().expect("it compares");
    let runs = comparison.arms.iter().filter_map(|arm| arm.shown.as_ref());
    assert_eq!(runs.map(|run| run.received.len() - 1).sum::<usize>(), figure.table.rows.len());
    comparison.arms[1].shown = None;
    assert!(drawn(&record).iter().all(|figure| figure.id != "arms-over-time"), "nothing beside it");
}

#[test]
fn a_host_has_its_cpu_over_time_if_the_record_keeps_it_and_its_mean_if_not() {
    let mut record = of("window");
    let older = one(&record, "cpu-near");
    let most = |figure: &Figure, name: &str| {
        let column = figure.table.columns.iter().position(|column| column == name)?;
        Some(figure.table.rows.iter().find(|row| row[0] == "most")?[column].clone())
    };
    assert_eq!(most(&older, "whole host").as_deref(), Some("unknown"), "not kept over time");
    assert!(most(&older, "flows' threads").is_some_and(|most| most.ends_with(" %")));
    let Known::Value(near) = &mut record.ends.near else { panic!("it reported") };
    near.host_cpu = Known::Value(
        (0..5_u32)
            .map(|half| HostCpu {
                at_s: f64::from(half) / 2.0,
                cpus: 2,
                counted_us: 1_000_000 * u64::from(half),
                busy_us: 600_000 * u64::from(half),
                softirq_us: 100_000 * u64::from(half),
                steal_us: 0,
            })
            .collect(),
    );
    let figure = one(&record, "cpu-near");
    let svg = figure.svg.as_ref().expect("it is drawn");
    for name in ["whole host", "soft interrupts", "flows"] {
        assert!(svg.contains(&format!("\n{name}")), "{name}: {svg}");
    }
    assert!(!svg.contains("\ntaken by the hypervisor\n"), "a line of nothing");
    let most = ["whole host", "soft interrupts"].map(|name| most(&figure, name));
    assert_eq!(most, ["120 %", "20 %"].map(|most| Some(most.into())));
    assert!(figure.alt.contains("at most 120 %"), "{}", figure.alt);
}

/// Nobody who can't see a line knows it by its ends.
#[test]
fn what_is_drawn_over_time_has_a_table_of_moments() {
    let record = of("both");
    for id in ["round-trip-from-near", "window-from-near", "cpu-near", "rate-from-near"] {
        let rows = one(&record, id).table.rows;
        let moments = rows.iter().filter(|row| row[0].ends_with('s')).count();
        assert!(moments >= 2, "{id}: {rows:?}");
    }
}

/// An axis needs a length, but nobody measured it.
#[test]
fn the_most_of_a_line_of_nothing_is_nothing() {
    let mut record = of("window");
    let Known::Value(near) = &mut record.ends.near else { panic!("it reported") };
    for flow in near.samples.iter_mut().flat_map(|sample| &mut sample.flows) {
        let Known::Value(tcp) = &mut flow.tcp else { continue };
        (tcp.unacked_segments, tcp.snd_mss_bytes) = (Some(0), Some(1448));
    }
    let figure = one(&record, "window");
    assert!(figure.alt.contains("in flight up to 0 B"), "{}", figure.alt);
    assert!(figure.svg.is_some());
}

#[test]
fn windows_of_several_flows_are_their_sum() {
    let sum = one(&of("both"), "window-from-near");
    assert!(sum.title.ends_with(", the sum of 3 flows"), "{}", sum.title);
    assert!(!one(&of("window"), "window").title.contains("sum"));
}
