//! Fleets in containers: the compose file as Debian's docker-compose reads it, the manifest for Kubernetes as kubectl does and
//! by the fields that matter, and each command line of both as the program takes it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goodput_fleet::Mesh;
use goodput_testing::servers::has;
use serde_json::Value;

use crate::common::{Home, stderr, stdout};

/// Where nobody listens: a command line that gets there was understood, and so were its files.
const NOWHERE: &str = "nats://127.0.0.1:1";

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(packaging(name)).expect("it is there")
}

/// The documents of a YAML text, as Debian's python3-yaml reads them.
fn documents(yaml: &str) -> Vec<Value> {
    let script =
        "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.argv[1])), sys.stdout)";
    let python = Command::new("/usr/bin/python3").args(["-c", script, yaml]).output();
    let python = python.expect("python can be started");
    assert!(python.status.success(), "{}", stderr(&python));
    serde_json::from_str(&stdout(&python)).expect("it is JSON")
}

/// Whether Python reads YAML here.
fn has_yaml() -> bool {
    let python = Command::new("/usr/bin/python3").args(["-c", "import yaml"]).output();
    let has = python.is_ok_and(|python| python.status.success());
    if !has {
        goodput_testing::skip("python3-yaml");
    }
    has
}

/// The texts of an array.
fn texts(array: &Value) -> Vec<String> {
    let texts = array.as_array().unwrap_or_else(|| panic!("{array} is a list"));
    texts.iter().map(|text| text.as_str().expect("it is a text").to_owned()).collect()
}

/// A mesh with its keys, where containers have `/mesh` and `/keys`.
struct Prepared {
    home: Home,
}

impl Prepared {
    fn new(mesh: &str) -> Self {
        let home = Home::new();
        let file = home.file("mesh.toml", mesh).display().to_string();
        let keys = home.path().join("keys").display().to_string();
        let made = home.run(&["fleet", "keys", &file, "-o", &keys]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
        Self { home }
    }

    /// Runs a command line of a container, with the keys in this folder.
    fn run(&self, arguments: &[String], keys: &str) {
        let (home, keys) = (self.home.path(), self.home.path().join("keys").join(keys));
        let here = |argument: &String| match argument.strip_prefix("/keys/") {
            Some(key) => keys.join(key).display().to_string(),
            None if argument == "/mesh/mesh.toml" => home.join("mesh.toml").display().to_string(),
            None if argument.ends_with(":9487") => "127.0.0.1:0".into(),
            None => argument.clone(),
        };
        let arguments: Vec<_> = arguments.iter().map(here).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let said = stderr(&self.home.run(&arguments));
        let got_there = format!("can't connect to NATS at {NOWHERE}");
        assert!(said.contains(&got_there), "{arguments:?}: {said}");
    }
}

#[test]
fn the_compose_file_is_one_and_its_command_lines_are_understood() {
    if !has("docker-compose") || !has_yaml() {
        return;
    }
    let compose = packaging("compose/compose.yaml");
    let output = Command::new("docker-compose")
        .args(["--profile", "centre", "--profile", "site", "-f"])
        .arg(compose)
        .arg("config")
        .env("GOODPUT_SITE", "a")
        .env("GOODPUT_NATS", NOWHERE)
        .stdin(Stdio::null())
        .output()
        .expect("docker-compose can be started");
    assert!(output.status.success(), "{}", stderr(&output));
    let prepared = Prepared::new("[site.a]\ntarget = \"a\"\n[site.b]\n");
    let files = documents(&stdout(&output));
    let [file] = &files[..] else { panic!("it is one document") };
    for (service, keys) in [("coordinator", "coordinator.d"), ("agent", "a.site")] {
        let service = &file["services"][service];
        let arguments = texts(&service["command"]);
        prepared.run(&arguments, keys);
        // What ends after a mesh that is tested once must not be started again.
        let ends = arguments.contains(&"run".into()) && !arguments.contains(&"--stay".into());
        assert!(!ends || service["restart"] == "no", "{arguments:?}");
        let volumes = texts(&service["volumes"]);
        let mounted = format!("/keys/{keys}:/keys:ro");
        assert!(volumes.iter().any(|volume| volume.ends_with(&mounted)), "{volumes:?}");
        // The image has no user of its own, and no other place to write.
        assert!(volumes.iter().any(|volume| volume.ends_with(":/state:rw")), "{volumes:?}");
    }
}

#[test]
fn the_bus_of_the_compose_file_takes_its_configuration() {
    if !has("nats-server") {
        return;
    }
    let prepared = Prepared::new("[site.a]\ntarget = \"a\"\n[site.b]\n");
    let folder = prepared.home.path();
    std::fs::copy(folder.join("keys/fleet.conf"), folder.join("fleet.conf")).expect("it was made");
    let file = prepared.home.file("nats.conf", &text("compose/nats.conf"));
    let output = Command::new("nats-server").args(["-t", "-c"]).arg(file).output();
    let output = output.expect("nats-server can be started");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn the_manifest_for_kubernetes_fits_together_and_its_command_lines_are_understood() {
    if !has_yaml() {
        return;
    }
    let objects = documents(&text("kubernetes/goodput-fleet.yaml"));
    let of_kind = |kind: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind);
        found.unwrap_or_else(|| panic!("there is a {kind}"))
    };
    let mesh = of_kind("ConfigMap")["data"]["mesh.toml"].as_str().expect("it has a mesh");
    let sites = Mesh::parse("mesh.toml", mesh).expect("it is a mesh").sites;
    let prepared = Prepared::new(mesh);
    let first = format!("{}.site", sites[0].name);
    for (kind, version, keys) in
        [("DaemonSet", "apps/v1", first.as_str()), ("Deployment", "apps/v1", "coordinator.d")]
    {
        let object = of_kind(kind);
        assert_eq!(object["apiVersion"], version, "{kind}");
        let spec = &object["spec"];
        assert_eq!(
            spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"],
            "{kind}"
        );
        let pod = &spec["template"]["spec"];
        whole(pod);
        let arguments = texts(&pod["containers"][0]["args"]);
        // Whatever ends is started again. What agents must know over restarts stays when their pods go.
        let stays = |one: &String| one == "agent" || one == "--stay";
        assert!(arguments.iter().any(stays), "{kind}: {arguments:?}");
        let state = pod["volumes"]
            .as_array()
            .and_then(|all| all.iter().find(|volume| volume["name"] == "state"));
        let of_node = state.is_some_and(|state| state["hostPath"]["path"].is_string());
        assert_eq!(of_node, kind == "DaemonSet", "{kind}: {state:?}");
        let expanded = arguments.iter().map(|one| match one.as_str() {
            "$(NATS)" => NOWHERE.into(),
            "$(SITE)" => sites[0].name.clone(),
            other => other.into(),
        });
        prepared.run(&expanded.collect::<Vec<_>>(), keys);
    }
    let namespace = &of_kind("Namespace")["metadata"]["name"];
    for object in objects.iter().filter(|object| object["kind"] != "Namespace") {
        assert_eq!(object["metadata"]["namespace"], *namespace, "{}", object["kind"]);
    }
}

