//! `MANIFEST.json`: what a generation is, for people and programs.

use crate::architecture::Architecture;
use crate::digest::Digest;
use crate::schema::Shape;
use serde::{Deserialize, Serialize};

/// Whose checkpoint it is, and when it was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Name of the program.
    pub program: String,
    /// Version of the program.
    pub version: String,
    /// The arguments that the run was started with.
    pub arguments: Vec<String>,
    /// How many PEs the run had.
    pub pes: u32,
    /// The nodes that the run had.
    pub nodes: Vec<Machine>,
    /// How far the run was, in words.
    pub progress: String,
    /// When it was taken, in milliseconds since 1970 (UTC).
    pub taken_ms: u64,
    /// Values that somebody has changed since, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
}

/// A machine that had part in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the node.
    pub name: String,
    /// What kind of machine it was.
    #[serde(flatten)]
    pub architecture: Architecture,
    /// How many PEs it had.
    pub pes: u32,
}

/// A type that has records in a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedType {
    /// What its records are of.
    pub kind: String,
    /// Name of the type.
    pub name: String,
    /// How many records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What they are made of, where that is known.
    #[serde(flatten)]
    pub schema: Option<SavedSchema>,
}

/// What the records of a type were made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSchema {
    /// The program's number for it.
    pub version: u16,
    /// Their shape.
    pub shape: Shape,
}

/// What the values of a shared variable are made of, or what has been added to an accumulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedVariable {
    /// The number of the variable in its run.
    pub id: u64,
    /// Name of the type of its values.
    pub name: String,
    /// What they are made of.
    #[serde(flatten)]
    pub schema: SavedSchema,
}

/// What a generation is, in a few words and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Its number.
    pub generation: u32,
    /// Whose it is, and when it was taken.
    pub about: About,
    /// How many records it has.
    pub records: u64,
    /// Bytes of all records.
    pub bytes: u64,
    /// Bytes of its chunks as they are stored, each counted once; earlier generations may share them.
    pub stored_bytes: u64,
    /// Bytes that it added to the folder in which it was written.
    pub new_bytes: u64,
}

/// The number of a generation, and what it is or what is wrong with it.
pub type Listed = (u32, Result<Overview, String>);

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// [`super::format::NAME`].
    pub(super) format: String,
    /// [`super::format::VERSION`].
    pub(super) version: u32,
    pub(super) generation: u32,
    pub(super) about: About,
    pub(super) records: u64,
    /// Bytes of the records.
    pub(super) bytes: u64,
    /// Bytes that this generation added to the folder, apart from this file and `COMMIT`.
    pub(super) new_bytes: u64,
    pub(super) types: Vec<SavedType>,
    /// In the order of their numbers; programs of before this key have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) variables: Vec<SavedVariable>,
    pub(super) index: FileSum,
    /// The files that hold its chunks.
    pub(super) chunk_files: Vec<ChunkFile>,
}

impl Manifest {
    pub(super) fn overview(&self) -> Overview {
        let Self { generation, records, bytes, new_bytes, .. } = *self;
        let stored_bytes = self.chunk_files.iter().map(|file| file.used_bytes).fold(0, u64::saturating_add);
        Overview { generation, about: self.about.clone(), records, bytes, stored_bytes, new_bytes }
    }
}

/// A file with its length and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileSum {
    pub(super) bytes: u64,
    #[serde(flatten)]
    sum: Sum,
}

/// A checksum as hexadecimal text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sum {
    Blake3(String),
    /// Before version 3.
    Sha256(String),
}

impl FileSum {
    pub(super) fn of(contents: &[u8]) -> Self {
        Self { bytes: contents.len() as u64, sum: Sum::Blake3(Digest::of(contents).to_string()) }
    }

    /// Whether it is the length and checksum of these.
    pub(super) fn is_of(&self, contents: &[u8]) -> bool {
        let digest = match self.sum {
            Sum::Blake3(_) => Digest::of(contents),
            Sum::Sha256(_) => Digest::sha256(contents),
        };
        self.bytes == contents.len() as u64 && digest.to_string() == self.text()
    }

    /// The checksum; whether it can be one, nobody has asked.
    pub(super) fn text(&self) -> &str {
        let (Sum::Blake3(text) | Sum::Sha256(text)) = &self.sum;
        text
    }
}

/// The chunks that one generation has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChunkFile {
    /// In the folder of which generation it is.
    pub(super) generation: u32,
    /// How long it is.
    pub(super) bytes: u64,
    /// The bytes of it that this generation refers to.
    pub(super) used_bytes: u64,
}
