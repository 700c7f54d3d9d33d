//! The pages of `goodput report`, opened from a file as from a mail.

use goodput_model::{Known, Record};

use super::browser::Browser;
use super::served::{HOSTILE, hostile};
use crate::common::{Home, stderr};

/// A record of each kind, and with each chart.
const RECORDS: [(&str, &str); 9] = [
    ("both", include_str!("../../../../charts/tests/records/both.json")),
    ("compare", include_str!("../../../../charts/tests/records/compare.json")),
    ("dose", include_str!("../../../../charts/tests/records/dose.json")),
    ("factors", include_str!("../../../../charts/tests/records/factors.json")),
    ("latency", include_str!("../../../../charts/tests/records/latency.json")),
    ("shaping", include_str!("../../../../charts/tests/records/shaping.json")),
    ("udp", include_str!("../../../../charts/tests/records/udp.json")),
    ("window", include_str!("../../../../charts/tests/records/window.json")),
    ("arms", include_str!("../../../../charts/tests/records/arms.json")),
];

/// Where the page of these records is.
fn page(home: &Home, name: &str, records: &[Record]) -> String {
    let file = |(number, record): (usize, &Record)| {
        let text = record.to_json().expect("it can be written");
        home.file(&format!("{name}-{number}.json"), &text).to_str().expect("it is ASCII").to_owned()
    };
    let files: Vec<String> = records.iter().enumerate().map(file).collect();
    let page = home.path().join(format!("{name}.html"));
    let page = page.to_str().expect("it is ASCII");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let drawn = home.run(&[&["report", "-o", page], &files[..]].concat());
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    format!("file://{page}")
}

/// What is wrong with a page, which stands alone and has no navigation, on this paper.
fn wrong(browser: &mut Browser, url: &str, width: u32) -> Vec<String> {
    browser.visit(url);
    let not_here = ["no header", "no nav"];
    let mut found = browser.problems();
    found.retain(|problem| not_here.iter().all(|known| problem.trim_matches('"') != *known));
    found.extend(browser.complaints(url));
    found.extend(browser.wider_than(width));
    let elements = "document.querySelectorAll('script,img,iframe,link,[onerror]').length";
    if browser.evaluate(elements) != 0 {
        found.push("it has elements of a hostile peer".into());
    }
    found
}

#[test]
fn every_page_is_quiet_narrow_enough_and_accessible_on_light_dark_and_printed_paper() {
    let Some(mut browser) = Browser::open() else { return };
    let home = Home::new();
    let mut all = Vec::new();
    for (name, text) in RECORDS {
        let url = page(&home, name, &[hostile(text)]);
        for (width, dark) in [(360, true), (1200, false)] {
            browser.look(width, dark);
            let found = wrong(&mut browser, &url, width);
            all.extend(found.iter().map(|problem| format!("{name}, {width}: {problem}")));
            browser.photograph(&format!("report-{name}-{width}"));
        }
        let shown = browser.evaluate("document.querySelector('h1').textContent");
        assert!(shown.as_str().is_some_and(|text| text.contains(HOSTILE)), "{name}: {shown}");
        browser.print(false);
        all.extend(
            wrong(&mut browser, &url, 700).iter().map(|why| format!("{name}, printed: {why}")),
        );
        let closed = "[...document.querySelectorAll('details table')].filter((table) => !table.checkVisibility())";
        let closed = browser.evaluate(&format!("{closed}.length"));
        assert_eq!(closed, 0, "{name}: paper can't be clicked");
        browser.photograph(&format!("report-{name}-printed"));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn text_in_pictures_can_be_read_on_a_phone() {
    let Some(mut browser) = Browser::open() else { return };
    let home = Home::new();
    browser.look(360, true);
    browser.visit(&page(&home, "window", &[hostile(RECORDS[7].1)]));
    // A picture and the text in it shrink together; some text is rotated.
    let least = "Math.min(...[...document.querySelectorAll('svg text')].map((text) => {\
                 const { a, b } = text.getScreenCTM();\
                 return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b); }))";
    let least = browser.evaluate(least);
    assert!(least.as_f64().is_some_and(|pixels| pixels >= 12.0), "{least}");
}

/// Only a table may be moved to and fro.
#[test]
fn names_without_a_place_to_break_widen_no_page() {
    let Some(mut browser) = Browser::open() else { return };
    let home = Home::new();
    browser.look(320, false);
    for (name, text) in RECORDS {
        let mut record: Record = serde_json::from_str(text).expect(name);
        let long = "n".repeat(150);
        (record.target, record.verdict.summary) = (long.clone(), long.clone());
        record.doubts.push(long.clone());
        record.findings.iter_mut().for_each(|finding| finding.advice.push(long.clone()));
        for end in [&mut record.ends.near, &mut record.ends.far] {
            let Known::Value(end) = end else { continue };
            end.host.name.clone_from(&long);
        }
        if let Some(comparison) = &mut record.comparison {
            comparison.arms.iter_mut().for_each(|arm| arm.values = vec![long.clone()]);
        }
        browser.visit(&page(&home, name, &[record]));
        browser.evaluate(
            "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
        );
        assert_eq!(browser.wider_than(320), None, "{name}");
    }
}

#[test]
fn what_is_printed_is_dark_on_white() {
    let Some(mut browser) = Browser::open() else { return };
    let home = Home::new();
    let url = page(&home, "compare", &[hostile(RECORDS[1].1)]);
    browser.print(true);
    browser.visit(&url);
    let ink = "getComputedStyle(document.querySelector('svg text')).fill";
    assert_eq!(browser.evaluate(ink), "rgb(1, 2, 3)");
    let text = "getComputedStyle(document.body).color";
    assert_eq!(browser.evaluate(text), "rgb(0, 0, 0)");
    let hidden = "[...document.querySelectorAll('details')].filter((one) => \
                  !one.lastElementChild.checkVisibility()).length";
    assert_eq!(browser.evaluate(hidden), 0, "paper can't be clicked");
}

#[test]
fn a_page_of_two_results_is_quiet_and_accessible_too() {
    let Some(mut browser) = Browser::open() else { return };
    let home = Home::new();
    let url = page(&home, "two", &[hostile(RECORDS[0].1), hostile(RECORDS[1].1)]);
    for (width, dark) in [(360, true), (1200, false)] {
        browser.look(width, dark);
        let found = wrong(&mut browser, &url, width);
        assert!(found.is_empty(), "{width}: {found:?}");
    }
}
