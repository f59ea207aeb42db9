//! The rules of this repository, as functions from text to the list of what breaks them.
//!
//! Each finding is one line: where, what, how to mend. Every rule is tried here on text that breaks it.

use crate::source::{self, Path};
use std::collections::{BTreeMap, BTreeSet};

/// One Rust file, by its path from the root with `/` between the names.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// Whether all of it is built for tests and benchmarks only.
    fn is_test(&self) -> bool {
        self.path.split('/').any(|name| matches!(name, "tests" | "tests.rs" | "benches"))
            || self.text.contains("#![cfg(test)]")
    }

    /// Whether it is the root of a program, test or example, which a few plain lines may suffice for.
    fn is_entry_point(&self) -> bool {
        self.is_test()
            || self.path.ends_with("/main.rs")
            || self.path.contains("/bin/")
            || self.path.contains("/examples/")
    }

    fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// The visible names of the top level must be exactly `expected`, `target` aside.
pub(crate) fn top_level(names: &[String], expected: &[&str]) -> Vec<String> {
    let found: BTreeSet<&str> =
        names.iter().map(String::as_str).filter(|name| !name.starts_with('.') && *name != "target").collect();
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    let missing = expected.difference(&found).map(|name| format!("{name} is missing from the top level"));
    let extra = found
        .difference(&expected)
        .map(|name| format!("{name} does not belong on the top level: move it into one of the folders"));
    missing.chain(extra).collect()
}

/// Dependencies among our packages, from the output of `cargo metadata`, must follow the arrows `allowed`.
///
/// Dependencies for tests alone are free.
pub(crate) fn arrows(metadata: &serde_json::Value, allowed: &BTreeMap<&str, &[&str]>) -> Vec<String> {
    let short =
        |value: &serde_json::Value| value["name"].as_str().unwrap_or_default().replace("metachare-", "");
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let names: BTreeSet<String> = packages.iter().map(short).collect();
    let mut findings = Vec::new();
    for name in allowed.keys().filter(|name| !names.contains(**name)) {
        findings.push(format!("package {name} is missing from the workspace"));
    }
    for package in &packages {
        let from = short(package);
        let Some(targets) = allowed.get(from.as_str()) else {
            findings.push(format!("package {from} has no rule: say in tests/tidy what it may depend on"));
            continue;
        };
        for dependency in list(&package["dependencies"]) {
            let to = short(&dependency);
            if dependency["kind"] != "dev" && names.contains(&to) && !targets.contains(&to.as_str()) {
                findings.push(format!("{from} must not depend on {to}: the arrows are {allowed:?}"));
            }
        }
    }
    findings
}

/// A sans-I/O core is given events and the time: no sockets, threads, clocks or async runtime in it.
pub(crate) fn sans_io(file: &SourceFile) -> Vec<String> {
    let reaches_out = |path: &Path<'_>| {
        let segments = path.segments.as_slice();
        matches!(segments, ["tokio" | "quinn", ..] | ["std", "net" | "thread", ..])
            || segments.contains(&"SystemTime")
            || segments.windows(2).any(|pair| pair == ["Instant", "now"])
    };
    forbidden_paths(
        file,
        reaches_out,
        "a sans-I/O core takes no part in the outer world: hand in what it needs",
    )
}

/// What the protocol layer of the runtime may know: the words that it has in common with what carries it.
const KNOWN_TO_PROTO: [&str; 5] = ["class", "failure", "ids", "proto", "topology"];

/// The protocol layer of the runtime knows nothing of the layers that carry it out.
pub(crate) fn proto_stands_alone(file: &SourceFile) -> Vec<String> {
    let knows_above = |path: &Path<'_>| match path.segments[..] {
        ["crate", module, ..] => !KNOWN_TO_PROTO.contains(&module),
        _ => false,
    };
    forbidden_paths(
        file,
        knows_above,
        "the protocol must not know what carries it: hand it in, or return an action",
    )
}

/// The load window knows the runtime by its monitor only.
pub(crate) fn only_monitor(file: &SourceFile) -> Vec<String> {
    let beyond = |path: &Path<'_>| path.segments[0] == "runtime" && path.segments.get(1) != Some(&"monitor");
    forbidden_paths(file, beyond, "the window may use runtime::monitor only")
}

