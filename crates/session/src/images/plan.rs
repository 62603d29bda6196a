//! What must be done to each path so that a row of changes has never happened.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::change::Change;
use super::state::State;

/// All changes of one path, as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Net {
    pub(super) first: State,
    /// What it was left as. Nothing where a change began and nobody saw its end.
    pub(super) last: Option<State>,
    /// Somebody else changed it between two of the changes; what it had been left as before that.
    pub(super) interfered: Option<State>,
    /// All that it was on the way, by our own account.
    own: Vec<State>,
}

/// `changes` in the order in which they happened.
pub(super) fn net<'a>(changes: impl IntoIterator<Item = &'a Change>) -> BTreeMap<PathBuf, Net> {
    let mut nets: BTreeMap<PathBuf, Net> = BTreeMap::new();
    for Change { path, before, after } in changes {
        let Some(net) = nets.get_mut(path) else {
            let own = [before].into_iter().chain(after).cloned().collect();
            let first = before.clone();
            nets.insert(path.clone(), Net { first, last: after.clone(), interfered: None, own });
            continue;
        };
        // What nobody saw the end of may have left anything. And after a crash something may be told
        // twice, from an earlier state on, which holds nothing of anybody else's.
        let expected = net.last.as_ref().is_none_or(|last| last == before);
        if !expected && !net.own.contains(before) {
            net.interfered.clone_from(&net.last);
        }
        // Whoever else it was put it back to where it had been: nothing of theirs can be lost.
        if *before == net.first {
            net.interfered = None;
        }
        net.own.extend([before].into_iter().chain(after).cloned());
        net.last.clone_from(after);
    }
    nets
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Restore,
    /// What it had been left as, for comparison.
    Conflict(State),
}

impl Net {
    pub(super) fn step(&self, now: &State) -> Step {
        if *now == self.first {
            return Step::Nothing;
        }
        match (&self.interfered, &self.last) {
            (Some(left), _) => Step::Conflict(left.clone()),
            (None, None) => Step::Restore,
            (None, Some(last)) if last == now => Step::Restore,
            (None, Some(last)) => Step::Conflict(last.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str) -> State {
        match name {
            "-" => State::Absent,
            name => State::Link { target: name.into() },
        }
    }

    fn step(changes: &[(&str, &str)], now: &str) -> Step {
        let changes: Vec<Change> = changes
            .iter()
            .map(|(before, after)| Change {
                path: "f".into(),
                before: state(before),
                after: (*after != "?").then(|| state(after)),
            })
            .collect();
        net(&changes)[std::path::Path::new("f")].step(&state(now))
    }

    #[test]
    fn what_becomes_of_a_row_of_changes() {
        let conflict = |left: &str| Step::Conflict(state(left));
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Step);
        let cases: &[Case<'_>] = &[
            (&[("a", "b")], "b", Step::Restore),
            (&[("a", "b")], "a", Step::Nothing),
            (&[("a", "b")], "x", conflict("b")),
            (&[("a", "b"), ("b", "c")], "c", Step::Restore),
            // Somebody wrote x over b, and we c over x.
            (&[("a", "b"), ("x", "c")], "c", conflict("b")),
            // Somebody had put it back themselves.
            (&[("a", "b"), ("a", "c")], "c", Step::Restore),
            // Begun and ended.
            (&[("a", "?"), ("a", "b")], "b", Step::Restore),
            (&[("a", "b"), ("b", "?"), ("b", "c")], "c", Step::Restore),
            // Begun, and nobody saw the end.
            (&[("a", "?")], "x", Step::Restore),
            (&[("a", "?")], "a", Step::Nothing),
            (&[("a", "?"), ("b", "c")], "c", Step::Restore),
            (&[("a", "?"), ("b", "c")], "x", conflict("c")),
            // Told twice, by a process that was killed and by the one that found out.
            (&[("a", "b"), ("b", "c"), ("b", "c")], "c", Step::Restore),
            (&[("a", "b"), ("b", "c"), ("b", "d")], "d", Step::Restore),
            (&[("a", "b"), ("x", "c"), ("x", "d")], "d", conflict("b")),
            // Made and removed.
            (&[("-", "b"), ("b", "-")], "-", Step::Nothing),
            (&[("-", "b")], "x", conflict("b")),
        ];
        for (changes, now, expected) in cases {
            assert_eq!(step(changes, now), *expected, "{changes:?} {now}");
        }
    }
}
