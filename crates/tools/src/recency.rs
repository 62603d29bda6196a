//! The newest of many, in bounded memory and whatever order they are found in.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::PathBuf;
use std::time::SystemTime;

/// Keeps the most recently changed items until their weights reach the limit; older ones are let go.
pub(crate) struct Newest<T> {
    kept: BTreeMap<(Reverse<SystemTime>, PathBuf), (usize, T)>,
    weight: usize,
    limit: usize,
}

impl<T> Newest<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept: BTreeMap::new(), weight: 0, limit }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.weight >= self.limit
    }

    /// Whether something of this age can still be among the newest.
    pub(crate) fn has_room_for(&self, changed: SystemTime) -> bool {
        let oldest = self.kept.last_key_value().map(|((Reverse(oldest), _), _)| *oldest);
        !self.is_full() || oldest.is_none_or(|oldest| changed >= oldest)
    }

    pub(crate) fn offer(&mut self, changed: SystemTime, path: PathBuf, weight: usize, item: T) {
        if !self.has_room_for(changed) {
            return;
        }
        self.weight += weight;
        self.kept.insert((Reverse(changed), path), (weight, item));
        while let Some(last) = self.kept.last_entry() {
            let rest = self.weight - last.get().0;
            if rest < self.limit {
                break;
            }
            self.weight = rest;
            last.remove();
        }
    }

    /// Takes over what another one has kept.
    pub(crate) fn absorb(&mut self, other: Self) {
        for ((Reverse(changed), path), (weight, item)) in other.kept {
            self.offer(changed, path, weight, item);
        }
    }

    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Newest first; those of the same age by path.
    pub(crate) fn into_sorted(self) -> impl Iterator<Item = (PathBuf, T)> {
        self.kept.into_iter().map(|((_, path), (_, item))| (path, item))
    }
}

pub(crate) fn changed(data: &Metadata) -> SystemTime {
    data.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_order_of_arrival_keeps_the_same(
            items in proptest::collection::vec((0_u64..20, 1_usize..4), 0..60),
            limit in 1_usize..20,
            seed in any::<u64>(),
        ) {
            let named: Vec<_> = items.iter().enumerate().map(|(n, (age, weight))| {
                let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(*age);
                (changed, PathBuf::from(format!("{n:03}")), *weight)
            }).collect();
            let mut shuffled = named.clone();
            shuffled.sort_by_key(|(_, path, _)| {
                use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
                BuildHasherDefault::<DefaultHasher>::default().hash_one((seed, path))
            });
            let mut newest = Newest::new(limit);
            for (changed, path, weight) in shuffled {
                newest.offer(changed, path, weight, ());
            }
            let mut sorted = named;
            sorted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            let mut sum = 0;
            let expected: Vec<_> = sorted.into_iter().take_while(|(_, _, weight)| {
                let room = sum < limit;
                sum += weight;
                room
            }).map(|(_, path, _)| path).collect();
            prop_assert_eq!(newest.into_sorted().map(|(path, ())| path).collect::<Vec<_>>(), expected);
        }
    }
}
