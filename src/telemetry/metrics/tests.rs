//! `/metrics` as a scraper reads it, by a parser written from the format's description.

use std::{collections::BTreeMap, sync::Arc, thread};

use super::*;

/// The samples by name and labels, as written.
type Samples = BTreeMap<String, f64>;

/// Reads the text format strictly: each sample below the HELP and TYPE of its family, each family once, no sample
/// twice, each histogram with ascending bounds and counts, ending in `+Inf`, equal to its `_count`.
fn parse(text: &str) -> Samples {
    assert!(text.ends_with('\n'));
    let mut samples = Samples::new();
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    let mut family = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split_once(' ').unwrap().0.to_owned();
            let kind = lines.next().unwrap();
            let kind = kind.strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            let earlier = families.insert(name.clone(), kind.to_owned());
            assert_eq!(earlier, None, "{name} twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            family = name;
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
        let rest = name.strip_prefix(family.as_str()).unwrap();
        match families[&family].as_str() {
            "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&rest), "{line}"),
            _ => assert_eq!(rest, "", "{line}"),
        }
        if let Some(labels) = series
            .strip_prefix(name)
            .filter(|labels| !labels.is_empty())
        {
            let labels = labels.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            for label in labels.split(',') {
                let (name, value) = label.split_once('=').unwrap();
                assert!(
                    name.bytes().all(|byte| byte.is_ascii_lowercase()),
                    "{label}"
                );
                let value = value.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
                assert!(!value.contains(['"', '\\', '\n']), "{label}");
            }
        }
        let earlier = samples.insert(series.to_owned(), value.parse().unwrap());
        assert_eq!(earlier, None, "{series} twice");
    }
    for (name, kind) in &families {
        if kind == "histogram" {
            check_histograms(name, text, &samples);
        }
    }
    samples
}

fn check_histograms(name: &str, text: &str, samples: &Samples) {
    // Bounds and counts by the labels before `le`, in the order of the text.
    let mut buckets: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(&format!("{name}_bucket{{")) else {
            continue;
        };
        let (labels, rest) = rest.split_once("le=\"").unwrap();
        let (bound, count) = rest.split_once("\"} ").unwrap();
        let bound = bound.replace("+Inf", "inf").parse().unwrap();
        buckets
            .entry(labels)
            .or_default()
            .push((bound, count.parse().unwrap()));
    }
    assert!(!buckets.is_empty());
    for (labels, buckets) in buckets {
        assert!(
            buckets.is_sorted_by(|low, high| low.0 < high.0 && low.1 <= high.1),
            "{name}"
        );
        let (bound, count) = buckets.last().copied().unwrap();
        assert!(bound.is_infinite());
        let labels = match labels.trim_end_matches(',') {
            "" => String::new(),
            labels => format!("{{{labels}}}"),
        };
        assert_eq!(samples[&format!("{name}_count{labels}")], count);
        assert!(samples.contains_key(&format!("{name}_sum{labels}")));
    }
}

#[test]
fn renders_what_a_scraper_can_read_before_anything_happens() {
    let samples = parse(&Metrics::new(2).render());
    for verdict in Verdict::ALL {
        let series = format!(
            "countersign_requests_total{{verdict=\"{}\"}}",
            verdict.as_str()
        );
        assert_eq!(samples[&series], 0.0);
    }
    assert_eq!(samples["countersign_request_seconds_count"], 0.0);
    assert_eq!(
        samples[&format!(
            "countersign_build_info{{version=\"{}\"}}",
            env!("CARGO_PKG_VERSION")
        )],
        1.0
    );
    assert!(!samples.contains_key("countersign_nonces"));
}

#[test]
fn adds_up_what_the_workers_counted() {
    let metrics = Metrics::new(2);
    thread::scope(|scope| {
        for index in 0..2 {
            let worker = metrics.worker(index);
            scope.spawn(move || {
                for _ in 0..1_000 {
                    worker.request(Verdict::Forwarded);
                    worker.verify_nanoseconds(1_500);
                    worker.upstream_nanoseconds(3_000_000);
                    worker.request_nanoseconds(u64::MAX);
                    worker.clock_skew_seconds(-2);
                    worker.connection_opened();
                }
                worker.observed(Verdict::SignatureInvalid);
                worker.connection_closed();
            });
        }
    });
    metrics.worker(2).request(Verdict::NonceUsed);
    let samples = parse(&metrics.render());
    for (series, value) in [
        ("countersign_requests_total{verdict=\"forwarded\"}", 2_000.0),
        ("countersign_requests_total{verdict=\"nonce_used\"}", 1.0),
        (
            "countersign_observed_total{verdict=\"signature_invalid\"}",
            2.0,
        ),
        ("countersign_verify_seconds_bucket{le=\"0.000001\"}", 0.0),
        (
            "countersign_verify_seconds_bucket{le=\"0.000002\"}",
            2_000.0,
        ),
        ("countersign_verify_seconds_sum", 0.003),
        ("countersign_upstream_seconds_bucket{le=\"0.0025\"}", 0.0),
        ("countersign_upstream_seconds_bucket{le=\"0.005\"}", 2_000.0),
        ("countersign_request_seconds_bucket{le=\"60\"}", 0.0),
        ("countersign_request_seconds_bucket{le=\"+Inf\"}", 2_000.0),
        ("countersign_clock_skew_seconds_bucket{le=\"-5\"}", 0.0),
        ("countersign_clock_skew_seconds_bucket{le=\"-1\"}", 2_000.0),
        ("countersign_clock_skew_seconds_sum", -4_000.0),
        ("countersign_connections", 1_998.0),
    ] {
        assert!(
            (samples[series] - value).abs() < 1e-9,
            "{series}: {}",
            samples[series]
        );
    }
}

