//! The pages in Chromium: nothing complains, nothing foreign is loaded or run, everyone can use them.

use std::process::Stdio;

use goodput_testing::servers::{certificate, has};
use goodput_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::browser::Browser;
use super::served::Web;
use crate::common::{Home, Server};

/// Every page with a name for its picture.
const PAGES: [(&str, &str); 17] = [
    ("history", ""),
    ("result", "results/1"),
    ("comparison", "results/2"),
    ("two-results", "compare?id=1&id=3"),
    ("paths", "path"),
    (
        "path",
        "path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(2)%3E",
    ),
    ("matrix", "matrix?from=2020-01-01"),
    ("matrix-limits", "matrix?from=2020-01-01&show=limit"),
    ("check", "check"),
    ("settings", "settings"),
    ("changes", "changes"),
    ("tests", "tests"),
    ("login", "login"),
    // What is refused is a page like all others.
    ("no-page", "none"),
    ("no-result", "results/999"),
    ("no-path", "path?target=%3Cscript%3Ealert(3)%3C%2Fscript%3E"),
    ("one-result-is-no-pair", "compare?id=1"),
];

pub fn log_in(browser: &mut Browser, web: &Web) {
    browser.visit(&format!("{}login", web.url()));
    let token = json!(web.token());
    browser.evaluate(&format!("document.getElementById('token').value = {token}"));
    browser.leave_by("document.querySelector('main form').requestSubmit()");
}

