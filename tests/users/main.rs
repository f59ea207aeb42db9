//! Another user of the same machine: what they have prepared is neither run nor believed nor written to, and they see
//! nothing of a run. Needs root, which can play two users; in CI (`CI=true`) that is insisted on.

use harness::{Done, copy_program, local_nodes, start, wait_for, wait_for_work, write, write_program};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const STENCIL: &str = env!("CARGO_BIN_EXE_stencil2d");
/// The other user, who is no known one.
const OTHER: u32 = 61_234;
const SHORT: [&str; 4] = ["run", "--steps", "3", "--quiet"];

/// A folder that everybody may enter, if this test can play two users.
fn folder() -> Option<tempfile::TempDir> {
    if !nix::unistd::geteuid().is_root() {
        harness::skipped("a test with two users needs root");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder for the test");
    set_mode(folder.path(), 0o755);
    Some(folder)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of ours");
}

fn give_away(path: &Path) {
    lchown(path, Some(OTHER), Some(OTHER)).expect("root may do that");
}

/// A folder in another one that everybody may write.
fn shared(folder: &Path, mode: u32) -> PathBuf {
    let shared = folder.join("shared");
    fs::create_dir(&shared).expect("a folder in the test's own");
    set_mode(&shared, mode);
    shared
}

/// The program as the user, in a folder; what it keeps is in `home`.
fn stencil(folder: &Path, home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(STENCIL);
    command.args(words).current_dir(folder).env_remove("METACHARE_NODES").env("HOME", home);
    command.env("XDG_CACHE_HOME", home).env("XDG_RUNTIME_DIR", home);
    command
}

fn run(folder: &Path, home: &Path, words: &[&str]) -> Done {
    start(&mut stencil(folder, home, words)).done()
}

#[test]
fn a_program_that_another_user_has_prepared_in_the_cache_is_not_run() {
    let Some(folder) = folder() else { return };
    let home = tempfile::tempdir().unwrap();
    for mode in [0o777, 0o1777] {
        let shared = shared(folder.path(), mode);
        let sum = start(Command::new("sha256sum").arg(STENCIL)).done().stdout;
        let cache = shared.join("cache");
        let staged = cache.join("metachare/bin").join(sum.split_whitespace().next().unwrap());
        fs::create_dir_all(&staged).unwrap();
        let trap = format!("#!/bin/sh\ntouch '{}'\nexit\n", folder.path().join("trapped").display());
        let program = fs::File::create(staged.join("stencil2d")).unwrap();
        (&program).write_all(trap.as_bytes()).unwrap();
        program.set_len(fs::metadata(STENCIL).unwrap().len()).unwrap();
        fs::write(staged.join("stencil2d.whole"), "").unwrap();
        for path in [staged.join("stencil2d"), staged.join("stencil2d.whole")].iter().map(PathBuf::as_path) {
            set_mode(path, 0o755);
            give_away(path);
        }
        staged.ancestors().take_while(|path| *path != shared).for_each(give_away);
        let ssh = write_program(folder.path(), "ssh", FAKE_SSH);
        let node = format!(
            "[[node]]\nname = \"a\"\nhost = \"h\"\nlaunch = \"ssh\"\npes = 1\nenv = {{ XDG_CACHE_HOME = {cache:?} }}\n"
        );
        write(folder.path(), "nodes.toml", &node);
        let done = start(stencil(folder.path(), home.path(), &SHORT).env("METACHARE_SSH", &ssh)).done();
        assert!(!folder.path().join("trapped").exists(), "{mode:o}: the other user's program was run");
        assert_eq!(done.code, 69, "{done:?}");
        let words = "(stage): the program could be exchanged there by another user: others may write to ";
        assert!(
            done.last_error().contains(words) && done.last_error().contains("XDG_CACHE_HOME"),
            "{done:?}"
        );
        fs::remove_dir_all(&shared).unwrap();
    }
}

/// Plays ssh: runs the command here.
const FAKE_SSH: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n\
    export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\nexec sh -c \"$3\"\n";

#[test]
fn a_nodes_file_that_another_user_has_left_is_used_only_if_it_is_named() {
    let Some(folder) = folder() else { return };
    let home = tempfile::tempdir().unwrap();
    let shared = shared(folder.path(), 0o1777);
    give_away(&local_nodes(&shared, &[1]));
    let done = run(&shared, home.path(), &SHORT);
    assert_eq!(done.code, 78, "{done:?}");
    let said = format!("error: nodes.toml belongs to another user (uid {OTHER})");
    assert!(done.stderr.starts_with(&said) && done.stderr.contains("--nodes nodes.toml"), "{done:?}");
    let named = [&SHORT[..], &["--nodes", "nodes.toml"]].concat();
    assert_eq!(run(&shared, home.path(), &named).code, 0);
    set_mode(&shared, 0o755);
    assert_eq!(run(&shared, home.path(), &SHORT).code, 0, "only the user could have put it there");
}

#[test]
fn what_is_written_follows_no_link_of_another_user() {
    let Some(folder) = folder() else { return };
    let home = tempfile::tempdir().unwrap();
    let shared = shared(folder.path(), 0o1777);
    let precious = write(home.path(), "precious", "mine");
    let nodes = local_nodes(folder.path(), &[1]);
    for (option, name) in [("--report", "run.json"), ("--record", "run.mcr")] {
        let link = shared.join(name);
        symlink(&precious, &link).unwrap();
        give_away(&link);
        let path = link.to_str().unwrap();
        let words = [&SHORT[..], &["--nodes", nodes.to_str().unwrap(), option, path]].concat();
        let done = run(folder.path(), home.path(), &words);
        assert_eq!(done.code, 73, "{option}: {done:?}");
        assert!(
            done.last_error().ends_with("another user's link in a folder that others may write"),
            "{done:?}"
        );
        assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
        fs::remove_file(&link).unwrap();
        symlink(&precious, &link).unwrap();
        assert_eq!(run(folder.path(), home.path(), &words).code, 0, "the user's own link is meant");
        assert_ne!(fs::read(&precious).unwrap(), b"mine");
        assert!(link.is_symlink());
        fs::write(&precious, "mine").unwrap();
    }
}

#[test]
fn a_folder_for_sockets_that_another_user_has_made_first_is_told_with_its_mend() {
    let Some(folder) = folder() else { return };
    let taken = folder.path().join("metachare-0");
    fs::create_dir(&taken).unwrap();
    give_away(&taken);
    let watch = |runtime: Option<&Path>| {
        let mut command = stencil(folder.path(), folder.path(), &["watch", "--list"]);
        command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", folder.path());
        start(command.envs(runtime.map(|folder| ("XDG_RUNTIME_DIR", folder)))).done()
    };
    let done = watch(None);
    assert_ne!(done.code, 0, "{done:?}");
    assert!(done.last_error().contains("set XDG_RUNTIME_DIR to a folder of yours"), "{done:?}");
    assert_eq!(watch(Some(folder.path())).code, 0, "the mend mends it");
}

#[test]
fn another_user_sees_nothing_of_a_run() {
    let Some(folder) = folder() else { return };
    let home = tempfile::tempdir().unwrap();
    set_mode(home.path(), 0o755);
    let secret = format!("secret-of-{}", std::process::id());
    let ssh = write_program(folder.path(), "ssh", FAKE_SSH);
    let node = format!(
        "[[node]]\nname = \"a\"\nhost = \"h\"\nlaunch = \"ssh\"\npes = 1\nbinary = {STENCIL:?}\n\
         env = {{ TOKEN = {secret:?} }}\n"
    );
    write(folder.path(), "nodes.toml", &node);
    let words = ["run", "--steps", "10000000", "--cells", "24", "--quiet"];
    let running = start(stencil(folder.path(), home.path(), &words).env("METACHARE_SSH", &ssh));
    wait_for_work(home.path());
    let nodes = wait_for("the node", || {
        let nodes = harness::nodes_at("stencil2d").into_iter();
        let environment = |pid: &i32| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let holds =
            |pid: &i32| String::from_utf8_lossy(&environment(pid)).contains(&format!("TOKEN={secret}"));
        Some(nodes.filter(holds).collect::<Vec<i32>>()).filter(|nodes| !nodes.is_empty())
    });
    assert_eq!(nodes.len(), 1);
    assert_eq!(harness::processes_with(&secret), [0; 0], "a value of `env` stands in a command line");
    // As the other user, with a copy of the program that they may run.
    let program = copy_program(STENCIL, folder.path(), "watcher");
    let as_other = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).current_dir("/").env("XDG_RUNTIME_DIR", home.path());
        start(command.uid(OTHER).gid(OTHER)).done()
    };
    let done = as_other(&program, &["watch", "--once"]);
    assert!(done.code != 0 && done.stdout.is_empty(), "{done:?}");
    let environment = format!("/proc/{}/environ", nodes[0]);
    assert_ne!(as_other(Path::new("/bin/cat"), &[environment.as_str()]).code, 0);
    harness::signal(running.pid(), "INT");
    assert_eq!(running.done().code, 130);
}

