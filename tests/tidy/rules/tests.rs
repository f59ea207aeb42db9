//! Each rule on text that keeps it and on text that breaks it: a rule that cannot fail is none.

use super::*;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.into(), text: text.into() }
}

/// How often the rule finds the text broken, as a file of a library.
fn count(rule: fn(&SourceFile) -> Vec<String>, text: &str) -> usize {
    rule(&file("runtime/src/link.rs", text)).len()
}

#[test]
fn top_level_reports_what_is_missing_and_what_is_too_much() {
    let names = |list: &[&str]| list.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let expected = ["Cargo.toml", "apps"];
    assert!(top_level(&names(&["apps", "Cargo.toml", ".git", "target"]), &expected).is_empty());
    assert_eq!(top_level(&names(&["apps", "notes.txt"]), &expected).len(), 2);
}

#[test]
fn arrows_report_a_new_dependency_but_not_one_for_tests() {
    let allowed: BTreeMap<&str, &[&str]> = [("low", &[][..]), ("high", &["low"][..])].into();
    let metadata = |low_kind: &str, low_needs: &str| -> serde_json::Value {
        serde_json::json!({"packages": [
            {"name": "metachare-low", "dependencies": [
                {"name": "serde", "kind": null},
                {"name": low_needs, "kind": if low_kind == "normal" { None } else { Some(low_kind) }},
            ]},
            {"name": "metachare-high", "dependencies": [{"name": "metachare-low", "kind": null}]},
        ]})
    };
    assert!(arrows(&metadata("normal", "bytes"), &allowed).is_empty());
    assert!(arrows(&metadata("dev", "metachare-high"), &allowed).is_empty());
    assert_eq!(arrows(&metadata("normal", "metachare-high"), &allowed).len(), 1);
    assert_eq!(arrows(&metadata("build", "metachare-high"), &allowed).len(), 1);
}

#[test]
fn arrows_report_unknown_and_missing_packages() {
    let allowed: BTreeMap<&str, &[&str]> = [("low", &[][..])].into();
    let metadata = serde_json::json!({"packages": [{"name": "metachare-new", "dependencies": []}]});
    assert_eq!(arrows(&metadata, &allowed).len(), 2);
    assert_eq!(arrows(&serde_json::Value::Null, &allowed).len(), 1);
}

#[test]
fn sans_io_reports_every_way_out() {
    for text in [
        "use tokio::sync::mpsc;",
        "use {quinn::Connection, std::fmt};",
        "use std::{fmt, net::{IpAddr, UdpSocket as S}};",
        "fn f() { std::thread::sleep(d) }",
        "use std::thread;",
        "let t = Instant::now();",
        "let t = std::time::Instant::now();",
        "use std::time::SystemTime;",
        "let t = SystemTime::UNIX_EPOCH;",
    ] {
        assert!(count(sans_io, text) >= 1, "{text}");
    }
}

#[test]
fn sans_io_lets_words_and_given_times_pass() {
    let text = "//! Neither tokio::net nor quinn.\nuse std::time::{Duration, Instant};\n\
                fn f(now: Instant) { log(\"std::net::x\"); thread::local(); /* Instant::now() */ }";
    assert_eq!(count(sans_io, text), 0);
}

#[test]
fn the_protocol_may_not_know_its_carriers() {
    assert_eq!(count(proto_stands_alone, "use crate::{ids::PeId, transport::Link};"), 1);
    assert_eq!(count(proto_stands_alone, "crate::pe::wake();"), 1);
    assert_eq!(count(proto_stands_alone, "use crate::{codec::WIRE_VERSION, envelope, class::Class};"), 2);
    assert_eq!(
        count(proto_stands_alone, "use crate::ids::NodeId; use super::tree; crate::proto::sim::x();"),
        0
    );
}

#[test]
fn modules_that_import_each_other_are_reported() {
    let circles = |texts: &[(&str, &str)], permitted: &[&[&str]]| {
        let files: Vec<SourceFile> =
            texts.iter().map(|(path, text)| file(&format!("p/src/{path}"), text)).collect();
        circles(&files, "p/src/", permitted).len()
    };
    let two = [("a.rs", "use crate::b::B;"), ("b.rs", "use super::a;")];
    assert_eq!(circles(&two, &[]), 1);
    assert_eq!(circles(&two, &[&["a", "b"]]), 0);
    assert_eq!(circles(&two, &[&["a"], &["b"]]), 1);
    let by_a_third = [("a.rs", "crate::b::f();"), ("b/mod.rs", "use c::D;"), ("b/c.rs", "use crate::a::A;")];
    assert_eq!(circles(&by_a_third, &[]), 3);
    assert_eq!(circles(&by_a_third, &[&["a", "b"]]), 0);
    let down =
        [("a.rs", "use crate::b::B; use std::a;"), ("b.rs", "#[cfg(test)]\nmod t { use crate::a::A; }")];
    assert_eq!(circles(&down, &[]), 0);
    let in_tests = [("a.rs", "use crate::b::B;"), ("b/tests.rs", "use crate::a::A;"), ("b.rs", "")];
    assert_eq!(circles(&in_tests, &[]), 0);
}