/// Modules of the package in `folder` that import each other in a circle, besides those that all lie in one of the
/// `permitted` groups.
pub(crate) fn circles(files: &[SourceFile], folder: &str, permitted: &[&[&str]]) -> Vec<String> {
    let own: Vec<&SourceFile> =
        files.iter().filter(|file| file.path.starts_with(folder) && !file.is_test()).collect();
    let known: BTreeSet<String> = own.iter().map(|file| module_of(file, folder)).collect();
    let imports: BTreeMap<String, BTreeSet<String>> = own
        .iter()
        .map(|file| (module_of(file, folder), imports(file, &module_of(file, folder), &known)))
        .collect();
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|from| (from, reached_from(from, &imports))).collect();
    let is_in = |module: &str, group: &str| module == group || module.starts_with(&format!("{group}::"));
    let is_permitted = |pair: [&str; 2]| {
        let is_all_in = |groups: &&[&str]| pair.iter().all(|module| groups.iter().any(|g| is_in(module, g)));
        permitted.iter().any(is_all_in)
    };
    let pairs = reached.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
    pairs
        .filter(|(from, to)| from < to && reached[to].contains(from) && !is_permitted([from, to]))
        .map(|(from, to)| {
            format!("{folder}: `{from}` and `{to}` import each other, if by way of others: part them")
        })
        .collect()
}

/// The path of a module from the root of its package.
fn module_of(file: &SourceFile, folder: &str) -> String {
    let name = file.path.trim_start_matches(folder).trim_end_matches(".rs").trim_end_matches("/mod");
    name.replace('/', "::")
}

/// The modules of its package that a file names outside its tests.
fn imports(file: &SourceFile, module: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let (code, _) = source::without_tests(&source::tokens(&file.text));
    let target = |path: &Path<'_>| {
        let mut at: Vec<&str> = module.split("::").collect();
        let mut rest = path.segments.as_slice();
        match rest.first() {
            Some(&"crate") => (at, rest) = (Vec::new(), &rest[1..]),
            Some(&"self") => rest = &rest[1..],
            _ => {
                while let Some((&"super", behind)) = rest.split_first() {
                    at.pop();
                    rest = behind;
                }
            }
        }
        at.extend(rest);
        // What a path names last is mostly no module.
        let mut prefixes = (1..=at.len()).rev().map(|length| at[..length].join("::"));
        prefixes.find(|prefix| known.contains(prefix)).filter(|found| found != module)
    };
    source::paths(&code).iter().filter_map(target).collect()
}

/// All modules that one imports, and those that these import, and so on.
fn reached_from<'a>(
    from: &'a String,
    imports: &'a BTreeMap<String, BTreeSet<String>>,
) -> BTreeSet<&'a String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        let next = imports.get(module).into_iter().flatten();
        open.extend(next.filter(|module| reached.insert(*module)));
    }
    reached
}

