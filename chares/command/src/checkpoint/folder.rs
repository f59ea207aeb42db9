//! Folders of checkpoints on command lines.

use super::s3::Address;
use clap::Arg;
use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::PathBuf;

/// The argument that names one.
pub(crate) fn folder(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(name).required(true).value_parser(folder_parser()).help(help)
}

/// Refuses what is meant to be in an object store: as a folder of that name, nobody would look for it there.
pub(crate) fn folder_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|dir| match dir.to_str() {
        Some(text) if Address::is_meant(text) => Err(format!(
            "that is no folder of a machine: `checkpoint push DIR {text}` copies checkpoints there, `checkpoint pull {text} DIR` from \
             there, and only `checkpoint ls` reads them there"
        )),
        _ => Ok(dir),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    #[test]
    fn an_object_store_is_no_folder() {
        let read = |text: &str| {
            Command::new("restart").arg(folder("dir", "DIR", "Which")).try_get_matches_from(["restart", text])
        };
        let dir = read("runs/s3://a").unwrap().get_one::<PathBuf>("dir").cloned();
        assert_eq!(dir, Some("runs/s3://a".into()));
        let refused = read("s3://runs/a").unwrap_err().to_string();
        assert!(refused.contains("`checkpoint pull s3://runs/a DIR` from there"), "{refused}");
    }
}
