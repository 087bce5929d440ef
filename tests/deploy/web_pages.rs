//! The pattern of web pages in the OpenAPI document, as a validator of JSON schemas reads it: it accepts and rejects what the program
//! accepts and rejects.
//!
//! Promise (Admin API): A validator of the OpenAPI document accepts and rejects the same addresses of web pages as the program.

use std::collections::BTreeMap;

use countersign::wire::web_page::web_page;
use proptest::{prelude::*, sample::Index, string::string_regex};
use serde_json::{Value, json};

use super::{read, schema::problems};

fn web_page_schema() -> Value {
    let document: Value =
        serde_json::from_str(&read("src/operator/admin/api/openapi.json")).unwrap();
    document["components"]["schemas"]["WebPage"].clone()
}

/// A change of one character: where, whether one is removed, and which one is inserted.
type Change = (Index, bool, Option<char>);

fn changed(page: &str, changes: &[Change]) -> String {
    let mut characters = Vec::from_iter(page.chars());
    for (place, removes, inserted) in changes {
        let place = place.index(characters.len() + 1);
        if *removes && place < characters.len() {
            characters.remove(place);
        }
        if let Some(inserted) = inserted {
            characters.insert(place, *inserted);
        }
    }
    characters.into_iter().collect()
}

/// Texts that the pattern describes, most of them changed in a few places.
fn texts(pattern: &str) -> impl Strategy<Value = String> + use<> {
    let pattern = pattern
        .strip_prefix('^')
        .and_then(|it| it.strip_suffix('$'));
    let special = Vec::from_iter("%/:?#[]@.-_09aFxnZ \"<|\\\tä。".chars());
    let inserted = prop_oneof![proptest::sample::select(special), any::<char>()];
    let change = (
        any::<Index>(),
        any::<bool>(),
        proptest::option::of(inserted),
    );
    let page = string_regex(pattern.unwrap()).unwrap();
    let changes = proptest::collection::vec(change, 0..4);
    let host = "https?://([0-9a-fx:\\[]{0,6}[.:]){1,9}[0-9a-f\\]]{0,5}(:[0-9]{0,6})?/?";
    prop_oneof![
        3 => (page, changes).prop_map(|(page, changes)| changed(&page, &changes)),
        1 => string_regex(host).unwrap(),
    ]
    // In Python, unlike in JSON schemas, `$` is also before a last line feed.
    .prop_filter("a last line feed", |text| !text.ends_with('\n'))
}

proptest! {
    // A case has many texts, because the validator is started once for each.
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_pattern_of_a_web_page_and_its_check_accept_the_same(
        texts in proptest::collection::vec(texts(web_page_schema()["pattern"].as_str().unwrap()), 1000),
    ) {
        let schema = json!({ "type": "object", "properties": { "website": web_page_schema() } });
        let names = texts.iter().map(|text| {
            let row = toml::Table::from_iter([("website".to_owned(), text.as_str().into())]);
            (text.clone(), row.to_string())
        });
        let mut accepted = 0;
        let found: BTreeMap<String, Vec<String>> = problems(&schema, &names.collect());
        for (text, problems) in &found {
            prop_assert_eq!(problems.is_empty(), web_page(text).is_ok(), "{:?}", text);
            accepted += usize::from(problems.is_empty());
        }
        // Both have something to do, as long as this is not the shortest of failing cases.
        if texts.len() == 1000 {
            prop_assert!(accepted > 100 && found.len() - accepted > 100, "{} of {}", accepted, found.len());
        }
    }
}
