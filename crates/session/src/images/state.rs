//! What stands at a path, small enough for the log.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a content: its BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub(crate) [u8; 32]);

/// What is, was or shall be at a path.
#[derive(Debug, Clone, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum State {
    Absent,
    File {
        hash: Hash,
        mode: u32,
        len: u64,
    },
    Link {
        #[serde(with = "raw_path")]
        target: PathBuf,
    },
    Folder {
        mode: u32,
    },
    /// Something whose content is not kept: too large, not readable, no file. `mark` tells whether it
    /// is still the same.
    Unkept {
        mark: String,
        why: String,
    },
}

/// Of what is not kept, the mark tells; why it is not kept is told in other words by whoever looks later.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::File { hash, mode, len }, Self::File { hash: h, mode: m, len: l }) => {
                (hash, mode, len) == (h, m, l)
            }
            (Self::Link { target }, Self::Link { target: other }) => target == other,
            (Self::Folder { mode }, Self::Folder { mode: other }) => mode == other,
            (Self::Unkept { mark, why }, Self::Unkept { mark: other, why: words }) => {
                mark == other && (!mark.is_empty() || why == words)
            }
            _ => false,
        }
    }
}

impl State {
    /// Whether a file or folder of the same kind and content is meant, whatever its mode.
    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Self::Absent => "not there".to_owned(),
            Self::File { len, mode, .. } => format!("a file of {len} bytes, mode {mode:o}"),
            Self::Link { target } => format!("a link to {}", target.display()),
            Self::Folder { mode } => format!("a folder, mode {mode:o}"),
            Self::Unkept { why, .. } => why.clone(),
        }
    }
}

impl Hash {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hash = blake3::Hash::from_hex(text).ok()?;
        Some(Self(*hash.as_bytes()))
    }
}

impl From<blake3::Hash> for Hash {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("no BLAKE3 hash"))
    }
}

/// A path in JSON: text where it is text, its bytes where it is not.
pub(crate) mod raw_path {
    use super::{
        Deserialize, Deserializer, OsStrExt, OsString, OsStringExt, Path, PathBuf, Serialize,
        Serializer,
    };

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes { bytes: Vec<u8> },
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => {
                Form::Bytes { bytes: path.as_os_str().as_bytes().to_vec() }.serialize(serializer)
            }
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => PathBuf::from(text),
            Form::Bytes { bytes } => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}
