//! Lines that a person types. Reading a terminal cannot be interrupted, so one thread reads for the whole
//! run and hands each line to whoever asked last: a question that nobody waits for any more must not
//! take the answer to the next.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

type Line = Option<String>;

#[derive(Clone)]
pub struct Lines {
    wanted: Arc<Wanted>,
}

#[derive(Default)]
struct Wanted {
    /// Who asked last.
    by: Mutex<Option<Sender<Line>>>,
    changed: Condvar,
}

impl Wanted {
    fn lock(&self) -> MutexGuard<'_, Option<Sender<Line>>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// `read` gives nothing where the terminal is gone. It is called only while somebody wants a line.
    pub fn of(mut read: impl FnMut() -> Line + Send + 'static) -> Self {
        let wanted: Arc<Wanted> = Arc::default();
        let own = Arc::downgrade(&wanted);
        std::thread::spawn(move || {
            while let Some(wanted) = own.upgrade() {
                let is_wanted = |by: &mut Option<Sender<Line>>| by.is_none();
                let by = wanted.changed.wait_while(wanted.lock(), is_wanted);
                drop(by);
                let line = read();
                if let Some(by) = wanted.lock().take() {
                    // Whoever asked last may have left since.
                    by.send(line).ok();
                }
            }
        });
        Self { wanted }
    }

    /// Asks for a line, in the place of whoever asked before.
    fn ask(&self) -> Receiver<Line> {
        let (sender, receiver) = channel();
        *self.wanted.lock() = Some(sender);
        self.wanted.changed.notify_one();
        receiver
    }

    /// The next line; an empty one where the terminal is gone, and nothing at all where somebody else asks
    /// by now.
    pub fn next(&self) -> Option<Line> {
        self.ask().recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_to_whoever_asked_last() {
        let (keys, typed) = channel::<String>();
        let lines = Lines::of(move || typed.recv().ok());
        let first = lines.ask();
        // The first is outdated while the terminal is being read.
        let second = lines.ask();
        keys.send("yes".to_owned()).unwrap();
        assert_eq!(second.recv().unwrap().as_deref(), Some("yes"));
        assert!(first.recv().is_err(), "it must not answer what it was not asked");
        let third = lines.ask();
        keys.send("no".to_owned()).unwrap();
        assert_eq!(third.recv().unwrap().as_deref(), Some("no"));
        drop(keys);
        assert_eq!(lines.next(), Some(None), "the terminal is gone");
    }
}
