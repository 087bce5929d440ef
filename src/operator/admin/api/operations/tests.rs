//! Writes the OpenAPI document from the rows, and compares its schemas with what serde writes.
//!
//! Promise (Storage and operation): Every text and list of a record has one limit in commands, the admin API, the console and
//! imports. Also in `src/operator/manage/record_fields.rs`.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    base::{clock::UnixTime, secret::Secret, text::longest},
    oauth::Deviation,
    operator::{
        manage::{CONSUMER_FIELDS, FieldKind, RecordField, USER_FIELDS, view},
        reasons,
    },
    records::values::record::{Consumer, Dialect},
    telemetry::calls::{
        facts::SenderProof,
        rejections::{KeptCall, ReasonCount},
    },
};

/// `paths`, and the properties of consumers and users that are rows, are written from the tables; the rest of the file is
/// edited by hand. `COUNTERSIGN_WRITE_EXAMPLE=1 cargo test openapi_document` writes it again.
#[test]
fn the_openapi_document_says_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/operator/admin/api/openapi.json");
    let read = || fs::read_to_string(&path).unwrap();
    let mut document: Value = serde_json::from_str(&read()).unwrap();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document["paths"] = paths(&document["components"]["parameters"]);
    let schemas = &mut document["components"]["schemas"];
    for (names, fields) in [
        (
            ["Consumer", "IssuedConsumer", "NewConsumer", "ConsumerPatch"].as_slice(),
            CONSUMER_FIELDS,
        ),
        (&["User", "NewUser", "UserPatch"], USER_FIELDS),
    ] {
        for name in names {
            describe(&mut schemas[name], fields);
        }
        // Words that are chosen have no length.
        for field in fields {
            let schema = schemas.get_mut(field.schema).unwrap();
            if schema.get("enum").is_none() {
                schema["maxLength"] = field.longest.into();
            }
        }
    }
    for (name, longest) in [
        ("ConsumerKey", longest::NAME),
        ("UserId", longest::NAME),
        ("NewConsumer/properties/secret", longest::SECRET),
        ("Rotation/properties/secret", longest::SECRET),
        ("NewUser/properties/password", longest::PASSWORD),
        ("NewPassword/properties/password", longest::PASSWORD),
    ] {
        let schema = schemas.pointer_mut(&format!("/{name}"));
        schema.unwrap_or_else(|| panic!("no schema {name}"))["maxLength"] = longest.into();
    }
    schemas["NewToken"]["properties"]["permissions"]["maxItems"] = longest::ITEMS.into();
    let text = format!("{document:#}\n");
    if std::env::var_os("COUNTERSIGN_WRITE_EXAMPLE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(read(), text);
}

/// Writes the properties that are rows. A schema that is closed is one of a request.
fn describe(schema: &mut Value, fields: &[RecordField]) {
    let is_request = schema.get("additionalProperties").is_some();
    for field in fields {
        let is_file = matches!(field.kind, FieldKind::File);
        // Responses say only whether there is one.
        if is_request || !is_file {
            schema["properties"][field.name] = property(field, is_request);
            let name = json!(field.name);
            let required = schema.get_mut("required").and_then(Value::as_array_mut);
            if let Some(required) = required.filter(|names| !is_request && !names.contains(&name)) {
                required.push(name);
            }
        }
    }
}

