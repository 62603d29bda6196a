//! Our own side of a script's world, in the form that an engine takes in fastest. Reading it as text
//! costs more than most scripts do, and every script has an engine of its own.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once, PoisonError};

use rquickjs::module::Declared;
use rquickjs::{Context, Ctx, FromJs, Module, Runtime, WriteOptions};

use crate::engine::{Js, throw};

/// The parts of `js/`, each read when it is first used.
const PARTS: &[(&str, &str)] = &[
    ("args", include_str!("js/args.js")),
    ("base", include_str!("js/base.js")),
    ("buffer", include_str!("js/buffer.js")),
    ("bun", include_str!("js/bun.js")),
    ("crypto", include_str!("js/crypto.js")),
    ("events", include_str!("js/events.js")),
    ("files", include_str!("js/files.js")),
    ("foreign", include_str!("js/foreign.js")),
    ("handles", include_str!("js/handles.js")),
    ("http", include_str!("js/http.js")),
    ("intl", include_str!("js/intl.js")),
    ("node", include_str!("js/node.js")),
    ("path", include_str!("js/path.js")),
    ("process", include_str!("js/process.js")),
    ("run", include_str!("js/run.js")),
    ("schema", include_str!("js/schema.js")),
    ("stream", include_str!("js/stream.js")),
    ("text", include_str!("js/text.js")),
    ("tools", include_str!("js/tools.js")),
    ("util", include_str!("js/util.js")),
    ("wasm", include_str!("js/wasm.js")),
    ("web", include_str!("js/web.js")),
];

/// Those that every tool needs, but for the one that is read first anyway.
const AHEAD: &[&str] = &["schema", "node", "path"];

/// What engines of this process have made of a part, each behind a lock of its own: whoever needs one that is
/// being read waits for it.
type Slot = Arc<Mutex<Option<Arc<[u8]>>>>;

fn slot(key: &str) -> Slot {
    static SLOTS: Mutex<BTreeMap<String, Slot>> = Mutex::new(BTreeMap::new());
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    match slots.get(key) {
        Some(slot) => Arc::clone(slot),
        None => Arc::clone(slots.entry(key.to_owned()).or_default()),
    }
}

/// The value of a part. The first engine reads it, and the others take what that has made of it.
pub(crate) fn value<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, name: &str) -> Js<V> {
    // There is nothing in it to wait for.
    let (module, _done) = part(ctx, name)?.eval()?;
    module.get("default")
}

fn part<'js>(ctx: &Ctx<'js>, name: &str) -> Js<Module<'js, Declared>> {
    let known = PARTS.iter().find(|(known, _)| *known == name);
    let (_, code) = known.ok_or_else(|| throw(ctx, "no such part"))?;
    shared(ctx, name, &format!("toolwright:{name}"), || format!("export default {code};"))
}

/// A module of ours whose text is always the same where its key is.
pub(crate) fn shared<'js>(
    ctx: &Ctx<'js>,
    key: &str,
    name: &str,
    text: impl FnOnce() -> String,
) -> Js<Module<'js, Declared>> {
    let slot = slot(key);
    let mut read = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = read.clone() {
        drop(read);
        // SAFETY: an engine of this very process wrote these bytes, below, and nobody else has them.
        return unsafe { Module::load(ctx.clone(), &bytes) };
    }
    let module = Module::declare(ctx.clone(), name, text())?;
    // Its text is in this program anyway.
    let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
    *read = Some(module.write(options)?.into());
    Ok(module)
}

/// Reads some beside the first engine that begins: two processors are done with it sooner than one.
pub(crate) fn read_ahead() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let read = || {
            let Ok(runtime) = Runtime::new() else { return };
            let Ok(context) = Context::full(&runtime) else { return };
            context.with(|ctx| {
                for name in AHEAD {
                    // Whoever needs it will read it then, and say what is wrong with it.
                    part(&ctx, name).map(drop).ok();
                }
            });
        };
        let thread = std::thread::Builder::new().name("script parts".to_owned());
        thread.spawn(read).map(drop).ok();
    });
}
