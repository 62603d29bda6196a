//! Sessions for other programs and for people: OpenCode's export form, Markdown, and one HTML page. The
//! last two are made from the first, so that what is left out of it is left out everywhere.

pub(crate) mod ansi;
mod html;
mod json;
mod markdown;
mod parts;
mod sanitize;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::chronicle::Chronicle;
use crate::store::Store;

/// How deep work for others is followed.
const DEPTH_CAP: usize = 8;

impl Store {
    /// A session in OpenCode's export form, with the sessions of agents that worked for it as `children`.
    pub fn export(&self, chronicle: &Chronicle) -> Value {
        self.export_to(chronicle, DEPTH_CAP)
    }

    fn export_to(&self, chronicle: &Chronicle, depth: usize) -> Value {
        let mut form = json::form(chronicle);
        if depth > 0 {
            let children = self.children(&chronicle.session.header);
            if !children.is_empty() {
                let forms = children.iter().map(|child| self.export_to(child, depth - 1));
                form["children"] = json!(forms.collect::<Vec<_>>());
            }
        }
        form
    }
}

pub use html::{page, turns_text};
pub(crate) use json::OWN;
pub use markdown::document;
pub use sanitize::sanitized;
