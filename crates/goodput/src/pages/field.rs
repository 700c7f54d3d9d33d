//! The meaning of a record's fields, from the schema of the record's types.

use std::sync::LazyLock;

use serde_json::{Map, Value};

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| schemars::schema_for!(goodput_model::Record).to_value());

/// Every field at every place of a record.
static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let mut fields = Vec::new();
    collect(&SCHEMA, "Record", "", &mut Vec::new(), &mut fields);
    // The shortest path stands for a field that has several.
    fields.sort_by_key(|field| field.path.matches('.').count());
    fields
});

/// How many more places of a field its page names.
const MAX_OTHER_PLACES: usize = 4;

/// What stands in a path for the names in a map.
const ANY_NAME: &str = "*";

/// A field of a record.
struct Field {
    /// Where it is: `verdict.limit`. Lists add nothing to a path.
    path: String,
    /// The type that it belongs to: `Verdict`.
    owner: &'static str,
    schema: &'static Value,
}

impl Field {
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    /// Whether `wanted` names it: by its path, by the end of the path, or as `TYPE.FIELD`.
    fn is_named(&self, wanted: &[&str]) -> bool {
        let path: Vec<_> = self.path.split('.').collect();
        let is_same = |(part, wanted): (&&str, &&str)| part == wanted || *part == ANY_NAME;
        let end = path.len().checked_sub(wanted.len());
        let is_end = |from: usize| path[from..].iter().zip(wanted).all(is_same);
        end.is_some_and(is_end) || *wanted == [self.owner, self.name()]
    }

    /// The first paragraph of what it means, in one line.
    fn summary(&self) -> String {
        let first = description(self.schema).split("\n\n").next().unwrap_or_default();
        first.replace('\n', " ")
    }
}

/// The paths of all fields, and their names alone.
pub fn names() -> Vec<&'static str> {
    FIELDS.iter().flat_map(|field| [field.path.as_str(), field.name()]).collect()
}

/// The page of the field with this path (`verdict.limit`), or with this name if it is the only one. If there are
/// several, a list of them.
pub fn find(name: &str) -> Vec<String> {
    let wanted = parts(name);
    if wanted.is_empty() {
        return Vec::new();
    }
    let whole = wanted.join(".");
    let named: Vec<_> = FIELDS.iter().filter(|field| field.is_named(&wanted)).collect();
    let exact = named.iter().copied().find(|field| field.path == whole);
    let Some(field) = exact.or(named.first().copied()) else { return Vec::new() };
    let is_same = |other: &&&Field| std::ptr::eq(other.schema, field.schema);
    if exact.is_some() || named.iter().all(|other| is_same(&other)) {
        let places = FIELDS.iter().collect::<Vec<_>>();
        let others = places.iter().filter(is_same).filter(|other| other.path != field.path);
        return vec![page(field, &others.map(|other| other.path.as_str()).collect::<Vec<_>>())];
    }
    vec![list(&whole, &named)]
}

/// The parts of a name as typed, also as jq and JSON paths have it: `.findings[0].rule`.
fn parts(name: &str) -> Vec<&str> {
    let parts = name.split(['.', '[', ']']).filter(|part| !part.is_empty());
    parts.filter(|part| part.parse::<u64>().is_err()).collect()
}

/// Adds the fields below `schema`, whose values stand at `path`. `open` has the types around it, because some contain
/// themselves.
fn collect(
    schema: &'static Value,
    owner: &'static str,
    path: &str,
    open: &mut Vec<&'static str>,
    fields: &mut Vec<Field>,
) {
    if let Some(name) = reference(schema) {
        if !open.contains(&name) && name != "Missing" {
            open.push(name);
            collect(&SCHEMA["$defs"][name], name, path, open, fields);
            open.pop();
        }
        return;
    }
    let variants = variants(schema).into_iter().flatten();
    for inner in variants.chain(schema.get("items")) {
        collect(inner, owner, path, open, fields);
    }
    let below = |name: &str| if path.is_empty() { name.into() } else { format!("{path}.{name}") };
    if let Some(values) = schema.get("additionalProperties") {
        collect(values, owner, &below(ANY_NAME), open, fields);
    }
    for (name, schema) in properties(schema).into_iter().flatten() {
        fields.push(Field { path: below(name), owner, schema });
        collect(schema, owner, &below(name), open, fields);
    }
}

/// The name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

