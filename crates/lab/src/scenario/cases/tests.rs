//! Files with several cases, good and malformed.

use proptest::prelude::*;

use super::*;

const FILE: &str = r#"
    name = "path-loss"
    [strength]
    mild = { loss = "0.1%", window = { near = "64K", far = "1M" } }
    severe = { loss = "3%", window = { near = "32K", far = "512K" } }
    [on]
    near = { rate = "500mbit" }
    far = { rate = "200mbit" }
    [link.path]
    rate = "{rate}"
    loss = "{loss}"
    [run]
    client = ["--rcvbuf", "{window}"]
    [expect]
    limit = "path-loss"
    not = ["none"]
    [expect.strength.mild]
    limit = ["path-loss", "path-rate"]
    [expect.on.far]
    not = []
"#;

fn expanded(text: &str) -> Vec<Case> {
    expand(text.parse().unwrap()).unwrap()
}

fn error_of(text: &str) -> String {
    expand(format!("name = \"x\"\n{text}").parse().unwrap()).unwrap_err()
}

#[test]
fn every_strength_is_on_every_link() {
    let cases = expanded(FILE);
    let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "path-loss/mild/near",
            "path-loss/mild/far",
            "path-loss/severe/near",
            "path-loss/severe/far",
        ]
    );
    let path = cases[1].table["link"]["path"].as_table().unwrap();
    assert_eq!(path["rate"].as_str(), Some("200mbit"));
    assert_eq!(path["loss"].as_str(), Some("0.1%"));
    assert!(!is_several(&cases[0].table));
}

#[test]
fn a_value_may_differ_by_link() {
    let windows: Vec<_> = expanded(FILE)
        .iter()
        .map(|case| case.table["run"]["client"][1].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(windows, ["64K", "1M", "32K", "512K"]);
}

#[test]
fn expectations_are_refined_by_strength_and_by_link() {
    let cases = expanded(FILE);
    let expect = |index: usize| cases[index].table["expect"].clone();
    assert_eq!(expect(0)["limit"].as_array().unwrap().len(), 2);
    assert_eq!(expect(3)["limit"].as_str(), Some("path-loss"));
    assert_eq!(expect(0)["not"].as_array().unwrap().len(), 1);
    assert!(expect(1)["not"].as_array().unwrap().is_empty());
    assert!(expect(1).get("strength").is_none() && expect(1).get("on").is_none());
}

#[test]
fn one_table_is_one_word_and_none_is_none() {
    let text = "name = \"x\"\n[on]\na = {}\nb = {}";
    let names: Vec<_> = expanded(text).into_iter().map(|case| case.name).collect();
    assert_eq!(names, ["x/a", "x/b"]);
    assert_eq!(expanded("name = \"x\"")[0].name, "x");
}

#[test]
fn the_default_is_the_second_strength_on_the_first_link() {
    fn default_of(text: &str) -> String {
        let cases = expanded(text);
        cases[default_case(&cases)].name.clone()
    }
    assert_eq!(default_of(FILE), "path-loss/severe/near");
    assert_eq!(default_of("name = \"x\"\n[strength]\na = {}\nb = {}\nc = {}"), "x/b");
    assert_eq!(default_of("name = \"x\"\n[strength]\na = {}"), "x/a");
    assert_eq!(default_of("name = \"x\"\n[on]\na = {}\nb = {}"), "x/a");
    assert_eq!(default_of("name = \"x\"\n[strength]\na = {}\n[on]\nc = {}\nd = {}"), "x/a/c");
}

#[test]
fn an_error_names_the_placeholder_and_the_case() {
    let error = error_of("title = \"{los}\"\n[strength]\nmild = { loss = \"1%\" }");
    assert_eq!(error, "case x/mild: there is no value for {los}; there are {loss}");
    let error = error_of("[strength]\nmild = { loss = \"1%\" }");
    assert_eq!(error, "case x/mild: nothing in the file uses {loss}");
    let error = error_of("[strength]\nmild = { a = 1 }\n[on]\nnear = { a = 2 }");
    assert!(error.contains("on.near") && error.contains("{a}"), "{error}");
}

#[test]
fn a_table_that_is_none_is_refused() {
    assert!(error_of("strength = 1").contains("[strength] must be a table"));
    assert!(error_of("[on]").contains("[on] is empty"));
    assert!(error_of("[on]\nnear = \"x\"").contains("on.near must give values"));
    assert!(error_of("[on]\n\"a/b\" = {}").contains("kebab-case"));
    let error = error_of("[expect.on.middle]\nlimit = \"x\"\n[on]\nnear = {}");
    assert!(error.contains("expect.on.middle"), "{error}");
}

proptest! {
    #[test]
    fn any_tables_are_cases_or_an_error(
        text in "(\\[(strength|on|expect|expect\\.on\\.a)\\]\n|[a-c] = (1|\\{\\}|\\{ a = 1 \\}|\"\\{a\\}\")\n){0,8}"
    ) {
        if let Ok(file) = format!("name = \"x\"\n{text}").parse() {
            let _ = expand(file);
        }
    }
}
