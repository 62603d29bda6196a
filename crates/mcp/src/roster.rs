//! Which servers there are, for everybody who asks later: settings change while a program runs.

use std::sync::{Arc, Mutex, PoisonError};

use crate::server::Server;

pub(crate) type All = Arc<[Arc<Server>]>;

pub(crate) struct Roster(Mutex<All>);

impl Roster {
    pub(crate) fn new(servers: All) -> Arc<Self> {
        Arc::new(Self(Mutex::new(servers)))
    }

    pub(crate) fn now(&self) -> All {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, servers: All) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = servers;
    }
}