fn variants(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or(schema.get("oneOf"))?.as_array()
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn description(schema: &Value) -> &str {
    let text = schema.get("description").and_then(Value::as_str);
    text.unwrap_or("There is no more documentation.")
}

fn page(field: &Field, others: &[&str]) -> String {
    let Field { path, schema, .. } = field;
    let kind = kind(&SCHEMA, schema);
    let mut page = format!("\n## `{path}`\n\n{}\n\n- type: {kind}\n", description(schema));
    let below: Vec<_> = FIELDS.iter().filter(|other| is_right_below(&other.path, path)).collect();
    if !below.is_empty() {
        let names: Vec<_> = below.iter().map(|field| format!("`{}`", field.name())).collect();
        page += &format!("- fields: {}\n", names.join(", "));
    }
    let shown = others.iter().take(MAX_OTHER_PLACES).map(|path| format!("`{path}`"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match others.len().saturating_sub(MAX_OTHER_PLACES) {
        _ if others.is_empty() => {}
        0 => page += &format!("- also at: {shown}\n"),
        more => page += &format!("- also at: {shown} and {more} more places\n"),
    }
    page
}

fn is_right_below(path: &str, parent: &str) -> bool {
    let rest = path.strip_prefix(parent).and_then(|rest| rest.strip_prefix('.'));
    rest.is_some_and(|name| !name.contains('.'))
}

/// The fields of different types that share a name.
fn list(name: &str, fields: &[&Field]) -> String {
    let mut page = format!("\n## `{name}`\n\nSeveral fields of a record have this name:\n\n");
    let mut seen: Vec<&Value> = Vec::new();
    for field in fields {
        if !seen.iter().any(|other| std::ptr::eq(*other, field.schema)) {
            seen.push(field.schema);
            page += &format!("- `{}`: {}\n", field.path, field.summary());
        }
    }
    page
}

/// The JSON type, or the name of the type whose fields have pages of their own.
fn kind(root: &Value, schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        // `Known` is generic, and its instances have numbered names.
        let target = &root["$defs"][name];
        return match plain_kind(target) {
            _ if name.starts_with("Known") => known_kind(root, target),
            Some(plain) => plain,
            None => name.into(),
        };
    }
    match (schema.get("type"), schema.get("items"), variants(schema)) {
        (Some(Value::String(array)), Some(items), _) if array == "array" => {
            format!("list of {}", kind(root, items))
        }
        (Some(Value::String(one)), ..) => one.clone(),
        (Some(Value::Array(several)), ..) => {
            several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        (_, _, Some(several)) => {
            several.iter().map(|one| kind(root, one)).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".into(),
    }
}

/// The kind of a type without fields: a number with a unit, or one of several words.
fn plain_kind(schema: &Value) -> Option<String> {
    let word = |variant: &Value| Some(format!("`{}`", variant.get("const")?.as_str()?));
    match (variants(schema), schema.get("enum"), schema.get("type")) {
        (Some(variants), ..) => {
            let words: Option<Vec<_>> = variants.iter().map(word).collect();
            Some(format!("one of {}", words?.join(", ")))
        }
        (_, Some(Value::Array(words)), _) => {
            let words = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"));
            Some(format!("one of {}", words.collect::<Vec<_>>().join(", ")))
        }
        (_, _, Some(Value::String(one))) if one != "object" => Some(one.clone()),
        _ => None,
    }
}

/// For a value that may be missing: its type when it is present.
fn known_kind(root: &Value, known: &Value) -> String {
    let is_missing =
        |variant: &&Value| variant.get("$ref").is_some_and(|it| it == "#/$defs/Missing");
    let there = variants(known).into_iter().flatten().find(|variant| !is_missing(variant));
    let there = there.map_or_else(|| "any".into(), |variant| kind(root, variant));
    format!("{there}, or an object whose `missing` says why there is no value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> String {
        let [page] = &find(name)[..] else { panic!("{name} has no page of its own") };
        page.clone()
    }

    #[test]
    fn a_field_is_found_by_its_path() {
        assert!(one("verdict.limit").contains("## `verdict.limit`"));
        assert!(one("plan.mover").contains("goodput list movers"));
        assert!(one("result.goodput_bits_per_s").contains("- type: number"));
        assert!(one("plan.transport").contains("- type: one of `tcp`, `udp`"));
        assert!(one(".findings[0].rule").contains("## `findings.rule`"));
        assert!(one("plan").contains("`mover`, "), "{}", one("plan"));
    }

    #[test]
    fn a_field_is_found_by_its_type_and_name() {
        let doubts = one("Record.doubts");
        assert!(doubts.contains("list of string") && doubts.contains("Doubts"), "{doubts}");
        assert!(find("no_such_field").is_empty() && find("verdict.no_such_field").is_empty());
        assert!(find("").is_empty());
    }

    #[test]
    fn a_name_that_one_field_has_is_enough_and_otherwise_all_are_listed() {
        assert!(one("receive_mover").contains("## `plan.receive_mover`"));
        let several = one("limit");
        assert!(several.contains("- `verdict.limit`: Id of"), "{several}");
        assert!(!several.contains("verdict_reverse"), "the same field elsewhere: {several}");
    }
}
