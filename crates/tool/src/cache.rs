//! Results that are still true: a call that only reads is not answered twice while everything that
//! it read is unchanged. The model is told where the answer stands instead.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use toolwright_session::{Ending, Outcome};

use crate::access::{Access, Extent, Plan};

/// Below this an answer is as short as saying that it is unchanged.
const WORTH_BYTES: usize = 400;

/// How long what came from the web is taken as still true.
const WEB_TIME: Duration = Duration::from_secs(15 * 60);

/// Bytes of a file up to which its content is compared when only its stamp has changed.
const HASH_CAP_BYTES: u64 = 4 << 20;

/// Answers that are remembered; the oldest goes first.
const CAPACITY: usize = 256;

#[derive(Default)]
pub(crate) struct Cache {
    answers: Mutex<HashMap<(String, String), Answer>>,
}

struct Answer {
    step: usize,
    title: String,
    witnesses: Vec<Witness>,
}

/// Something whose change makes an answer stale.
enum Witness {
    Path { path: PathBuf, stamp: Option<Stamp>, content: Option<u64> },
    Web { until: Instant },
}

#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    modified: Option<SystemTime>,
    changed: (i64, i64),
    length: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let data = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: data.modified().ok(),
            changed: (data.ctime(), data.ctime_nsec()),
            length: data.len(),
            inode: data.ino(),
        })
    }
}

/// Taken before a call runs; what changed meanwhile makes its answer one that is not kept.
pub(crate) struct Before(Vec<Witness>);

impl Cache {
    /// Nothing if the plan does more than look at single paths or pages.
    pub(crate) fn before(plan: &Plan) -> Option<Before> {
        let witness = |access: &Access| match access {
            Access::Read { path, extent: Extent::Single } => {
                Some(Witness::Path { path: path.clone(), stamp: Stamp::of(path), content: None })
            }
            Access::Fetch { .. } => Some(Witness::Web { until: Instant::now() + WEB_TIME }),
            _ => None,
        };
        let witnesses: Option<Vec<_>> = plan.accesses.iter().map(witness).collect();
        witnesses.filter(|w| !w.is_empty()).map(Before)
    }

    pub(crate) fn keep(
        &self,
        tool: &str,
        arguments: &Value,
        step: usize,
        before: Before,
        outcome: &Outcome,
    ) {
        if outcome.ending != Ending::Completed || outcome.output.len() < WORTH_BYTES {
            return;
        }
        let mut witnesses = before.0;
        for witness in &mut witnesses {
            let Witness::Path { path, stamp, content } = witness else { continue };
            *content = content_hash(path, *stamp);
            if Stamp::of(path) != *stamp {
                return;
            }
        }
        let mut answers = self.lock();
        if answers.len() >= CAPACITY {
            let oldest = answers.iter().min_by_key(|(_, a)| a.step).map(|(key, _)| key.clone());
            oldest.and_then(|key| answers.remove(&key));
        }
        let answer = Answer { step, title: outcome.title.clone(), witnesses };
        answers.insert((tool.to_owned(), canonical(arguments)), answer);
    }

    /// The text that stands for the answer, if it is still true.
    pub(crate) fn unchanged(&self, tool: &str, arguments: &Value) -> Option<(String, String)> {
        let key = (tool.to_owned(), canonical(arguments));
        let mut answers = self.lock();
        let answer = answers.get(&key)?;
        if !answer.witnesses.iter().all(Witness::holds) {
            answers.remove(&key);
            return None;
        }
        let text = format!(
            "Unchanged since step {}: the result of the same {tool} call there is still true, word for word.",
            answer.step
        );
        Some((text, answer.title.clone()))
    }

    /// The conversation no longer holds the answers.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness {
    fn holds(&self) -> bool {
        match self {
            Self::Web { until } => Instant::now() < *until,
            Self::Path { path, stamp, content } => {
                let now = Stamp::of(path);
                // A file that was touched but says the same is the same.
                now == *stamp || (content.is_some() && content_hash(path, now) == *content)
            }
        }
    }
}

/// Nothing for folders, large files and what cannot be read.
fn content_hash(path: &Path, stamp: Option<Stamp>) -> Option<u64> {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    let small = stamp.is_some_and(|s| s.length <= HASH_CAP_BYTES) && path.is_file();
    let bytes = small.then(|| std::fs::read(path).ok()).flatten()?;
    Some(BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes))
}

/// The same text for the same arguments, however they were written.
pub fn canonical(arguments: &Value) -> String {
    match arguments {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            let pairs = keys
                .iter()
                .map(|k| format!("{}:{}", Value::from(k.as_str()), canonical(&object[*k])));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs::{self, File};

    fn outcome() -> Outcome {
        let text = "what it said ".repeat(50);
        crate::pipeline::outcome(Ending::Completed, "read", text, "a.txt")
    }

    fn plan(path: &Path) -> Plan {
        let access = Access::Read { path: path.to_owned(), extent: Extent::Single };
        Plan::new("read a.txt", vec![access])
    }

    #[test]
    fn an_answer_holds_while_the_content_is_the_same_and_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "one").unwrap();
        let cache = Cache::default();
        let arguments = json!({"filePath": "a.txt", "limit": 5});
        cache.keep("read", &arguments, 3, Cache::before(&plan(&path)).unwrap(), &outcome());
        // However the arguments were written.
        let same = json!({"limit": 5, "filePath": "a.txt"});
        assert!(cache.unchanged("read", &same).unwrap().0.contains("since step 3"));
        assert!(cache.unchanged("read", &json!({"filePath": "a.txt"})).is_none());
        // A new stamp on the same content is no change.
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(cache.unchanged("read", &arguments).is_some());
        fs::write(&path, "two").unwrap();
        assert!(cache.unchanged("read", &arguments).is_none());
        assert!(cache.unchanged("read", &arguments).is_none(), "and it does not come back");
    }

    #[test]
    fn what_changed_while_it_was_read_is_not_kept_and_what_does_more_than_read_never_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "one").unwrap();
        let cache = Cache::default();
        let before = Cache::before(&plan(&path)).unwrap();
        fs::write(&path, "longer than one").unwrap();
        cache.keep("read", &json!({}), 1, before, &outcome());
        assert!(cache.unchanged("read", &json!({})).is_none());
        let write = Access::Write { path: path.clone(), diff: String::new() };
        assert!(Cache::before(&Plan::new("", vec![write])).is_none());
        let search = Access::Search { permission: "grep", pattern: "x".into(), root: path };
        assert!(Cache::before(&Plan::new("", vec![search])).is_none());
        assert!(Cache::before(&Plan::new("", Vec::new())).is_none());
    }

    #[test]
    fn the_number_of_kept_answers_is_bounded_and_they_can_be_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "one").unwrap();
        let cache = Cache::default();
        for n in 0..CAPACITY + 10 {
            let before = Cache::before(&plan(&path)).unwrap();
            cache.keep("read", &json!({ "n": n }), n, before, &outcome());
        }
        assert_eq!(cache.lock().len(), CAPACITY);
        assert!(cache.unchanged("read", &json!({"n": 0})).is_none(), "the oldest went");
        cache.clear();
        assert!(cache.unchanged("read", &json!({"n": 100})).is_none());
    }
}