fn property(field: &RecordField, is_request: bool) -> Value {
    // The schemas of these texts are stricter than the checks.
    let text = match field.schema {
        "ShownText" | "Callback" | "WebPage" | "Contact" | "Network" | "RsaPublicKey"
            if !is_request =>
        {
            json!({ "type": "string" })
        }
        name => reference("schemas", name),
    };
    let mut property = match field.kind {
        FieldKind::List(_) if is_request => {
            json!({ "type": "array", "items": text, "maxItems": longest::ITEMS })
        }
        FieldKind::List(_) => json!({ "type": "array", "items": text }),
        FieldKind::Flag => json!({ "type": "boolean" }),
        _ => text,
    };
    // In a request, null gives the value of a new record. A response always has a dialect.
    let is_absent = matches!(
        field.kind,
        FieldKind::Text | FieldKind::File | FieldKind::Choice(_)
    );
    if !field.is_needed && (is_request || is_absent && field.name != "dialect") {
        property = match property.get("type") {
            Some(name) => {
                let both = json!([name, "null"]);
                property["type"] = both;
                property
            }
            None => json!({ "oneOf": [{ "type": "null" }, property] }),
        };
    }
    property["description"] = format!("{}.", field.help).into();
    property
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn paths(parameters: &Value) -> Value {
    let mut paths = Map::new();
    for operation in &OPERATIONS {
        let path =
            paths
                .entry(operation.path)
                .or_insert_with(|| match operation.path.split_once('{') {
                    Some((_, rest)) => {
                        let name = rest.split('}').next().unwrap();
                        json!({ "parameters": [reference("parameters", name)] })
                    }
                    None => json!({}),
                });
        path[operation.method.as_str().to_lowercase()] = described(operation, parameters);
    }
    paths.into()
}

fn described(operation: &ApiOperation, known: &Value) -> Value {
    let tag = operation
        .path
        .split('/')
        .nth(2)
        .unwrap()
        .trim_end_matches(".json");
    let parameters: Vec<Value> = match operation.id {
        // They cannot all be left out: the members of one object.
        "revokeTokens" => {
            let members = known["which"]["schema"]["properties"].as_object().unwrap();
            assert!(members.keys().eq(operation.query));
            vec![reference("parameters", "which")]
        }
        _ => {
            let is_list = operation.path.ends_with(tag);
            let specific = |name: &&str| {
                Some(format!("{tag}.{name}")).filter(|it| is_list && known.get(it).is_some())
            };
            let name = |name: &&str| specific(name).unwrap_or_else(|| (*name).to_owned());
            operation
                .query
                .iter()
                .map(|it| reference("parameters", &name(it)))
                .collect()
        }
    };
    let (status, shown) = operation.success;
    let mut success = json!({ "description": operation.summary });
    if let Some(shown) = shown {
        success["content"] =
            json!({ "application/json": { "schema": reference("schemas", shown) } });
    }
    let mut responses = Map::from_iter([(status.to_string(), success)]);
    let of_body: &[u16] = operation.body.map_or(&[], |_| &[408, 413, 415]);
    let failures = [
        &[401, 403, 421, 422, 429, 500, 503],
        operation.failures,
        of_body,
    ];
    for status in failures.concat() {
        responses.insert(
            status.to_string(),
            reference("responses", &status.to_string()),
        );
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [tag],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = operation.body {
        let kind = match operation.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let content = json!({ kind: { "schema": reference("schemas", body) } });
        described["requestBody"] =
            json!({ "required": !OPTIONAL.contains(&body), "content": content });
    }
    described
}

#[test]
fn schemas_name_the_members_that_serde_writes() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let schemas = &document["components"]["schemas"];
    let deviations = Deviation::ALL.iter().map(|it| it.as_str());
    assert_eq!(schemas["Deviation"]["enum"], deviations.collect::<Value>());
    let proofs = <SenderProof as strum::VariantArray>::VARIANTS
        .iter()
        .map(|it| json!(it));
    assert_eq!(schemas["Proof"]["enum"], proofs.collect::<Value>());
    let consumer = view::consumer(&Consumer::for_tests("c"), Dialect::default());
    let mut consumer = view::with_uses(consumer, std::iter::empty());
    let mut issued = view::with_secret(consumer.clone(), "secret", &Secret::from("s"));
    consumer.insert("calls_in_day".to_owned(), Value::Null);
    issued.insert("secret_base64".to_owned(), Value::Null);
    for (name, written) in [
        (
            "Consumer",
            json!(view::with_lookup(consumer, Some(UnixTime(0)))),
        ),
        ("IssuedConsumer", json!(issued)),
        ("Rejection", json!(KeptCall::default())),
        (
            "RejectionSummary",
            reasons::summary(&ReasonCount::new(&Arc::default()), None, 0, UnixTime(0)),
        ),
    ] {
        let sorted = |members: &Value| {
            let members = members.as_object().unwrap();
            let mut names = Vec::from_iter(members.keys().cloned());
            names.sort();
            names
        };
        assert_eq!(
            sorted(&schemas[name]["properties"]),
            sorted(&written),
            "{name}"
        );
    }
}
