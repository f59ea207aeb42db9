//! Tells the library which commit it is built from, for the provenance in reports: `METACHARE_COMMIT`, or
//! "unknown" outside of its repository. It is looked up again only after a commit or checkout.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=METACHARE_COMMIT={}", commit().unwrap_or_else(|| "unknown".into()));
}

fn commit() -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Copied into another repository, that one's commit would say nothing.
    let root = git(&["rev-parse", "--show-toplevel"])?;
    if here.parent()?.parent()?.canonicalize().ok()? != Path::new(&root).canonicalize().ok()? {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        let path = here.join(git(&["rev-parse", "--git-path", name])?);
        // Cargo takes a file that is not there for one that has changed, every time.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}
