//! The meaning of a record's field, from the schema of the record's types.

use serde_json::{Map, Value};

/// The pages of all fields with this name, of any type in the record. `TYPE.FIELD` names one of them.
pub fn find(name: &str) -> Vec<String> {
    let schema = schemars::schema_for!(goodput_model::Record).to_value();
    let (wanted_type, field) = match name.rsplit_once('.') {
        Some((wanted, field)) => (Some(wanted), field),
        None => (None, name),
    };
    let types = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    let record = std::iter::once(("Record", &schema));
    record
        .chain(types.map(|(name, schema)| (name.as_str(), schema)))
        .filter(|(name, _)| wanted_type.is_none_or(|wanted| wanted == *name))
        .filter_map(|(name, of)| Some(page(&schema, name, field, properties(of)?.get(field)?)))
        .collect()
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn page(root: &Value, owner: &str, field: &str, schema: &Value) -> String {
    let text = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or("There is no more documentation.");
    format!("\n## `{owner}.{field}`\n\n{text}\n\n- type: {}\n", kind(root, schema))
}

/// The JSON type, or the name of the type whose fields have pages of their own.
fn kind(root: &Value, schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        // `Known` is generic, and its instances have numbered names.
        let known = root.pointer(&format!("/$defs/{name}")).filter(|_| name.starts_with("Known"));
        return known.map_or_else(|| name.into(), |known| known_kind(root, known));
    }
    let one_of = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array);
    match (schema.get("type"), schema.get("items"), one_of) {
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

/// For a value that may be missing: its type when it is present.
fn known_kind(root: &Value, known: &Value) -> String {
    let variants = known.get("anyOf").or(known.get("oneOf")).and_then(Value::as_array);
    let is_missing =
        |variant: &&Value| variant.get("$ref").is_some_and(|it| it == "#/$defs/Missing");
    let there = variants.into_iter().flatten().find(|variant| !is_missing(variant));
    let there = there.map_or_else(|| "any".into(), |variant| kind(root, variant));
    format!("{there}, or an object whose `missing` says why there is no value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name_and_by_its_type_and_name() {
        let pages = find("goodput_bits_per_s");
        assert!(pages.len() > 1, "several types have it: {pages:?}");
        let [one] = &find("Record.doubts")[..] else { panic!() };
        assert!(one.contains("list of string") && one.contains("Doubts"), "{one}");
        assert!(find("no_such_field").is_empty());
    }
}
