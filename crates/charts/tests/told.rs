//! What a page and a ticket say before their charts: the answer, and how it was measured.

mod kept;

use std::collections::HashSet;

use goodput_charts::{Shown, figures, page, ticket, title};
use goodput_model::{
    Change, Kind, Known, Permanent, Purpose, Record, Tuning, TuningOutcome, TuningStep,
};

use kept::RECORDS;

fn of(wanted: &str) -> Record {
    let (_, text) = RECORDS.iter().find(|(name, _)| *name == wanted).expect("it is listed");
    serde_json::from_str(text).expect("a record")
}

/// The text of the page without its tags, and that of the ticket.
fn told(record: &Record) -> [String; 2] {
    let drawn = || {
        let text = "as printed".to_owned();
        vec![Shown { record, text, figures: figures(record, |_| true) }]
    };
    let page = page(&drawn());
    let (_, body) = page.split_once("<main>").expect("a page has a body");
    let text = body.split('<').filter_map(|tag| tag.split_once('>')).map(|(_, text)| text);
    [text.collect::<Vec<_>>().join(" "), ticket(&drawn(), "t").text]
}

fn stands_before(text: &str, one: &str, other: &str) {
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(at(one) < at(other), "{one} comes after {other}");
}

#[test]
fn a_comparison_begins_with_its_answer() {
    let record = of("compare");
    let answer = goodput_model::answer(&record).unwrap();
    assert!(answer.contains(" % interval ") && answer.contains("n = "), "{answer}");
    let arms = &record.comparison.as_ref().unwrap().arms;
    let named = format!("mover={} against {}: {answer}", arms[1].values[0], arms[0].values[0]);
    assert!(title(&record).ends_with(&named), "{}", title(&record));
    for text in told(&record) {
        stands_before(&text, " % interval ", "The first run of the baseline, ");
        stands_before(&text, "against the baseline", "The first run of the baseline, ");
        let (_, shown) = text.split_once("</head>").unwrap_or(("", &text));
        let lead = &named[..named.find(" (").expect("it has an interval")];
        let lead = shown.replace("&#58;", ":").matches(lead).count();
        assert_eq!(lead, 1, "no answer is said twice: {text}");
    }
}

#[test]
fn a_tuning_begins_with_what_was_tried_and_kept_and_how_to_keep_it() {
    let mut record = of("compare");
    record.kind = Kind::Tune;
    let setting = "sysctl.net.ipv4.tcp_wmem".parse().unwrap();
    let change = Change { setting, from: Some("1".into()), to: "2".into(), why: "a reason".into() };
    let comparison = Known::Value(record.comparison.clone().unwrap());
    let (rule, outcome) = ("send-buffer".into(), TuningOutcome::Kept);
    let step = TuningStep { change: change.clone(), rule, outcome, comparison };
    record.tuning = Some(Tuning {
        purpose: Purpose::Throughput,
        min_gain_percent: 3.0,
        steps: vec![step],
        proven: vec![change],
        kept_in: Vec::new(),
        to_keep: vec!["goodput settings set 'sysctl.net.ipv4.tcp_wmem=2'".into()],
        run_length: None,
        plan_only: Some(false),
        stopped: "nothing is left to try".into(),
    });
    for text in told(&record) {
        let before = "Before any change:";
        for told in ["proposed by", "send-buffer", "kept", "nothing is left to try"] {
            stands_before(&text, told, before);
        }
        stands_before(&text, "goodput settings set 'sysctl.net.ipv4.tcp_wmem=2'", before);
    }
    let tuning = record.tuning.as_mut().unwrap();
    tuning.proven.clear();
    let nothing = "nothing: what helped in a trial is not proven against the start";
    assert!(title(&record).ends_with(nothing), "{}", title(&record));
}

#[test]
fn what_a_shaper_gives_stands_before_what_one_run_got() {
    let mut record = of("shaping");
    record.findings[0].permanent =
        vec![Permanent { file: "a root shell".into(), lines: "tc qdisc".into() }];
    for text in told(&record) {
        stands_before(&text, "The shaper ", "TCP through the shaper");
        stands_before(&text, "Pauses between arrivals", "of one run. ");
        assert!(text.contains(", in a root shell:"), "{text}");
    }
}

#[test]
fn every_heading_says_the_protocol_and_the_direction() {
    for (name, traffic) in
        [("both", "TCP both directions"), ("udp", "UDP"), ("window", "TCP forward")]
    {
        let record = of(name);
        assert!(title(&record).contains(traffic), "{}", title(&record));
        for text in told(&record) {
            assert!(text.matches(traffic).count() > 1, "{name}: in the heading and below it");
        }
    }
}

#[test]
fn headings_of_a_ticket_are_readable_and_no_table_is_empty() {
    for (name, text) in RECORDS {
        let record: Record = serde_json::from_str(text).unwrap();
        let [_, ticket] = told(&record);
        let lines: Vec<&str> = ticket.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            assert!(!line.starts_with('#') || !line.contains("&#58;"), "{name}: {line}");
            let is_head = line.starts_with("|---");
            assert!(!is_head || lines[at + 1].starts_with('|'), "{name}: an empty table");
        }
    }
}

#[test]
fn remedies_are_named_as_such() {
    let record = of("window");
    assert!(!record.findings[0].changes.is_empty() || !record.findings[0].advice.is_empty());
    let [page, ticket] = told(&record);
    assert!(page.contains("To try") && ticket.contains("**to try**"), "{ticket}");
}

/// The rectangles of a legend: so large, and no others are.
fn legend(svg: &str) -> Vec<(String, String)> {
    let parsed = roxmltree::Document::parse(svg).expect("well-formed");
    let swatches = parsed.descendants().filter(|node| {
        node.has_tag_name("rect")
            && (node.attribute("width"), node.attribute("height")) == (Some("12"), Some("10"))
    });
    let of = |node: roxmltree::Node, name| node.attribute(name).unwrap_or_default().to_owned();
    swatches.map(|node| (of(node, "fill"), of(node, "opacity"))).collect()
}

#[test]
fn no_two_names_of_a_legend_have_the_same_colour() {
    for (name, text) in RECORDS {
        let record: Record = serde_json::from_str(text).unwrap();
        for figure in figures(&record, |_| true) {
            let Some(svg) = &figure.svg else { continue };
            let all = legend(svg);
            let different: HashSet<_> = all.iter().collect();
            assert_eq!(all.len(), different.len(), "{name}: {}: {all:?}", figure.id);
        }
    }
}

#[test]
fn every_picture_fits_a_phone() {
    for (name, text) in RECORDS {
        let record: Record = serde_json::from_str(text).unwrap();
        for figure in figures(&record, |_| true) {
            let Some(svg) = &figure.svg else { continue };
            let parsed = roxmltree::Document::parse(&svg.narrow).unwrap();
            let root = parsed.root_element();
            assert_eq!(root.attribute("width"), Some("330"), "{name}: {}", figure.id);
            assert_eq!(root.attribute("aria-label"), Some(&figure.alt[..]), "{name}");
        }
    }
    assert!(!goodput_charts::style().contains("svg{width:100%;min-width"));
}