fn forbidden_paths(file: &SourceFile, forbidden: impl Fn(&Path<'_>) -> bool, why: &str) -> Vec<String> {
    source::paths(&source::tokens(&file.text))
        .iter()
        .filter(|path| !path.segments.is_empty() && forbidden(path))
        .map(|path| file.finding(path.line, &format!("`{}`: {why}", path.segments.join("::"))))
        .collect()
}

/// The module that roots a sans-I/O core also asks clippy to watch over it.
pub(crate) fn lint_gate(file: &SourceFile) -> Vec<String> {
    let gate = ["#", "!", "[", "deny", "(", "clippy", "::", "disallowed_methods", ")", "]"];
    let has_gate = source::tokens(&file.text).windows(gate.len()).any(|part| source::begin_with(part, &gate));
    let what = "a sans-I/O core starts with #![deny(clippy::disallowed_methods)]";
    if has_gate { Vec::new() } else { vec![file.finding(1, what)] }
}

/// Files say at their top what they are; a short entry point may do without.
pub(crate) fn module_docs(file: &SourceFile) -> Vec<String> {
    let excused = file.is_entry_point() && file.text.lines().count() <= 60;
    if excused || file.text.starts_with("//!") {
        return Vec::new();
    }
    vec![file.finding(1, "the file does not start with //!: say what it is and why it is here")]
}

/// At most 600 lines without inline tests, 800 with them.
pub(crate) fn length(file: &SourceFile) -> Vec<String> {
    let all = file.text.lines().count();
    let own = if file.is_test() { 0 } else { all - source::without_tests(&source::tokens(&file.text)).1 };
    let mut findings = Vec::new();
    if own > 600 {
        findings.push(file.finding(own, "more than 600 lines without tests: split the file by purpose"));
    }
    if all > 800 {
        findings
            .push(file.finding(all, "more than 800 lines with tests: give the tests a file of their own"));
    }
    findings
}

/// No `.unwrap()` outside tests.
pub(crate) fn no_unwrap(file: &SourceFile) -> Vec<String> {
    if file.is_test() {
        return Vec::new();
    }
    let (tokens, _) = source::without_tests(&source::tokens(&file.text));
    tokens
        .windows(4)
        .filter(|window| source::begin_with(window, &[".", "unwrap", "(", ")"]))
        .map(|window| {
            file.finding(window[1].line, "`.unwrap()`: return the error, or `expect` the invariant")
        })
        .collect()
}

/// No notes about work left over.
pub(crate) fn no_leftovers(file: &SourceFile) -> Vec<String> {
    // In halves, so that this file does not break its own rule.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let lines = (1..).zip(file.text.lines());
    lines
        .filter(|(_, line)| marks.iter().any(|mark| line.contains(mark)))
        .map(|(number, _)| file.finding(number, "a note about work left over: do it, or file an issue"))
        .collect()
}

/// A test that writes a program itself cannot run it while another test of its process starts one, which has the file open, too.
pub(crate) fn programs_are_written_by_the_harness(file: &SourceFile) -> Vec<String> {
    let is_test = file.path.starts_with("tests/") && !file.path.starts_with("tests/harness/");
    // In halves, so that this file does not break its own rule.
    let marks = [concat!("from_", "mode(0o7"), concat!("fs::", "copy(env!"), concat!("fs::", "copy(STENCIL")];
    let lines = (1..).zip(file.text.lines());
    lines
        .filter(|(_, line)| is_test && marks.iter().any(|mark| line.contains(mark)))
        .map(|(number, _)| file.finding(number, "use `write_program` or `copy_program` of the harness"))
        .collect()
}

/// State of chares travels whole: a field that serde skips would be lost whenever its chare moves. Options and results are no
/// state.
pub(crate) fn state_travels(file: &SourceFile) -> Vec<String> {
    let is_state = file.path.starts_with("apps/src/")
        && !["arguments.rs", "results.rs"].iter().any(|name| file.path.ends_with(name));
    let skips = |part: &[source::Token]| {
        source::begin_with(part, &["serde", "(", "skip"])
            || source::begin_with(part, &["serde", "(", "skip_deserializing"])
    };
    source::tokens(&file.text)
        .windows(3)
        .filter(|part| is_state && skips(part))
        .map(|part| {
            file.finding(part[0].line, "a field that does not travel: make it a `Scratch` or a `Stopwatch`")
        })
        .collect()
}

/// What chares share beside messages and the variables of the model would be another thing on each node, and would not travel.
pub(crate) fn chares_share_nothing(file: &SourceFile) -> Vec<String> {
    let (tokens, _) = source::without_tests(&source::tokens(&file.text));
    let has_chares = tokens.windows(2).any(|pair| source::begin_with(pair, &["Chare", "for"]));
    let is_shared = |part: &[source::Token]| {
        source::begin_with(part, &["thread_local", "!"]) || (part[0].text == "static" && part[2].text == ":")
    };
    tokens
        .windows(3)
        .filter(|part| file.path.starts_with("apps/src/") && has_chares && is_shared(part))
        .map(|part| {
            file.finding(part[0].line, "chares share this: make it a field, or a variable of the model")
        })
        .collect()
}

/// No modules or files whose name says nothing.
pub(crate) fn module_names(file: &SourceFile) -> Vec<String> {
    let says_nothing =
        |name: &str| matches!(name, "util" | "utils" | "common" | "helper" | "helpers" | "misc");
    let mend = "says nothing about its content: name it for what it does";
    let in_path = file
        .path
        .split('/')
        .filter(|name| says_nothing(name.trim_end_matches(".rs")))
        .map(|name| file.finding(1, &format!("`{name}` {mend}")));
    let in_code = source::tokens(&file.text)
        .windows(2)
        .filter(|pair| pair[0].text == "mod" && says_nothing(&pair[1].text))
        .map(|pair| file.finding(pair[1].line, &format!("module `{}` {mend}", pair[1].text)))
        .collect::<Vec<_>>();
    in_path.chain(in_code).collect()
}

/// Types bear the project's words: chare, PE, entry method; not those of other models.
pub(crate) fn type_names(file: &SourceFile) -> Vec<String> {
    let foreign = |name: &str| ["Actor", "Worker", "Handler"].iter().any(|suffix| name.ends_with(suffix));
    source::tokens(&file.text)
        .windows(2)
        .filter(|pair| {
            matches!(pair[0].text.as_str(), "struct" | "enum" | "trait" | "type" | "union")
                && foreign(&pair[1].text)
        })
        .map(|pair| {
            let what = format!(
                "type `{}` has a word of another model: a chare, a PE or an entry method?",
                pair[1].text
            );
            file.finding(pair[1].line, &what)
        })
        .collect()
}

#[cfg(test)]
mod tests;