#[test]
fn asks_the_services_for_the_rest_at_each_scrape() {
    let metrics = Metrics::new(1);
    let store = Arc::new(StoreMetrics::new(&["consumer", "exchange"]));
    let counted = Arc::clone(&store);
    metrics.watch(Box::new(move |text| {
        text.gauge("countersign_nonces", "Nonces in the window.", 7);
        let name = "countersign_cache_requests_total";
        text.family(name, "counter", "Look-ups in the caches.");
        text.sample(name, &[("cache", "consumer"), ("result", "hit")], 5);
        text.sample(name, &[("cache", "consumer"), ("result", "miss")], 1);
        counted.render(text);
    }));
    store.record("exchange", 2_000_000, false);
    store.record("exchange", 2_000_000, true);
    let samples = parse(&metrics.render());
    for (series, value) in [
        ("countersign_nonces", 7.0),
        (
            "countersign_cache_requests_total{cache=\"consumer\",result=\"hit\"}",
            5.0,
        ),
        (
            "countersign_cache_requests_total{cache=\"consumer\",result=\"miss\"}",
            1.0,
        ),
        (
            "countersign_store_seconds_count{operation=\"exchange\"}",
            2.0,
        ),
        (
            "countersign_store_seconds_bucket{operation=\"exchange\",le=\"0.0025\"}",
            2.0,
        ),
        (
            "countersign_store_seconds_count{operation=\"consumer\"}",
            0.0,
        ),
        (
            "countersign_store_errors_total{operation=\"exchange\"}",
            1.0,
        ),
        (
            "countersign_store_errors_total{operation=\"consumer\"}",
            0.0,
        ),
    ] {
        assert!((samples[series] - value).abs() < 1e-9, "{series}");
    }
}

#[test]
fn survives_counting_from_the_wrong_thread() {
    let metrics = Metrics::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| metrics.worker(9).request(Verdict::Page)));
        }
    });
    metrics.worker(0).connection_closed();
    let samples = parse(&metrics.render());
    let pages = samples["countersign_requests_total{verdict=\"page\"}"];
    assert!((1.0..=4_000.0).contains(&pages), "{pages}");
    assert_eq!(samples["countersign_connections"], 0.0);
}

#[test]
fn keeps_workers_on_cache_lines_of_their_own() {
    assert_eq!(align_of::<WorkerMetrics>(), 128);
    assert_eq!(size_of::<WorkerMetrics>() % 128, 0);
}

#[test]
fn counts_operations_by_class_of_status_and_goes_on_after_a_reload() {
    let metrics = Metrics::new(2);
    let first = metrics.operations(["none", "/a", "/b"].into_iter());
    metrics.show_operations(&first);
    for (worker, operation, status) in [
        (0, 1, 200),
        (1, 1, 204),
        (0, 1, 404),
        (1, 0, 0),
        (0, 2, 302),
        (0, 2, 999),
    ] {
        first[operation].count(worker, status);
    }
    let series = |operation: &str, status: &str| {
        format!(
            "countersign_operation_requests_total{{operation=\"{operation}\",status=\"{status}\"}}"
        )
    };
    let samples = parse(&metrics.render());
    for (operation, status, count) in [
        ("/a", "2xx", 2.0),
        ("/a", "4xx", 1.0),
        ("none", "none", 1.0),
        ("/b", "3xx", 1.0),
    ] {
        assert_eq!(samples[&series(operation, status)], count);
    }
    assert!(!samples.contains_key(&series("/a", "5xx")));

    let second = metrics.operations(["none", "/a", "/c"].into_iter());
    let samples = parse(&metrics.render());
    assert!(
        samples.contains_key(&series("/b", "3xx")),
        "they are not shown yet"
    );
    metrics.show_operations(&second);
    second[1].count(0, 200);
    // A request that began before the reload.
    first[1].count(1, 200);
    let samples = parse(&metrics.render());
    assert_eq!(samples[&series("/a", "2xx")], 4.0);
    assert!(!samples.contains_key(&series("/b", "3xx")), "it is gone");
}

#[test]
fn counts_diagnoses_by_the_word_of_the_mistake() {
    let metrics = Metrics::new(1);
    let last = Mistake::all().last().unwrap();
    metrics.worker(0).diagnosed(last);
    let series = format!(
        "countersign_signature_diagnoses_total{{diagnosis=\"{}\"}}",
        last.word()
    );
    assert_eq!(parse(&metrics.render())[&series], 1.0);
}

#[test]
fn escapes_a_label_of_the_configuration() {
    let mut text = Text::default();
    text.sample("name", &[("operation", "/\"a\\b\n")], 1);
    assert_eq!(text.finish(), "name{operation=\"/\\\"a\\\\b\\n\"} 1\n");
}
