//! Diffs for people who decide, and for the record.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Bytes of a diff that are kept. Nobody decides by reading more.
const DIFF_CAP_BYTES: usize = 64 << 10;

/// A diff that takes longer is made coarser: it must not hold up the call.
const DIFF_TIME: Duration = Duration::from_millis(100);

pub(crate) struct Change {
    pub(crate) patch: String,
    pub(crate) additions: usize,
    pub(crate) deletions: usize,
}

/// The change from `old` to `new` as a unified patch. Bytes that are no text are shown replaced.
pub(crate) fn change(path: &str, old: &[u8], new: &[u8]) -> Change {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old.as_ref(), new.as_ref());
    let count = |tag| diff.iter_all_changes().filter(|c| c.tag() == tag).count();
    let mut patch = diff
        .unified_diff()
        .context_radius(4)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    if patch.len() > DIFF_CAP_BYTES {
        let mut end = DIFF_CAP_BYTES;
        while !patch.is_char_boundary(end) {
            end -= 1;
        }
        let hidden = patch.len() - end;
        patch.truncate(end);
        patch.push_str(&format!("\n… {hidden} more bytes of the diff are not shown\n"));
    }
    Change { patch, additions: count(ChangeTag::Insert), deletions: count(ChangeTag::Delete) }
}
