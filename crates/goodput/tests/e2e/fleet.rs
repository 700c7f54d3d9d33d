//! `goodput fleet`: the plan of a mesh, and the matrix of what was measured.

use goodput_model::{BitRate, Known, Record};
use goodput_store::{Store, read_record};
use serde_json::Value;

use crate::common::{Home, stderr, stdout};

const SITES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A test from one site to another, with a little fixed noise; c sends slowly.
fn test(from: &str, to: &str, number: usize) -> Record {
    let json = include_str!("../../src/report/example/record.json");
    let mut record = read_record(json).expect("the example is a record");
    record.started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    record.target = format!("{to}.example");
    let ends = [(&mut record.ends.near, from), (&mut record.ends.far, to)];
    for (end, name) in ends {
        let Known::Value(end) = end else { panic!("the example has both ends") };
        end.host.name = name.into();
    }
    let rate = if from == "c" { 3e8 } else { 9e8 };
    let noise = 1.0 + (number * 7 % 11) as f64 / 1000.0;
    record.result.directions[0].goodput_bits_per_s = BitRate(rate * noise);
    record
}

/// A home whose history has a test of each pair.
fn tested() -> Home {
    let home = Home::new();
    let store = Store::open(&home.path().join("goodput/history.db")).expect("it can be made");
    let pairs = SITES.iter().flat_map(|from| SITES.iter().map(move |to| (from, to)));
    for (number, (from, to)) in pairs.filter(|(from, to)| from != to).enumerate() {
        store.add(&test(from, to, number)).expect("it can be written");
    }
    home
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

fn mesh(more: &str) -> String {
    let sites: String =
        SITES.iter().map(|name| format!("[site.{name}]\ntarget = \"{name}.example\"\n")).collect();
    format!("[test]\nevery = \"6h\"\nrate = \"1gbit\"\n{more}\n{sites}")
}

#[test]
fn a_mesh_is_planned() {
    let home = Home::new();
    let file = home.file("mesh.toml", &mesh(""));
    let file = file.to_str().unwrap();
    let output = home.run(&["fleet", "plan", file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("5 sites, 20 pairs") && text.contains("round 5"), "{text}");
    let plan = json(&stdout(&home.run(&["fleet", "plan", file, "--json"])));
    assert_eq!(plan["rounds"].as_array().map(Vec::len), Some(5), "{plan}");
    assert_eq!(plan["sites"][0]["costs"]["mesh_bytes"], 10_000_000_000_u64, "{plan}");
    let short = home.file("short.toml", &mesh("budget = \"15GB/day\""));
    let output = home.run(&["fleet", "plan", short.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("the budget of all tests (15 GB/day)"), "{}", stdout(&output));
}

#[test]
fn a_wrong_mesh_file_is_answered_with_its_line() {
    let home = Home::new();
    let file = home.file("mesh.toml", &mesh("windows = [\"night\"]"));
    let output = home.run(&["fleet", "plan", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    for words in ["mesh.toml, line 4", "night", "22:00-06:00"] {
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let missing = home.run(&["fleet", "plan", "/nowhere/mesh.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("can't read the mesh /nowhere/mesh.toml"));
}

#[test]
fn the_matrix_names_the_slow_sender() {
    let home = tested();
    let output = home.run(&["fleet", "matrix"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("5 sites, 20 of 20 pairs tested"), "{text}");
    assert!(text.contains("c's sending side explains 4 of 4 slow pairs"), "{text}");
    let answer = json(&stdout(&home.run(&["fleet", "matrix", "--json"])));
    assert_eq!(answer["explanation"]["causes"][0]["part"], "sender", "{answer}");
    assert_eq!(answer["cells"].as_array().map(Vec::len), Some(20), "{answer}");
}

#[test]
fn a_shared_history_shows_and_filters_who_measured() {
    let home = tested();
    let all = stdout(&home.run(&["history", "--last", "30"]));
    let heading = all.lines().next().expect("a heading");
    assert_eq!(heading.split_whitespace().nth(2), Some("by"), "{all}");
    let output = home.run(&["history", "--by", "c"]);
    let of_c = stdout(&output);
    assert_eq!(of_c.lines().count(), 5, "{of_c}{}", stderr(&output));
    assert!(of_c.lines().skip(1).all(|line| line.split_whitespace().nth(2) == Some("c")), "{of_c}");
    let exported = stdout(&home.run(&["history", "export", "--json", "--by", "c"]));
    assert_eq!(exported.lines().count(), 4);
    let nobody = home.run(&["history", "--by", "x"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(stderr(&nobody).contains("no result was measured by \"x\""), "{}", stderr(&nobody));
}

#[test]
fn after_the_mesh_file_changed_the_matrix_has_its_pairs_alone_and_says_what_is_left_out() {
    let home = tested();
    let sites: String = ["a", "b", "c"]
        .map(|name| format!("[site.{name}]\ntarget = \"{name}.example\"\n"))
        .concat();
    let pairs = "[[pair]]\nsites = [\"a\", \"b\"]\n[[pair]]\nsites = [\"b\", \"c\"]\n";
    let file = home.file("mesh.toml", &format!("[test]\npairs = \"named\"\n{sites}{pairs}"));
    let output = home.run(&["fleet", "matrix", "--mesh", file.to_str().unwrap()]);
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("3 sites, 4 of 4 pairs tested"), "{text}{}", stderr(&output));
    for words in [
        "14 tests, a host or site that the mesh file does not have",
        "2 tests, a pair that the mesh file does not have",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_mesh_file_names_the_sites_and_what_was_not_tested() {
    let home = tested();
    let more = "\n[site.f]\nhost = \"elsewhere\"\n";
    let file = home.file("mesh.toml", &(mesh("") + more));
    let output = home.run(&["fleet", "matrix", "--mesh", file.to_str().unwrap(), "--cells"]);
    let text = stdout(&output);
    assert!(text.contains("6 sites, 20 of 30 pairs tested"), "{text}{}", stderr(&output));
    assert!(text.contains("f as sender, f as receiver"), "{text}");
}

#[test]
fn a_mesh_that_can_t_be_read_ends_goodput_web_at_once() {
    let home = Home::new();
    let file = home.file("mesh.toml", "[site.a]\n");
    let file = file.to_str().unwrap();
    let output = home.run(&["web", "--listen", "127.0.0.1:0", "--mesh", file]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("the file has 1 site, but"), "{}", stderr(&output));
}

#[test]
fn without_tests_there_is_no_matrix() {
    let output = Home::new().run(&["fleet", "matrix"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("goodput history import"), "{}", stderr(&output));
}
