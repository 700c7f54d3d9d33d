//! Every page, asked without a socket.

mod fake_host;
mod followed;

use std::path::PathBuf;

use goodput_model::{Kind, Record, Sites};
use goodput_store::{Store, Watched};
use goodput_web::{Answers, Gate, Secret, Site};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use hyper::header::{CONTENT_SECURITY_POLICY, LOCATION, SET_COOKIE};
use hyper::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use url::form_urlencoded;

use fake_host::FakeHost;

const TOKEN: &str = "a token of some length";
const HOSTILE: &str = "<script>alert(1)</script>";

/// What the program makes of the reasons in a result.
const IN_WORDS: &str = "reasons in words";
const RECORDS: [&str; 2] = [
    include_str!("../../charts/tests/records/window.json"),
    include_str!("../../charts/tests/records/compare.json"),
];

struct Fixture {
    site: Site,
    gate: Gate,
    folder: tempfile::TempDir,
}

impl Fixture {
    /// Two results of a target with a hostile name.
    fn new(login_to_read: bool) -> Self {
        let folder = tempfile::tempdir().expect("a directory can be made");
        let path = folder.path().join("history.db");
        let store = Store::open(&path).expect("it can be made");
        for text in RECORDS {
            let mut record = Record::from_json(text).expect("it is a record");
            record.target = HOSTILE.into();
            record.verdict.summary = HOSTILE.into();
            record.doubts = vec![HOSTILE.into()];
            store.add(&record).expect("it can be kept");
        }
        let secret = Secret::new(TOKEN).expect("it is long enough");
        let gate = Gate { secret, login_to_read, names: Vec::new(), encrypted: false, port: 7488 };
        Self { site: Site::new(FakeHost(path), gate.clone()), gate, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("history.db")
    }

    /// What a request without a form is answered.
    async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path)
            .header("host", "localhost")
            .body(Bytes::new())
            .expect("it is a request");
        let response = self.site.answer(request).await;
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().expect("it is ASCII");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}");
        let status = response.status();
        let body = response.into_body().collect().await.expect("it ends").to_bytes();
        (status, String::from_utf8(body.into()).expect("it is UTF-8"))
    }

    /// What a page that exists says.
    async fn page(&self, path: &str) -> String {
        let (status, text) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    /// What a form of this site is answered: where it leads, or the page.
    async fn post(&self, path: &str, fields: &str) -> (StatusCode, String) {
        let body = format!("form={}&{fields}", self.gate.form());
        let request = Request::post(path)
            .header("host", "localhost")
            .header("origin", "http://localhost")
            .header("cookie", self.gate.login(TOKEN).expect("it is the token"))
            .body(body.into());
        let response = self.site.answer(request.expect("it is a request")).await;
        let leads =
            response.headers().get(LOCATION).map(|to| to.to_str().expect("it is ASCII").to_owned());
        let status = response.status();
        let body = response.into_body().collect().await.expect("it ends").to_bytes();
        (status, leads.unwrap_or_else(|| String::from_utf8(body.into()).expect("it is UTF-8")))
    }
}

#[tokio::test]
async fn every_page_is_there_and_has_no_name_as_code() {
    let site = Fixture::new(false);
    let target = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let of_target = format!("/path?target={target}");
    let searched = format!("/?q={target}&from=2020-01-01&until=2030-01-01&before=2029,9");
    let older = format!("/path?target={target}&before=2029,9");
    for path in [
        "/",
        &searched,
        "/results/1",
        "/results/2",
        "/compare?id=1&id=2",
        "/path",
        &of_target,
        &older,
        "/matrix",
        "/matrix?show=limit&slow=20&from=2026-01-01",
        "/check",
        "/settings",
        "/changes",
        "/changes?before=7",
        "/tests",
        "/login",
    ] {
        let page = site.page(path).await;
        assert!(!page.contains(HOSTILE), "{path}");
        assert_eq!(page.matches("<h1").count(), 1, "{path}");
        for part in ["<!DOCTYPE html>", "<main", "<nav", "lang=\"en\"", "href=\"#content\""] {
            assert!(page.contains(part), "{path} lacks {part}");
        }
        assert!(!page.contains("<style") && !page.contains(" style="), "{path}");
    }
    for path in ["/style.css", "/live.js", "/icon.svg"] {
        site.page(path).await;
    }
    assert!(site.page("/results/1/json").await.starts_with('{'));
}