#[test]
fn every_page_is_quiet_narrow_enough_and_accessible_on_light_dark_and_printed_paper() {
    let Some(mut browser) = Browser::open() else { return };
    let web = Web::start(&[]);
    web.add_mesh();
    let mut wrong = Vec::new();
    for (name, path) in PAGES {
        for (width, dark) in [(360, true), (1200, false)] {
            browser.look(width, dark);
            browser.visit(&format!("{}{path}", web.url()));
            let mut found = browser.complaints(&web.url());
            found.extend(browser.problems());
            found.extend(browser.wider_than(width));
            browser.photograph(&format!("{name}-{width}"));
            wrong.extend(found.iter().map(|problem| format!("{name}, {width}: {problem}")));
        }
        browser.print(false);
        browser.visit(&format!("{}{path}", web.url()));
        wrong.extend(browser.problems().iter().map(|why| format!("{name}, printed: {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_a_peer_are_text() {
    let Some(mut browser) = Browser::open() else { return };
    let web = Web::start(&[]);
    web.add_mesh();
    for (_, path) in PAGES {
        browser.visit(&format!("{}{path}", web.url()));
        let elements = "document.querySelectorAll('script,img,iframe,[onerror]').length";
        assert_eq!(browser.evaluate(elements), 0, "{path}");
    }
    let shown = browser.complaints(&web.url());
    assert!(shown.is_empty(), "{shown:?}");
    browser.visit(&format!("{}results/1", web.url()));
    let text = browser.evaluate("document.querySelector('h1').textContent");
    assert!(text.as_str().unwrap().contains("<script>alert(1)</script>"), "{text}");
}

#[test]
fn the_keyboard_leads_past_the_navigation_and_shows_where_it_is() {
    let Some(mut browser) = Browser::open() else { return };
    let web = Web::start(&[]);
    browser.visit(&web.url());
    browser.press("Tab", 9, "");
    assert_eq!(browser.evaluate("document.activeElement.textContent"), "Skip to the content");
    let seen = "document.activeElement.getBoundingClientRect().left >= 0 && \
                getComputedStyle(document.activeElement).outlineStyle !== 'none'";
    assert_eq!(browser.evaluate(seen), true);
    browser.press("Enter", 13, "\r");
    browser.wait("document.activeElement.id === 'content'");
    browser.press("Tab", 9, "");
    assert_eq!(browser.evaluate("document.activeElement.id"), "q", "the first thing to do");
}

#[test]
fn a_test_is_started_followed_and_kept() {
    let Some(mut browser) = Browser::open() else { return };
    start_and_follow(&mut browser, Web::start(&["--login"]));
}

#[test]
fn a_test_is_started_followed_and_kept_by_tls() {
    let Some(mut browser) = Browser::open() else { return };
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), true);
    let file = |name| folder.path().join(name).to_str().expect("it is ASCII").to_owned();
    // Nobody has vouched for it.
    browser.trust_every_certificate();
    let files = ["--tls-cert", &file("cert.pem"), "--tls-key", &file("key.pem")];
    start_and_follow(&mut browser, Web::start(&[&["--login"], &files[..]].concat()));
}

#[test]
fn a_test_in_a_terminal_is_followed() {
    let Some(mut browser) = Browser::open() else { return };
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let mut test = web.home.goodput(&["test", &server.address, "--time", "60s"]);
    let mut test = test.stdout(Stdio::null()).spawn().expect("it can be started");
    let link = "document.querySelector('main li a')";
    wait_for("the test", || {
        browser.visit(&format!("{}tests", web.url()));
        browser.evaluate(&format!("{link} !== null")) == json!(true)
    });
    browser.leave_by(&format!("{link}.click()"));
    browser.wait("document.querySelectorAll('#intervals tbody tr').length >= 2");
    assert_eq!(browser.evaluate("document.querySelectorAll('main form').length"), 0, "no stop");
    kill_process(Pid::from_child(&test), Signal::INT).expect("it runs");
    test.wait().expect("it is a child");
    browser
        .wait("document.getElementById('state').textContent.startsWith('Ended. See the result')");
    browser.look(360, true);
    let labels = "[...document.querySelectorAll('.rates span, .times span span')].every((label) => \
                  label.textContent.endsWith('s') && parseFloat(getComputedStyle(label).fontSize) >= 12)";
    assert_eq!(browser.evaluate(labels), true, "each has a unit and can be read");
    assert_eq!(browser.wider_than(360), None);
    browser.photograph("followed");
    let found = [browser.complaints(&web.url()), browser.problems()].concat();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_comparison_in_a_terminal_shows_its_runs_while_they_are_made() {
    let Some(mut browser) = Browser::open() else { return };
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let compare = ["compare", &server.address, "chunk=32K,64K", "-t", "1", "--max-time", "120s"];
    let mut compare = web.home.goodput(&compare);
    let mut compare = compare.stdout(Stdio::null()).spawn().expect("it can be started");
    let link = "document.querySelector('main li a')";
    wait_for("the comparison", || {
        browser.visit(&format!("{}tests", web.url()));
        browser.evaluate(&format!("{link} !== null")) == json!(true)
    });
    browser.leave_by(&format!("{link}.click()"));
    let shown = "document.getElementById('progress').innerText";
    // Which block it is depends on how soon the page is there.
    browser.wait(&format!("/Block \\d+ of/.test({shown})"));
    for words in ["it takes at most", "Now: ", "the baseline", "not yet"] {
        browser.wait(&format!("{shown}.includes({})", json!(words)));
    }
    let empty = "document.getElementById('over-time').checkVisibility()";
    assert_eq!(browser.evaluate(empty), false, "a graph of nothing");
    browser.look(360, true);
    assert_eq!(browser.wider_than(360), None);
    browser.photograph("followed-comparison");
    let found = [browser.complaints(&web.url()), browser.problems()].concat();
    assert!(found.is_empty(), "{found:?}");
    kill_process(Pid::from_child(&compare), Signal::INT).expect("it runs");
    compare.wait().expect("it is a child");
    browser.wait("document.getElementById('state').textContent.startsWith('Ended.')");
}

fn start_and_follow(browser: &mut Browser, web: Web) {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    browser.visit(&web.url());
    assert_eq!(browser.evaluate("location.pathname"), "/login", "nothing without the token");
    log_in(browser, &web);
    browser.visit(&format!("{}tests", web.url()));
    let target = json!(server.address);
    browser.evaluate(&format!("document.getElementById('target').value = {target}"));
    browser.evaluate("document.getElementById('time').value = 2");
    browser.leave_by("document.querySelector('form[action=\"/tests\"]').requestSubmit()");
    assert_eq!(browser.evaluate("location.pathname"), "/tests/1");
    browser
        .wait("document.getElementById('state').textContent.startsWith('Ended. See the result')");
    assert_ne!(browser.evaluate("document.querySelectorAll('#intervals tbody tr').length"), 0);
    assert_ne!(
        browser.evaluate("document.querySelector('#graph polyline').getAttribute('points')"),
        ""
    );
    browser.photograph("live");
    let found = [browser.complaints(&web.url()), browser.problems()].concat();
    assert!(found.is_empty(), "{found:?}");
    browser.leave_by("document.querySelector('#state a').click()");
    let title = browser.evaluate("document.querySelector('h1').textContent");
    assert!(title.as_str().expect("it has text").contains(&server.address), "{title}");
}

#[test]
fn a_test_that_fails_says_why() {
    let Some(mut browser) = Browser::open() else { return };
    let web = Web::start(&[]);
    let (_kept, refusing) = crate::common::refusing();
    log_in(&mut browser, &web);
    browser.visit(&format!("{}tests", web.url()));
    let target = json!(refusing.to_string());
    browser.evaluate(&format!("document.getElementById('target').value = {target}"));
    browser.leave_by("document.querySelector('form[action=\"/tests\"]').requestSubmit()");
    browser.wait("document.getElementById('state').textContent.includes('refused')");
}

/// Everything but the lines that a running test adds.
#[test]
fn without_scripts_results_are_found_and_compared_and_a_test_is_started() {
    let Some(mut browser) = Browser::open() else { return };
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    browser.run_no_scripts();
    browser.visit(&web.url());
    browser.evaluate("document.getElementById('from').value = '2026-11-25'");
    browser.leave_by("document.querySelector('form.search').requestSubmit()");
    let rows = "document.querySelectorAll('tbody tr').length";
    assert_eq!(browser.evaluate(rows), 3, "all began on that day");
    browser.evaluate(
        "[...document.querySelectorAll('[name=id]')].slice(1).forEach((box) => box.click())",
    );
    browser.leave_by("document.querySelector('form[action=\"/compare\"]').requestSubmit()");
    assert_ne!(browser.evaluate("document.querySelectorAll('.pair svg').length"), 0);
    log_in(&mut browser, &web);
    browser.visit(&format!("{}tests", web.url()));
    let target = json!(server.address);
    browser.evaluate(&format!("document.getElementById('target').value = {target}"));
    browser.evaluate("document.getElementById('time').value = 1");
    browser.leave_by("document.querySelector('form[action=\"/tests\"]').requestSubmit()");
    let page = format!("{}tests/1", web.url());
    let state = "document.getElementById('state').textContent";
    wait_for("the end of the test", || {
        browser.visit(&page);
        let is_over = browser.evaluate(&format!("{state} !== 'Running.'")) == json!(true);
        let says = browser.evaluate("document.querySelector('noscript p')?.textContent ?? ''");
        assert_eq!(is_over, says == json!(""), "what to do is said until the end");
        is_over
    });
    let shown = browser.evaluate(state);
    assert!(
        shown.as_str().is_some_and(|text| text.starts_with("Ended. See the result")),
        "{shown}"
    );
    assert_ne!(
        browser.evaluate("document.querySelector('#graph polyline').getAttribute('points')"),
        ""
    );
    let found = [browser.complaints(&web.url()), browser.problems()].concat();
    assert!(found.is_empty(), "{found:?}");
}
