//! Programs outside the workspace that depend on the model alone, by path: they compile, pull in nothing of the command
//! line, and are short. What is wrong with others the compiler says first. That examples are right is seen where they run on
//! several nodes, in `tests/model`.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{skipped, write, write_program};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a program without a command line has no use for.
const UNWANTED: [&str; 6] = ["clap", "ratatui", "crossterm", "png", "tracing-subscriber", "command"];

/// The examples, and how many lines each has at most that are neither empty nor comments.
const EXAMPLES: [(&str, usize); 4] = [("heat", 45), ("histogram", 25), ("primes", 25), ("queens", 45)];

/// The folder of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../chares/examples")
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(examples().join(path)).unwrap()
}

/// The Rust files of a folder, by their names without the ending.
fn programs(folder: &Path) -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut programs: Vec<_> = files
        .map(|path| {
            (path.file_stem().unwrap().to_str().unwrap().into(), std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    programs.sort();
    programs
}

/// What a command of Cargo says about programs, as their user would have it: in a folder of its own, with the versions of
/// libraries that are there.
fn cargo(programs: &[(String, String)], words: &[&str]) -> Output {
    let chares = examples().parent().unwrap().canonicalize().unwrap().display().to_string();
    let manifest = read("Cargo.toml").replace("path = \"..\"", &format!("path = {chares:?}"));
    assert!(manifest.contains(&chares), "{manifest}");
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Cargo.toml", &manifest);
    write(folder.path(), "Cargo.lock", &read("../../Cargo.lock"));
    let sources = folder.path().join("src/bin");
    std::fs::create_dir_all(&sources).unwrap();
    for (name, text) in programs {
        write(&sources, &format!("{name}.rs"), text);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(words).arg("--offline").current_dir(folder.path());
    // What was built is kept for the next time.
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"));
    command.output().unwrap()
}

/// The first error of each program that does not compile: its line and what it says.
fn first_errors(output: &Output) -> BTreeMap<String, (u64, String)> {
    let mut first = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let told: serde_json::Value = serde_json::from_str(line).unwrap();
        let (message, name) = (&told["message"], told["target"]["name"].as_str());
        let (Some(name), Some("error")) = (name, message["level"].as_str()) else { continue };
        let spans = message["spans"].as_array().unwrap();
        let Some(at) = spans.iter().find(|span| span["is_primary"] == true) else { continue };
        let line = at["line_start"].as_u64().unwrap();
        first.entry(name.into()).or_insert((line, message["message"].as_str().unwrap().into()));
    }
    first
}

#[test]
fn programs_on_the_model_alone_compile_and_need_no_command_line() {
    let examples = programs(&examples().join("src/bin"));
    assert_eq!(
        examples.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        EXAMPLES.map(|(name, _)| name)
    );
    let tree = cargo(&examples, &["tree", "--prefix", "none"]);
    let tree = String::from_utf8_lossy(&tree.stdout);
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"chares") && names.contains(&"quinn"), "{tree}");
    assert!(!names.iter().any(|name| UNWANTED.contains(name)), "{tree}");
    let checked = cargo(&examples, &["check"]);
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && !said.contains("warning"), "{said}");
}