#[tokio::test]
async fn a_path_shows_the_days_of_deleted_results() {
    let site = Fixture::new(false);
    let page = "/path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    assert!(!site.page(page).await.contains("Days of deleted results"));
    let store = Store::open(&site.file()).expect("it is there");
    let mut other = Record::from_json(RECORDS[0]).expect("it is a record");
    other.target = HOSTILE.into();
    other.verdict.limit = "sunspots".into();
    store.add(&other).expect("it can be kept");
    assert_eq!(store.delete_before("9999").expect("it can be written"), 3);
    let place = "{%22day%22:%221999-01-01%22,%22of%22:[%22test%22,%22tcp%22,%22send%22,1]}";
    let (status, none) = site.get(&format!("{page}&days_before={place}")).await;
    assert!(status == 404 && none.contains("there are no days of "), "{none}");
    let (status, none) = site.get(&format!("{page}&days_before=1999-01-01")).await;
    assert!(status == 400 && none.contains("is no place in the list of days"), "{none}");
    let page = site.page(page).await;
    assert!(page.contains("Days of deleted results") && page.contains("<svg"), "{page}");
    assert!(page.contains("2 results, between ") && page.contains("(1 of 2)"), "{page}");
    assert!(page.contains(">Kind</th>") && !page.contains("The newest 0 results"), "{page}");
    assert!(!page.contains(HOSTILE));
    assert!(site.page("/path").await.contains("href=\"/path?target="));
    assert!(site.page("/").await.contains("All results were deleted"));
}

/// As of a host whose clock was ten years ahead until a time server answered.
#[tokio::test]
async fn results_of_a_clock_that_was_ahead_are_listed_apart_from_the_others() {
    let site = Fixture::new(false);
    let store = Store::open(&site.file()).expect("it is there");
    let ahead = Timestamp::now() + SignedDuration::from_hours(10 * 365 * 24);
    let mut record = Record::from_json(RECORDS[0]).expect("it is a record");
    record.target = HOSTILE.into();
    record.started = ahead.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let id = store.add(&record).expect("it can be kept");
    let row = format!("href=\"/results/{id}\"");
    let of_target = "/path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for path in ["/", of_target] {
        let page = site.page(path).await;
        assert!(page.contains("a clock was ahead") && !page.contains(&row), "{page}");
        let later = format!("{path}{}later=1", if path == "/" { '?' } else { '&' });
        assert!(page.contains(&later.replace('&', "&amp;").replace("(1)", "%281%29")), "{page}");
        let page = site.page(&later).await;
        assert!(page.contains(&row) && page.contains(">Newest<"), "{page}");
    }
    store.delete_before(&record.started).expect("it can be written");
    let page = site.page("/").await;
    assert!(page.contains(&row) && !page.contains("a clock was ahead"), "{page}");
}

#[tokio::test]
async fn people_get_a_result_in_words_and_programs_as_it_was_kept() {
    let site = Fixture::new(false);
    assert!(site.page("/results/1").await.contains(IN_WORDS));
    assert!(!site.page("/results/1/json").await.contains(IN_WORDS));
}

