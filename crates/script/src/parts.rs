//! Our own side of a script's world, in the form that an engine takes in fastest. Reading it as text
//! costs more than most scripts do, and every script has an engine of its own.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rquickjs::module::Declared;
use rquickjs::{Ctx, FromJs, Module, WriteOptions};

use crate::engine::Js;

/// What engines of this process have made of a part, each behind a lock of its own: whoever needs one that is
/// being read waits for it.
type Slot = Arc<Mutex<Option<Arc<[u8]>>>>;

fn slot(name: &'static str) -> Slot {
    static SLOTS: Mutex<BTreeMap<&'static str, Slot>> = Mutex::new(BTreeMap::new());
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(slots.entry(name).or_default())
}

/// The value of an expression of ours. The first engine reads it, and the others take what that has made
/// of it.
pub(crate) fn value<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, name: &'static str, code: &str) -> Js<V> {
    // There is nothing in it to wait for.
    let (module, _done) = module(ctx, name, code)?.eval()?;
    module.get("default")
}

fn module<'js>(ctx: &Ctx<'js>, name: &'static str, code: &str) -> Js<Module<'js, Declared>> {
    let slot = slot(name);
    let mut read = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = read.clone() {
        drop(read);
        // SAFETY: an engine of this very process wrote these bytes, below, and nobody else has them.
        return unsafe { Module::load(ctx.clone(), &bytes) };
    }
    let text = format!("export default {code};");
    let module = Module::declare(ctx.clone(), format!("toolwright:{name}"), text)?;
    // Its text is in this program anyway.
    let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
    *read = Some(module.write(options)?.into());
    Ok(module)
}
