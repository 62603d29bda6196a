//! JSON Schemas for models, from the types that receive the arguments.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Flat (no references: some providers take none) and without what says nothing to a model.
pub(crate) fn of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    tidy(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}

/// Titles repeat the Rust type's name, formats its width; an optional value is left out, not null.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(tidy);
        }
        return;
    };
    object.shift_remove("title");
    object.shift_remove("format");
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|t| t != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.shift_remove("default");
    }
    for (key, value) in object.iter_mut() {
        if key == "properties" {
            // A property may be called "title": descend past the names.
            value.as_object_mut().into_iter().flat_map(|p| p.values_mut()).for_each(tidy);
        } else {
            tidy(value);
        }
    }
}