#[tokio::test]
async fn the_list_is_searched_and_has_pages() {
    let site = Fixture::new(false);
    let store = Store::open(&site.file()).unwrap();
    let mut record = Record::from_json(RECORDS[0]).unwrap();
    for number in 0..60 {
        record.target = format!("host-{number}");
        store.add(&record).unwrap();
    }
    let first = site.page("/").await;
    let second = site.page(&next(&first)).await;
    for (page, link, other) in [(&first, ">Older<", ">Newest<"), (&second, ">Newest<", ">Older<")] {
        assert!(page.contains(link) && !page.contains(other), "{page}");
    }
    let mut numbers = [numbers(&first), numbers(&second)].concat();
    assert_eq!(numbers.len(), 62);
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(1..=62), "each is listed once: {numbers:?}");
    let found = site.page("/?q=HOST-57").await;
    assert_eq!(found.matches("aria-label=\"Compare result").count(), 1, "{found}");
    assert!(site.page("/?q=nowhere").await.contains("No result fits"));
    let kind = record.kind.name();
    let same = site.page(&format!("/?kind={kind}&q=host-57")).await;
    assert_eq!(same.matches("aria-label=\"Compare result").count(), 1, "{same}");
    let other = Kind::ALL.into_iter().find(|other| *other != record.kind).unwrap().name();
    assert!(site.page(&format!("/?kind={other}")).await.contains("No result fits"));
}

#[tokio::test]
async fn a_history_of_several_sites_says_who_measured_and_can_be_searched_by_it() {
    let site = Fixture::new(false);
    assert!(!site.page("/").await.contains("Measured by"));
    let store = Store::open(&site.file()).unwrap();
    let mut record = Record::from_json(RECORDS[0]).unwrap();
    let [near, far] = [HOSTILE, "paris"].map(String::from);
    record.sites = Some(Sites { near, far });
    store.add(&record).unwrap();
    let all = site.page("/").await;
    assert!(all.contains("Measured by") && all.contains(">By</th>"), "{all}");
    assert!(!all.contains("<script>alert"), "{all}");
    let who = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect::<String>();
    let of_one = site.page(&format!("/?by={who}")).await;
    assert_eq!(of_one.matches("aria-label=\"Compare result").count(), 1, "{of_one}");
    assert!(site.page("/?by=nobody").await.contains("No result fits"));
}

/// An import has lower numbers for newer results, and the clock of a host may be set back.
#[tokio::test]
async fn results_whose_times_step_back_are_all_listed_and_drawn() {
    let site = Fixture::new(false);
    let store = Store::open(&site.file()).unwrap();
    let mut record = Record::from_json(RECORDS[0]).unwrap();
    record.target = "nas".into();
    for (day, rate) in [("03", 3e6), ("01", 1e6), ("02", 2e6)] {
        record.started = format!("2026-01-{day}T10:00:00Z");
        record.result.goodput_bits_per_s.0 = rate;
        store.add(&record).unwrap();
    }
    record.started = "the day before".into();
    store.add(&record).unwrap();
    let path = site.page("/path?target=nas").await;
    for page in [&path, &site.page("/?q=nas").await] {
        assert_eq!(numbers(page), [3, 5, 4], "{page}");
    }
    // What is no time comes after all times.
    for later in ["/path?target=nas&later=1", "/?q=nas&later=1"] {
        assert_eq!(numbers(&site.page(later).await), [6]);
    }
    assert!(path.contains("3 results, between 1 Mbit/s and 3 Mbit/s."), "{path}");
    let day = site.page("/?q=nas&from=2026-01-02&until=2026-01-02").await;
    assert!(day.contains("\"/results/5\"") && day.matches("Compare result").count() == 1, "{day}");
}

/// The numbers of the listed results, from the top.
fn numbers(page: &str) -> Vec<i64> {
    let links = page.split("<td><a href=\"/results/").skip(1);
    let number = |rest: &str| rest.split('"').next().and_then(|number| number.parse().ok());
    links.map(|rest| number(rest).expect("it is a number")).collect()
}

/// Where the last link to older results leads.
fn next(page: &str) -> String {
    let before = page.rsplit_once("\" rel=\"next\"").expect("there are older ones").0;
    before.rsplit_once("href=\"").expect("it is a link").1.replace("&amp;", "&")
}

