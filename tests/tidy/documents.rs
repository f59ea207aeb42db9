//! Rules about what is written for people beside the code: the README, the pages of the manual, and their links.

use std::path::Path;

/// More lines than anybody reads before trying something.
const README_LINES_MAX: usize = 200;

/// A text for people, by its path from the root.
pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The README is short enough to be read.
pub(crate) fn readme_length(readme: &str) -> Vec<String> {
    let lines = readme.lines().count();
    let mend = "move what is about one application or one command to its page of the manual";
    if lines > README_LINES_MAX {
        vec![format!("README.md: {lines} lines, and at most {README_LINES_MAX} are wanted: {mend}")]
    } else {
        Vec::new()
    }
}

/// Links to files of the repository lead to files. `exists` is asked of paths from the root.
pub(crate) fn links(document: &Document, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let targets = document.text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to);
    targets
        .filter(|to| !to.contains("://") && !to.starts_with('#') && !to.contains("::"))
        .filter(|to| !exists(&folder.join(to.split('#').next().unwrap_or_default())))
        .map(|to| format!("{}: it links to {to}, which there is not", document.path))
        .collect()
}

/// What the program's first function adds to it, `apps::NAME::add_to`, other than the manual itself.
pub(crate) fn applications(main: &str) -> Vec<&str> {
    let after = main.split("apps::").skip(1);
    let names = after.filter_map(|rest| rest.split_once("::add_to")).map(|(name, _)| name);
    names.filter(|name| *name != "manual" && name.chars().all(char::is_alphanumeric)).collect()
}

/// Every application has a page, which stands in its folder and is a part of its module's documentation and of the manual.
/// `read` gives the text of a file of the applications' folder.
pub(crate) fn pages(applications: &[&str], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let manual = read("manual.rs").unwrap_or_default();
    let mut findings = Vec::new();
    for name in applications {
        let page = format!("{name}/README.md");
        if read(&page).is_none_or(|page| !page.starts_with("# ")) {
            findings
                .push(format!("apps/src/{page} is missing or has no title: it is the manual page of {name}"));
        }
        let module = read(&format!("{name}/mod.rs")).unwrap_or_default();
        if !module.contains("#![doc = include_str!(\"README.md\")]") {
            findings.push(format!("apps/src/{name}/mod.rs does not include README.md in its documentation"));
        }
        if !manual.contains(&format!(".page(\"{name}\", include_str!(\"{page}\"))")) {
            findings.push(format!("apps/src/manual.rs does not have the page of {name}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readme_of_a_line_more_is_too_long() {
        let lines = |count| "a line\n".repeat(count);
        assert!(readme_length(&lines(README_LINES_MAX)).is_empty());
        assert_eq!(readme_length(&lines(README_LINES_MAX + 1)).len(), 1);
    }

    #[test]
    fn links_to_nothing_are_found() {
        let text = "[a](there.md) [b](../gone.md) [c](https://example.org) [d](#part) [e](there.md#part) [`f`](crate::g)";
        let document = Document { path: "one/two/page.md".into(), text: text.into() };
        let findings = links(&document, |path| path == Path::new("one/two/there.md"));
        assert_eq!(findings, ["one/two/page.md: it links to ../gone.md, which there is not"]);
    }

    #[test]
    fn an_application_without_a_page_is_found() {
        let main =
            "let program = apps::one::add_to(program); apps::two::add_to(apps::manual::add_to(program))";
        assert_eq!(applications(main), ["one", "two"]);
        let read = |path: &str| {
            let text = match path {
                "one/README.md" => "# One\n",
                "one/mod.rs" => "//! One.\n#![doc = include_str!(\"README.md\")]\n",
                "two/mod.rs" => "//! Two.\n",
                "manual.rs" => "program.page(\"one\", include_str!(\"one/README.md\"))",
                _ => return None,
            };
            Some(text.to_string())
        };
        assert!(pages(&["one"], read).is_empty());
        assert_eq!(pages(&["one", "two"], read).len(), 3);
    }
}
