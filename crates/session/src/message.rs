//! Messages of the current branch, by what people call them.

use crate::branches::Branch;
use crate::fold::{Item, Session};
use crate::id::EntryId;

/// What people point at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    #[error("there is no message {0} on the current branch; `tw show` numbers them")]
    NoMessage(String),
    #[error("{0} fits several messages; more of the id tells them apart")]
    Several(String),
    #[error("there is no branch {0}; `tw tree` lists them")]
    NoBranch(String),
}

impl Session {
    /// A message by its number, counted from 1, or by its id or the end of one. Gives its place among
    /// the items.
    pub fn find_message(&self, given: &str) -> Result<usize, NotFound> {
        let given = given.trim().trim_start_matches('#');
        if let Ok(number) = given.parse::<usize>()
            && (1..=self.items().len()).contains(&number)
        {
            return Ok(number - 1);
        }
        let ids = self.places().iter().map(|place| place.id);
        let fits: Vec<usize> = matching(ids, given).collect();
        match fits.as_slice() {
            [only] => Ok(*only),
            [] => Err(NotFound::NoMessage(given.to_owned())),
            _ => Err(NotFound::Several(given.to_owned())),
        }
    }

    /// The entry to go on behind: in place of a prompt, behind everything else.
    pub fn target_of(&self, item: usize) -> Option<EntryId> {
        let place = self.places().get(item)?;
        match self.items().get(item)? {
            Item::Prompt(_) => place.before,
            Item::Note(_) | Item::Step(_) => Some(place.last),
        }
    }
}

impl Branch {
    /// The one that is meant by its name, or by its id or the end of one.
    pub fn find<'a>(branches: &'a [Self], given: &str) -> Result<&'a Self, NotFound> {
        let given = given.trim();
        let named = branches.iter().find(|branch| branch.label.as_deref() == Some(given));
        let fits: Vec<usize> = matching(branches.iter().map(|b| b.leaf), given).collect();
        match (named, fits.as_slice()) {
            (Some(branch), _) => Ok(branch),
            (None, [only]) => Ok(&branches[*only]),
            (None, []) => Self::with(branches, given),
            (None, _) => Err(NotFound::Several(given.to_owned())),
        }
    }
}

impl Branch {
    /// The one that has gone on since somebody noted its end.
    fn with<'a>(branches: &'a [Self], given: &str) -> Result<&'a Self, NotFound> {
        let has = |branch: &&Self| matching(branch.own.iter().copied(), given).next().is_some();
        let mut fits = branches.iter().filter(has);
        match (fits.next(), fits.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(NotFound::Several(given.to_owned())),
            (None, _) => Err(NotFound::NoBranch(given.to_owned())),
        }
    }
}

fn matching(ids: impl Iterator<Item = EntryId>, given: &str) -> impl Iterator<Item = usize> {
    /// Fewer characters are a number that is too large, or a slip.
    const LEAST: usize = 4;
    let wanted = given.to_uppercase();
    let fits = move |id: &EntryId| wanted.len() >= LEAST && id.to_string().ends_with(&wanted);
    ids.enumerate().filter(move |(_, id)| fits(id)).map(|(number, _)| number)
}