#[tokio::test]
async fn a_path_with_many_results_says_so_and_leads_to_the_older_ones() {
    let site = Fixture::new(false);
    let db = rusqlite::Connection::open(site.file()).unwrap();
    let few = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 501)
        INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json)
        SELECT started, kind, 'nas', goodput_bits_per_s, rule, json FROM records, n WHERE id = 1";
    db.execute(few, []).unwrap();
    let first = site.page("/path?target=nas").await;
    assert!(first.contains("These are the newest 500 results."), "{first}");
    assert!(first.contains("<caption>The newest 500 results</caption>"), "{first}");
    let second = site.page(&next(&first)).await;
    assert!(second.contains("<caption>One older result</caption>"), "{second}");
    assert!(!second.contains("These are the newest") && second.contains(">Newest<"), "{second}");
    let mut listed = [numbers(&first), numbers(&second)].concat();
    listed.sort_unstable();
    assert!(listed.iter().copied().eq(3..=503), "each is listed once: {listed:?}");
    db.execute("DELETE FROM records WHERE id = 3", []).unwrap();
    let all = site.page("/path?target=nas").await;
    assert!(all.contains("<caption>All 500 results</caption>"), "{all}");
    assert!(!all.contains("Older") && !all.contains("These are the newest"), "{all}");
}

#[tokio::test]
async fn a_list_of_paths_that_ends_early_says_so() {
    let site = Fixture::new(false);
    let note = "At most 200 targets are listed";
    assert!(!site.page("/path").await.contains(note));
    let db = rusqlite::Connection::open(site.file()).unwrap();
    let more = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json)
        SELECT started, kind, 'host-' || i, goodput_bits_per_s, rule, json FROM records, n WHERE id = 1";
    db.execute(more, []).unwrap();
    assert!(site.page("/path").await.contains(note));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_words() {
    let site = Fixture::new(false);
    let long = format!("/?q={}", "x".repeat(10_000));
    for (path, status) in [
        ("/results/99", 404),
        ("/results/x", 404),
        ("/results/-1", 404),
        ("/results/..%2f..%2fetc%2fpasswd", 404),
        ("/../../etc/passwd", 404),
        ("/nowhere", 404),
        ("/tests/7", 404),
        ("/tests/7/events", 404),
        ("/compare", 400),
        ("/compare?id=1&id=2&id=3", 400),
        ("/compare?id=1&id=x", 400),
        ("/compare?id=1&id=9", 404),
        ("/path?target=unknown", 404),
        ("/?before=x", 400),
        ("/?before=9", 400),
        ("/path?target=unknown&before=x,y", 400),
        ("/path?target=unknown&before=2026,1", 404),
        ("/matrix?show=nothing", 400),
        ("/matrix?slow=100", 400),
        ("/matrix?slow=x", 400),
        ("/matrix?from=yesterday", 400),
        ("/?from=yesterday", 400),
        ("/?from=2026-01-02&until=2026-01-01", 400),
        (&long, 200),
    ] {
        let (found, text) = site.get(path).await;
        assert_eq!(found, status, "{path}: {text}");
        assert!(text.contains("<h1>"), "{path}");
    }
}

#[tokio::test]
async fn a_history_that_cant_be_read_is_reported() {
    let site = Fixture::new(false);
    std::fs::write(site.file(), "half of a database").unwrap();
    for path in ["/", "/results/1", "/compare?id=1&id=2", "/path", "/matrix"] {
        let (status, text) = site.get(path).await;
        assert!(status == 500 && text.contains("damaged"), "{path}: {text}");
    }
    site.page("/check").await;
}

#[tokio::test]
async fn a_record_that_cant_be_read_is_listed_and_says_why_and_hides_no_other() {
    let site = Fixture::new(false);
    let db = rusqlite::Connection::open(site.file()).unwrap();
    let page = "/path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for (json, format) in [
        ("'{\"format\": 99}'", 99),
        ("'nonsense'", 1),
        ("substr(json, 1, 1000)", 1),
        ("CAST(x'ff00' AS TEXT)", 1),
    ] {
        let damage = format!("UPDATE records SET json = {json}, format = {format} WHERE id = 1");
        db.execute(&damage, []).unwrap();
        for list in ["/", page] {
            let list = site.page(list).await;
            assert!(list.contains("\"/results/1\"") && list.contains("\"/results/2\""), "{list}");
            // A list reads no record, so that it knows the format alone.
            let said = list.matches("has format 99, and this goodput knows up to").count();
            assert_eq!(said, usize::from(format == 99), "{json}: {list}");
        }
        for path in ["/results/1", "/results/1/json", "/compare?id=1&id=2", "/compare?id=2&id=1"] {
            let (status, text) = site.get(path).await;
            assert_eq!(status, 422, "{json}, {path}: {text}");
            assert!(text.contains("<h1>This result can't be read</h1>"), "{text}");
            assert!(text.contains("can't read record 1: it "), "{text}");
            let what_to_do = ["use a newer goodput", "<code>goodput history import FILE</code>"];
            assert!(what_to_do.iter().any(|deed| text.contains(deed)), "{text}");
        }
        site.page("/results/2").await;
        let whole = goodput_model::Record::from_json(RECORDS[0]).unwrap().to_json().unwrap();
        db.execute("UPDATE records SET json = ?1, format = 1 WHERE id = 1", [whole]).unwrap();
    }
}

