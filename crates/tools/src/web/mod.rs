//! Tools that look outside: pages by their address, and searches.

mod address;
mod fetch;
mod http;
mod page;
mod rough;
mod search;
mod table;

pub use fetch::{WebFetch, WebFetchOptions};
pub use search::{CodeSearch, SearchOptions, SearchProvider, WebSearch};

#[cfg(test)]
mod fetch_tests;
#[cfg(test)]
mod search_tests;