#[test]
fn the_window_sees_the_monitor_only() {
    assert_eq!(count(only_monitor, "use runtime::monitor::{wire::Snapshot, client};"), 0);
    assert_eq!(count(only_monitor, "use runtime::{monitor::wire, ids::NodeId};"), 1);
    assert_eq!(count(only_monitor, "let x = runtime::node::start();"), 1);
    assert_eq!(count(only_monitor, "use runtime;"), 1);
}

#[test]
fn a_core_without_its_lint_is_reported() {
    assert_eq!(count(lint_gate, "//! x\n#![deny(clippy::disallowed_methods)]\n"), 0);
    assert_eq!(count(lint_gate, "//! #![deny(clippy::disallowed_methods)]\n"), 1);
}

#[test]
fn a_file_must_say_what_it_is() {
    assert_eq!(count(module_docs, "//! A link.\n"), 0);
    assert_eq!(count(module_docs, "use std::fmt;\n"), 1);
    assert_eq!(count(module_docs, ""), 1);
    let long = "fn f() {}\n".repeat(61);
    assert!(module_docs(&file("apps/src/main.rs", &long[10..])).is_empty());
    assert_eq!(module_docs(&file("apps/src/main.rs", &long)).len(), 1);
}

#[test]
fn a_file_must_not_grow_for_ever() {
    let own = |lines: usize| "fn f() {}\n".repeat(lines);
    let tests = |lines: usize| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", own(lines));
    assert_eq!(count(length, &own(600)), 0);
    assert_eq!(count(length, &own(601)), 1);
    assert_eq!(count(length, &(own(590) + &tests(190))), 0);
    assert_eq!(count(length, &(own(590) + &tests(220))), 1);
    assert!(length(&file("runtime/src/link/tests.rs", &own(800))).is_empty());
    assert_eq!(length(&file("runtime/src/link/tests.rs", &own(801))).len(), 1);
}

#[test]
fn unwrap_is_for_tests() {
    assert_eq!(count(no_unwrap, "fn f() { x.unwrap(); y\n    .unwrap() }"), 2);
    assert_eq!(count(no_unwrap, "// x.unwrap()\nfn f() { x.unwrap_or(\".unwrap()\") }"), 0);
    assert_eq!(count(no_unwrap, "#[cfg(test)]\nmod tests { fn f() { x.unwrap() } }"), 0);
    assert_eq!(count(no_unwrap, "#[cfg(test)]\nmod tests { fn f() {} }\nfn g() { x.unwrap() }"), 1);
    assert!(no_unwrap(&file("chares/tests/order.rs", "fn f() { x.unwrap() }")).is_empty());
}

#[test]
fn leftovers_are_reported_even_in_comments() {
    assert_eq!(count(no_leftovers, concat!("// TO", "DO: later\nlet x = 1; // FIX", "ME\n")), 2);
    assert_eq!(count(no_leftovers, "// done\n"), 0);
}

#[test]
fn modules_are_named_for_what_they_do() {
    assert_eq!(count(module_names, "pub mod util;\nmod link;\nmod helpers {}"), 2);
    assert_eq!(module_names(&file("chares/src/common/order.rs", "")).len(), 1);
    assert_eq!(module_names(&file("chares/src/misc.rs", "")).len(), 1);
    assert_eq!(count(module_names, "// mod util;\nlet common = util;"), 0);
}

#[test]
fn types_bear_our_words() {
    assert_eq!(count(type_names, "pub struct LinkActor;\nenum Worker {}\ntrait EntryHandler {}"), 3);
    assert_eq!(count(type_names, "struct Factory; struct ActorLike; fn worker(x: WorkerGuard) {}"), 0);
}

#[test]
fn state_that_does_not_travel_is_found() {
    let text = "struct A {\n    #[serde(skip)]\n    began: Option<Instant>,\n}";
    let findings = |path: &str| state_travels(&file(path, text)).len();
    assert_eq!(findings("apps/src/gauss/share.rs"), 1);
    assert_eq!((findings("apps/src/gauss/arguments.rs"), findings("runtime/src/frame.rs")), (0, 0));
    assert!(state_travels(&file("apps/src/gauss/share.rs", "#[serde(bound = \"T: Real\")]")).is_empty());
}

#[test]
fn what_chares_of_a_node_share_is_found() {
    let chare = "impl Chare for Rows {}\n";
    let findings = |path: &str, text: &str| chares_share_nothing(&file(path, text)).len();
    let counter = format!("static COUNT: AtomicU64 = AtomicU64::new(0);\n{chare}");
    let cells = format!("{chare}thread_local! {{ static SEEN: Cell<u32> = Cell::new(0); }}");
    assert_eq!(
        (findings("apps/src/mis/rows.rs", &counter), findings("apps/src/mis/rows.rs", &cells)),
        (1, 2)
    );
    assert_eq!(
        (
            findings("runtime/src/pe/rows.rs", &counter),
            findings("apps/src/mis/count.rs", "static A: u8 = 0;")
        ),
        (0, 0)
    );
    assert_eq!(findings("apps/src/mis/rows.rs", &format!("{chare}fn name() -> &'static str {{ \"\" }}")), 0);
}
