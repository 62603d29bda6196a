//! What names an entry, and where and when it was written.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

/// The id of one entry. Ids of one process sort by the time at which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId(Ulid);

impl EntryId {
    /// Characters of [`Self::short`].
    const SHORT: usize = 8;

    pub(crate) fn new(id: Ulid) -> Self {
        Self(id)
    }

    /// Its end, which tells entries of one session apart where its beginning is a time.
    pub fn short(&self) -> String {
        let text = self.to_string();
        text[text.len() - Self::SHORT..].to_owned()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of an entry")]
pub struct NoEntryId(String);

impl FromStr for EntryId {
    type Err = NoEntryId;

    fn from_str(text: &str) -> Result<Self, NoEntryId> {
        Ulid::from_string(text).map(Self).map_err(|_| NoEntryId(text.to_owned()))
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Where and when an entry was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    pub id: EntryId,
    /// The entry that it continues.
    pub parent: Option<EntryId>,
    /// Milliseconds since 1970.
    pub time: u64,
}

impl Mark {
    /// Of an entry that is kept in no file: nothing can be found by its id.
    pub fn unkept() -> Self {
        Self { time: now(), ..Self::default() }
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