/// Root may have as many processes as it likes.
#[test]
fn a_limit_of_processes_is_told_in_one_sentence() {
    let Some(folder) = folder() else { return };
    local_nodes(folder.path(), &[1, 1]);
    give_away(folder.path());
    let program = copy_program(STENCIL, folder.path(), "program");
    for limit in 1..30 {
        let line = format!("ulimit -u {limit} || exit 9; exec {} run --steps 3 --quiet", program.display());
        // A user of this limit's own, whose processes nobody else counts.
        let user = OTHER + limit;
        chown(folder.path(), Some(user), None).unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", &line]).current_dir(folder.path()).env("HOME", folder.path());
        command.env("XDG_CACHE_HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
        let done = start(command.uid(user).gid(user)).done();
        let _ = fs::remove_dir_all(folder.path().join("metachare"));
        if done.code == 0 {
            return assert!(limit > 8, "{limit} processes were enough: the limit is not felt");
        }
        assert!([69, 70].contains(&done.code), "{limit}: {done:?}");
        assert!(done.last_error().starts_with("error: "), "{limit}: {done:?}");
        assert!(!done.stderr.contains("panicked"), "{limit}: {done:?}");
    }
    panic!("30 processes were not enough");
}

/// What other users leave beside an output under the names of its parts is theirs.
#[test]
fn parts_of_another_user_stay() {
    let Some(folder) = folder() else { return };
    let home = tempfile::tempdir().unwrap();
    let shared = shared(folder.path(), 0o777);
    let nodes = local_nodes(folder.path(), &[1]);
    let [mine, theirs] = [".run.json.4000000000-0.part", ".run.json.4000000000-1.part"];
    [mine, theirs].iter().for_each(|name| drop(write(&shared, name, "half")));
    chown(shared.join(theirs), Some(OTHER), None).unwrap();
    let report = shared.join("run.json");
    let words =
        [&SHORT[..], &["--nodes", nodes.to_str().unwrap(), "--report", report.to_str().unwrap()]].concat();
    assert_eq!(run(folder.path(), home.path(), &words).code, 0);
    assert!(!shared.join(mine).exists() && shared.join(theirs).exists() && report.exists());
}