/// Each program has one mistake; where it is, a comment has what the compiler says first.
#[test]
fn the_first_error_of_the_compiler_names_the_mistake_and_its_line() {
    let mistakes = programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("outside/mistakes"));
    let output = cargo(&mistakes, &["check", "--keep-going", "--message-format", "json"]);
    let errors = first_errors(&output);
    assert!(mistakes.len() >= 10, "{mistakes:?}");
    for (name, text) in mistakes {
        let marked =
            (1..).zip(text.lines()).find_map(|(number, line)| Some((number, line.split_once("//~ ")?.1)));
        let (line, expected) = marked.unwrap();
        let found = errors.get(&name);
        assert!(
            found.is_some_and(|(at, said)| *at == line && said.contains(expected)),
            "{name}: {expected:?} in line {line}, not {found:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn examples_are_short() {
    for (name, lines_max) in EXAMPLES {
        let text = read(format!("src/bin/{name}.rs"));
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let lines = text.lines().filter(is_code).count();
        assert!(lines <= lines_max, "{name} has {lines} lines");
    }
}

/// What `.ci/package --plan` says on a machine that has these programs, each a shell script, and no others.
fn plan(python: &Path, programs: &[(&str, String)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in programs {
        write_program(folder.path(), name, format!("#!/bin/sh\n{script}\n"));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/package");
    let mut command = Command::new(python);
    command.arg(script).arg("--plan").env_clear().env("PATH", folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A compiler that calls the machine x86_64 and has the standard library for musl in `libraries`, if it is there.
fn rustc(libraries: &Path) -> (&'static str, String) {
    let host = "echo host: x86_64-unknown-linux-gnu";
    ("rustc", format!("if [ \"$1\" = -vV ]; then {host}; else echo {libraries:?}; fi"))
}

/// The interpreter of `.ci/package`, if it is installed.
fn python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(python) =
        std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|file| file.exists())
    else {
        skipped("the tests of packages: there is no python3, in which the script is written");
        return None;
    };
    // What is found by its name may be a script that looks for the real one along PATH.
    let real =
        Command::new(python).args(["-c", "import sys; print(sys.executable)"]).output().unwrap().stdout;
    Some(PathBuf::from(String::from_utf8(real).unwrap().trim()))
}

/// Has `.ci/package` print what its functions make of a program: the version, the README and Debian's copyright file.
const PARTS: &str = "
import importlib.machinery, importlib.util, pathlib, sys
loader = importlib.machinery.SourceFileLoader('package', sys.argv[1])
package = importlib.util.module_from_spec(importlib.util.spec_from_loader('package', loader))
sys.modules['package'] = package
loader.exec_module(package)
print(package.version(pathlib.Path(sys.argv[2])))
print(package.standing_alone((package.ROOT / 'README.md').read_text()))
print(package.copyright_file())
";

#[test]
fn packages_have_the_version_of_their_program_and_texts_without_links_to_what_is_not_in_them() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/package");
    let folder = tempfile::tempdir().unwrap();
    for (told, version) in [
        ("metachare 1.2.3 (abcdef012)", Some("1.2.3+git.abcdef012")),
        ("metachare 1.2.3", Some("1.2.3")),
        ("hello", None),
    ] {
        let program = write_program(folder.path(), "program", format!("#!/bin/sh\necho '{told}'\n"));
        // Python would leave what it has compiled in the repository.
        let output =
            Command::new(&python).args(["-B", "-c", PARTS]).arg(&script).arg(&program).output().unwrap();
        let (said, wrong) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let Some(version) = version else {
            assert!(!output.status.success() && wrong.contains("is it metachare?"), "{wrong}");
            continue;
        };
        assert_eq!(said.lines().next(), Some(version), "{wrong}");
        assert!(
            said.contains("| `gauss`, `jacobi` | systems of linear equations") && !said.contains("]("),
            "{said}"
        );
        assert!(
            said.contains("\nLicense: Expat\n Permission is hereby granted") && said.contains("\n .\n"),
            "{said}"
        );
    }
}

#[test]
fn packages_are_made_of_the_best_programs_that_can_be_built_and_say_what_better_ones_take() {
    let Some(python) = python() else { return };
    let installed = tempfile::tempdir().unwrap();
    write(installed.path(), "libstd-0123.rlib", "");
    let [bare, musl] = [rustc(Path::new("/nowhere")), rustc(installed.path())];
    let tool = |name| (name, String::new());
    let linker = |libc: &str| ("cc", format!("echo {libc}"));

    let nothing = plan(&python, &[bare.clone(), linker("libc.a")]);
    assert!(nothing.contains("cc finds no libc.a"), "{nothing}");
    assert!(nothing.contains("as new as this machine's"), "{nothing}");
    assert!(nothing.contains("pip install cargo-zigbuild"), "{nothing}");

    let glibc = plan(&python, &[bare, linker("/usr/lib/libc.a"), tool("cargo-zigbuild")]);
    assert!(glibc.contains("this machine's glibc in it"), "{glibc}");
    assert!(glibc.contains("rustup target add x86_64-unknown-linux-musl"), "{glibc}");
    assert!(glibc.contains("for glibc 2.28 and later\n"), "{glibc}");

    let no_compiler = plan(&python, &[musl.clone(), linker("/usr/lib/libc.a")]);
    assert!(
        no_compiler.contains("this machine's glibc in it (there is no C compiler for musl"),
        "{no_compiler}"
    );

    let best = plan(&python, &[musl, tool("musl-gcc"), tool("cargo-zigbuild")]);
    assert!(best.contains("with musl in it\n"), "{best}");
}