/// Whatever a pod's containers mount and name is there, and none of them may do more than it needs.
fn whole(pod: &Value) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let names =
        |all: &Value| -> Vec<Value> { list(all).iter().map(|one| one["name"].clone()).collect() };
    let volumes = names(&pod["volumes"]);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    for container in [list(&pod["initContainers"]), list(&pod["containers"])].concat() {
        let name = &container["name"];
        assert!(container["image"].is_string(), "{name}");
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(texts(&container["securityContext"]["capabilities"]["drop"]), ["ALL"], "{name}");
        for mount in names(&container["volumeMounts"]) {
            assert!(volumes.contains(&mount), "{name}: {mount}");
        }
        let known = names(&container["env"]);
        let words = [list(&container["command"]), list(&container["args"])].concat();
        for word in words.iter().filter_map(Value::as_str) {
            for (_, rest) in word.match_indices("$(").map(|(at, _)| word.split_at(at + 2)) {
                let variable = rest.split(')').next().unwrap_or_default();
                assert!(known.contains(&variable.into()), "{name}: {variable}");
            }
        }
    }
}

/// What a file has that what kubectl made of it does not: fields that Kubernetes does not know.
fn lost(at: &str, file: &Value, read: &Value) -> Vec<String> {
    let below = |name: &str, one: &Value| lost(&format!("{at}/{name}"), one, &read[name]);
    match file {
        Value::Object(fields) => fields.iter().flat_map(|(name, one)| below(name, one)).collect(),
        Value::Array(all) => {
            let each = all.iter().enumerate();
            each.flat_map(|(number, one)| lost(&format!("{at}/{number}"), one, &read[number]))
                .collect()
        }
        one if one == read => Vec::new(),
        _ => vec![at.into()],
    }
}

/// The object as kubectl reads it, by the types of Kubernetes, and writes it again; an error, if it can't. No cluster is asked.
fn by_kubectl(home: &Home, object: &Value) -> Result<Value, String> {
    let file = home.file("object.json", &object.to_string());
    let output = Command::new("kubectl")
        .args(["set", "env", "--local", "-o", "json", "READ=yes", "-f"])
        .arg(file)
        .env("HOME", home.path())
        .env("KUBECONFIG", "/dev/null")
        .stdin(Stdio::null())
        .output()
        .expect("kubectl can be started");
    match output.status.success() {
        true => Ok(serde_json::from_str(&stdout(&output)).expect("it is JSON")),
        false => Err(stderr(&output)),
    }
}

/// Of what has no pods, kubectl alone knows no types: these are few fields.
fn is_plain(object: &Value) -> bool {
    let has_only = |value: &Value, names: &[&str]| {
        value.as_object().is_some_and(|of| of.keys().all(|name| names.contains(&&**name)))
    };
    let data = object["data"].as_object().into_iter().flatten();
    has_only(object, &["apiVersion", "kind", "metadata", "data"])
        && has_only(&object["metadata"], &["name", "namespace"])
        && object["apiVersion"] == "v1"
        && data.into_iter().all(|(_, value)| value.is_string())
}

#[test]
fn kubectl_knows_each_field_of_the_manifest() {
    if !has_yaml() || !has("kubectl") {
        return;
    }
    let home = Home::new();
    let mut pods = 0;
    for object in documents(&text("kubernetes/goodput-fleet.yaml")) {
        if object["spec"].is_null() {
            assert!(is_plain(&object), "{object}");
            continue;
        }
        pods += 1;
        let read = by_kubectl(&home, &object).expect("kubectl reads it");
        assert_eq!(lost("", &object, &read), [""; 0]);
        // So that this test is one.
        let mut misspelt = object.clone();
        misspelt["spec"]["template"]["spec"]["hostNetwerk"] = true.into();
        let read = by_kubectl(&home, &misspelt).expect("kubectl drops it");
        assert_eq!(lost("", &misspelt, &read), ["/spec/template/spec/hostNetwerk"]);
        let mut wrong = object;
        wrong["spec"]["template"]["spec"]["containers"][0]["args"] = "fleet".into();
        assert!(by_kubectl(&home, &wrong).is_err());
    }
    assert_eq!(pods, 2);
}