/// As they were printed then, not as they would be written today.
#[tokio::test]
async fn records_that_the_first_goodput_wrote_have_all_their_pages() {
    let site = Fixture::new(false);
    let db = rusqlite::Connection::open(site.file()).unwrap();
    for (id, json) in [
        (1, include_str!("../../store/tests/golden/v1/test.json")),
        (2, include_str!("../../store/tests/golden/v1/compare.json")),
    ] {
        db.execute("UPDATE records SET json = ?2 WHERE id = ?1", (id, json)).unwrap();
    }
    for path in ["/", "/path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/compare?id=1&id=2"] {
        let page = site.page(path).await;
        assert!(page.contains("/results/1") && page.contains("/results/2"), "{path}: {page}");
    }
    for id in [1, 2] {
        assert!(site.page(&format!("/results/{id}")).await.contains("<svg"), "{id}");
        let json = site.page(&format!("/results/{id}/json")).await;
        assert!(Record::from_json(&json).is_ok(), "{json}");
    }
}

#[tokio::test]
async fn commands_are_code_on_every_page() {
    let site = Fixture::new(false);
    let empty = Fixture::new(false);
    let db = rusqlite::Connection::open(empty.file()).unwrap();
    db.execute("DELETE FROM records", []).unwrap();
    for (site, path) in [
        (&site, "/compare?id=1&id=1"),
        (&site, "/settings"),
        (&site, "/login"),
        (&site, "/results/99"),
        (&empty, "/"),
        (&empty, "/path"),
    ] {
        let (_, page) = site.get(path).await;
        assert!(!page.contains('`') && page.contains("<code>goodput "), "{path}: {page}");
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_changed() {
    let site = Fixture::new(true);
    for path in ["/", "/results/1", "/changes", "/tests", "/results/1/json"] {
        assert_eq!(site.get(path).await.0, StatusCode::SEE_OTHER, "{path}");
    }
    for path in ["/login", "/style.css"] {
        site.page(path).await;
    }
    let open = Fixture::new(false);
    for path in [
        "/undo",
        "/undo-at-hosts",
        "/take-back",
        "/remove-saved",
        "/tests",
        "/logout",
        "/tests/1/stop",
    ] {
        let request = Request::post(path).header("host", "localhost").body(Bytes::new()).unwrap();
        let response = open.site.answer(request).await;
        assert_eq!(response.headers()[LOCATION], "/login", "{path}");
    }
    let request = Request::get("/").header("host", "evil.example").body(Bytes::new()).unwrap();
    assert_eq!(open.site.answer(request).await.status(), StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn the_token_lets_in_and_the_cookie_is_for_this_start_of_this_port() {
    let site = Fixture::new(true);
    let login = |token: &str| {
        let request = Request::post("/login")
            .header("host", "localhost")
            .header("sec-fetch-site", "same-origin")
            .body(Bytes::from(format!("token={token}")));
        site.site.answer(request.unwrap())
    };
    let refused = login("a+wrong+token+of+some+length").await;
    assert_eq!(
        (refused.status(), refused.headers().get(SET_COOKIE)),
        (StatusCode::FORBIDDEN, None)
    );
    let accepted = login("a+token+of+some+length").await;
    let cookie = accepted.headers()[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("token of some"), "{cookie}");
    assert!(cookie.starts_with("goodput-session-7488="), "{cookie}");
    for (server, status) in [(&site, StatusCode::OK), (&Fixture::new(true), StatusCode::SEE_OTHER)]
    {
        let request = Request::get("/").header("host", "localhost").header("cookie", cookie);
        let answer = server.site.answer(request.body(Bytes::new()).unwrap()).await;
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn with_the_token_changes_are_undone_and_tests_are_started() {
    let site = Fixture::new(false);
    let (status, page) = site.post("/undo", "").await;
    assert!(status == 200 && page.contains("put back") && !page.contains(HOSTILE), "{page}");
    let page = site.page("/changes").await;
    for part in ["<td>this one</td>", "<td>ssh://", "<h3>At hosts reached by SSH"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (status, page) = site.post("/undo-at-hosts", "").await;
    assert!(status == 200 && page.contains("put back there") && !page.contains(HOSTILE), "{page}");
    let named = |setting: &str| {
        let fields = [("setting", setting), ("time", HOSTILE)];
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    };
    let (status, page) = site.post("/take-back", &named(HOSTILE)).await;
    assert!(status == 200 && page.contains("taken back") && !page.contains(HOSTILE), "{page}");
    assert_eq!(site.post("/take-back", &named("mtu@lo")).await.0, 404, "it does not stand");
    let (status, page) = site.post("/remove-saved", "").await;
    assert!(status == 200 && page.contains("removed") && !page.contains(HOSTILE), "{page}");
    for fields in ["", "target=a&what=serve", "target=a&direction=up"] {
        assert_eq!(site.post("/tests", fields).await.0, 400, "{fields}");
    }
    let (status, page) = site.post("/tests", "target=%3Cb%3Enas&flows=x&what=compare").await;
    assert!(status == 400 && !page.contains(HOSTILE) && page.contains("--flows: &lt;script"));
    for kept in ["value=\"&lt;b&gt;nas\"", "value=\"compare\" selected", "value=\"x\""] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    let started = site.post("/tests", "target=%3Cb%3Enas&time=3").await;
    assert_eq!(started, (StatusCode::SEE_OTHER, "/tests/1".into()), "others are followed later");
    let events = site.page("/tests/1/events").await;
    assert!(events.contains("id: 1\ndata: {\"event\":\"note\""), "{events}");
    assert!(events.contains("event: end\ndata: {\"result\":null"), "{events}");
    assert!(site.page("/tests/1/events?known=2").await.starts_with("event: end"));
    let page = site.page("/tests/1").await;
    assert!(page.contains("Ended without a result") && !page.contains("<b>nas"), "{page}");
    assert!(page.contains("points=\"400.0,0.0\"") && page.contains("<td>2.0 s</td>"), "{page}");
    assert_eq!(site.post("/tests/1/stop", "").await.1, "/tests/1");
}

#[tokio::test]
async fn the_log_of_changes_has_pages_and_only_the_first_says_what_is_changed_now() {
    let site = Fixture::new(false);
    let first = site.page("/changes").await;
    assert!(first.contains("To put back") && !first.contains("rel=\"first\""), "{first}");
    assert!(first.contains("href=\"/changes?before=7\" rel=\"next\""), "{first}");
    let last = site.page("/changes?before=7").await;
    assert_eq!(last.matches("<tr>").count(), 2, "the headings and one change: {last}");
    assert!(!last.contains("To put back") && !last.contains("rel=\"next\""), "{last}");
    assert!(last.contains("href=\"/changes\" rel=\"first\""), "{last}");
    assert_eq!(site.get("/changes?before=soon").await.0, 400);
}

#[tokio::test]
async fn a_path_whose_chart_cant_be_drawn_still_has_its_list() {
    let site = Fixture::new(false);
    let db = rusqlite::Connection::open(site.file()).unwrap();
    db.execute("UPDATE records SET goodput_bits_per_s = 1.7e308", []).unwrap();
    let page = site.page("/path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E").await;
    assert!(page.contains("The chart could not be drawn: "), "{page}");
    assert!(page.contains("/results/1") && page.contains("/results/2"), "{page}");
}

/// A peer chooses some names, and a damaged record has any number.
#[tokio::test]
async fn a_long_name_is_clipped_with_all_of_it_as_its_title_and_an_absurd_number_is_short() {
    let site = Fixture::new(false);
    let db = rusqlite::Connection::open(site.file()).unwrap();
    let long = "<b>".repeat(100);
    let update =
        "UPDATE records SET target = ?1, rule = ?1, goodput_bits_per_s = 1.7e308 WHERE id = 1";
    db.execute(update, [&long]).unwrap();
    let title = format!("<span class=\"name\" title=\"{0}\">{0}</span>", "&lt;b&gt;".repeat(100));
    let of_path = format!(
        "/path?{}",
        form_urlencoded::Serializer::new(String::new()).append_pair("target", &long).finish()
    );
    for (path, names) in [("/", 2), (&of_path, 1), ("/path", 1)] {
        let page = site.page(path).await;
        assert_eq!(page.matches(&title).count(), names, "{path}: {page}");
        assert!(path == "/path" || page.contains(">1.70e296 Tbit/s</td>"), "{path}: {page}");
    }
}

#[tokio::test]
async fn limits_are_named_in_words() {
    let site = Fixture::new(false);
    let db = rusqlite::Connection::open(site.file()).unwrap();
    let set = |id: i64, rule: &str| {
        db.execute("UPDATE records SET rule = ?2 WHERE id = ?1", (id, rule)).unwrap();
    };
    for (rule, words) in [
        ("receive-window", "<td>The receiver's window is too small</td>"),
        ("none", "<td>No limit found</td>"),
        ("rule-of-a-later-version", "<td>rule-of-a-later-version</td>"),
    ] {
        set(1, rule);
        for path in ["/", "/path?target=%3Cscript%3Ealert(1)%3C%2Fscript%3E"] {
            let page = site.page(path).await;
            assert!(page.contains(words), "{path}: {page}");
        }
        assert!(site.page("/").await.contains(&format!("<option value=\"{rule}\">")));
    }
}

#[tokio::test]
async fn tests_of_a_watch_are_marked_and_what_they_found_is_on_the_page_of_their_path() {
    let site = Fixture::new(false);
    let store = Store::open(&site.file()).unwrap();
    let mut record = Record::from_json(RECORDS[0]).unwrap();
    record.target = "nas".into();
    store.add(&record).unwrap();
    store.add_watched(&record, &Watched { plan: "{}".into(), goodput: None }).unwrap();
    for path in ["/?q=nas", "/path?target=nas"] {
        let page = site.page(path).await;
        let marks = ["<td>test", "<td>watch"].map(|mark| page.matches(mark).count());
        assert_eq!(marks, [1, 1], "{path}: {page}");
    }
    let page = site.page("/path?target=nas").await;
    assert!(page.contains("Changes that watches found"), "{page}");
    assert!(page.contains("/compare?id=1&amp;id=2"), "{page}");
}

#[tokio::test]
async fn the_matrix_has_a_cell_for_each_pair_and_says_what_explains_the_slow_ones() {
    let site = Fixture::new(false);
    let page = site.page("/matrix").await;
    for part in [
        "4 sites, 11 of 12 pairs tested (each direction is a pair), typical 900",
        "3 pairs are at least 10 % slower than typical.",
        "'s sending side explains 3 of 3 slow pairs",
        "<caption>Goodput, from each site to each (a dot: unknown)</caption>",
        "<th scope=\"row\">a</th><td>–</td><td>·</td><td><a href=\"/results/1\">900 Mbit/s</a></td>",
        "Left out: 2 tests, datagrams",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("<strong class=\"slow\">slow</strong>").count(), 3, "{page}");
    let round_trips = site.page("/matrix?show=rtt").await;
    assert!(!round_trips.contains("<td><a"), "what is absent is not zero: {round_trips}");
    let lenient = site.page("/matrix?slow=90").await;
    assert!(lenient.contains("no pair is 90 % slower than typical, or more."), "{lenient}");
}
