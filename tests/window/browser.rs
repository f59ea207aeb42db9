//! A run's page in a real browser. Where there is none the test is skipped with the reason; in CI (`CI=true`) that is an
//! error.

use crate::replay::{recorded, stencil};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names under which Chromium is installed; Chrome knows the same options.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
/// Nothing but the page is to be asked for, and pages of strangers are not shown: a sandbox needs rights that a container may
/// not have.
const OPTIONS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
];
/// Written behind the page; what the browser makes of the page becomes its title.
const PROBE: &str = "<script>addEventListener('load', () => {
    const all = (what) => [...document.querySelectorAll(what)];
    const seen = (what) => all(what).filter((part) => part.getBoundingClientRect().width > 0).length;
    const root = document.documentElement;
    document.title = [
        'headings ' + all('h2').map((part) => part.innerText).join(' | '),
        'charts ' + seen('svg'), 'drawn ' + seen('svg *'), 'rows ' + seen('tr'), 'bars ' + seen('.bar i'),
        'sideways ' + (root.scrollWidth - root.clientWidth),
        'fetched ' + performance.getEntriesByType('resource').length,
    ].join('; ');
})</script>";

fn browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let found = BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.exists());
    if found.is_none() {
        harness::skipped(&format!("the page of a run: no browser is installed ({})", BROWSERS.join(", ")));
    }
    found
}

/// What the browser says of a page of which it drew everything.
fn looked_at(browser: &Path, folder: &Path, page: &str) -> String {
    fs::write(folder.join("probed.html"), format!("{page}{PROBE}")).unwrap();
    let mut command = Command::new(browser);
    command.args(OPTIONS).arg(format!("--user-data-dir={}", folder.join("profile").display()));
    // It writes there, too, beside its profile.
    command.env("XDG_CONFIG_HOME", folder.join("config"));
    command.arg("--dump-dom").arg(format!("file://{}", folder.join("probed.html").display()));
    let done = harness::start(&mut command).done();
    let title = done.stdout.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.unwrap_or_else(|| panic!("{done:?}")).0.to_string()
}

#[test]
fn the_page_of_a_run_is_whole_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(recorded(folder.path()).code, 0);
    let done = stencil(folder.path(), &["report", "run.mcr", "--html", "run.html"]);
    assert_eq!(done.code, 0, "{done:?}");
    let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
    let said = looked_at(&browser, folder.path(), &page);
    let said_of = |what: &str| {
        let part = said.split("; ").find_map(|part| part.strip_prefix(what)?.strip_prefix(' '));
        part.unwrap_or_else(|| panic!("nothing of {what}: {said}")).to_string()
    };
    let count_of = |what| said_of(what).parse::<u32>().unwrap();
    let headings = said_of("headings");
    for heading in ["What it lost time to", "Time of PEs", "Over time"] {
        assert!(headings.contains(heading), "{said}");
    }
    assert_eq!(headings.split(" | ").count(), page.matches("<h2>").count(), "{said}");
    assert_eq!(count_of("rows"), u32::try_from(page.matches("<tr>").count()).unwrap(), "{said}");
    assert!(count_of("charts") == 1 && count_of("drawn") > 10 && count_of("bars") > 2, "{said}");
    assert_eq!((count_of("sideways"), count_of("fetched")), (0, 0), "{said}");
}
