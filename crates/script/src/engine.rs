//! The engine inside a script's thread: what scripts can reach of the host, and where modules come from.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::{digest, hmac, rand};
use rquickjs::context::EvalOptions;
use rquickjs::prelude::Opt;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Exception, Function, Module, Object, Runtime, TypedArray, Value};
use serde_json::json;

use crate::ask::{ask, ask_and_wait};
use crate::memory::{Counted, Peak};
use crate::modules::Modules;
use crate::parts;
use crate::realm::{ScriptError, Shared, thrown};
use crate::resolve::{Way, resolve};
use crate::source::{Form, prepare};

pub(crate) type Js<T> = rquickjs::Result<T>;

/// Deep enough for people's recursion, far from the thread's own end.
const STACK_BYTES: usize = 1 << 20;

/// Our own side alone would be swept three times over before a script has said a word.
const FIRST_SWEEP_BYTES: usize = 4 << 20;

/// Where our side of the script stands in its world.
pub(crate) const ENTRY: &str = "__toolwright";

/// What Node's modules are known to have, a line for each.
const NAMES: &str = include_str!("js/names.txt");

pub(crate) struct Engine {
    context: Context,
    runtime: Runtime,
    out_of_memory: Arc<AtomicBool>,
}

impl Engine {
    pub(crate) fn new(shared: &Arc<Shared>, memory_bytes: usize) -> Result<Self, String> {
        let failed = |e: rquickjs::Error| e.to_string();
        parts::read_ahead();
        let peak = Peak::default();
        let runtime = Runtime::new_with_alloc(Counted::new(&peak)).map_err(failed)?;
        runtime.set_memory_limit(memory_bytes);
        runtime.set_gc_threshold(FIRST_SWEEP_BYTES);
        runtime.set_max_stack_size(STACK_BYTES);
        let watched = Arc::clone(shared);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let modules = Modules { shared: Arc::clone(shared) };
        runtime.set_loader(modules.clone(), modules);
        let context = Context::full(&runtime).map_err(failed)?;
        let out_of_memory = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&out_of_memory);
        context
            .with(|ctx| {
                let is_full = move || peak.reached(memory_bytes);
                let host = host_object(&ctx, shared, flag)?;
                host.set("isFull", Function::new(ctx.clone(), is_full)?)?;
                let begin: Function<'_> = parts::value(&ctx, "base")?;
                let entry: Object<'_> = begin.call((host,))?;
                ctx.globals().prop(ENTRY, rquickjs::object::Property::from(entry))
            })
            .map_err(failed)?;
        Ok(Self { context, runtime, out_of_memory })
    }

    pub(crate) fn call(&self, id: u64, kind: &str, payload: &str) -> Result<(), String> {
        self.enter("call", (id as f64, kind, payload))
    }

    pub(crate) fn reply(&self, id: u64, good: bool, payload: &str) -> Result<(), String> {
        self.enter("reply", (id as f64, good, payload))
    }

    pub(crate) fn abort(&self, id: u64) -> Result<(), String> {
        self.enter("abort", (id as f64,))
    }

    fn enter<A>(&self, name: &str, arguments: A) -> Result<(), String>
    where
        A: for<'js> rquickjs::function::IntoArgs<'js>,
    {
        self.context.with(|ctx| {
            let entry: Object<'_> = ctx.globals().get(ENTRY).map_err(|e| e.to_string())?;
            let function: Function<'_> = entry.get(name).map_err(|e| e.to_string())?;
            let called: Js<Value<'_>> = function.call(arguments);
            called.map(drop).map_err(|e| words(&ctx, &e))
        })
    }

    /// Lets promises go on until all of them wait for something.
    pub(crate) fn run_pending(&self) -> Result<(), String> {
        loop {
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(exception) => {
                    let context = exception.0;
                    return Err(context.with(|ctx| words(&ctx, &rquickjs::Error::Exception)));
                }
            }
        }
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.out_of_memory.load(Ordering::Relaxed)
    }
}

/// What the engine says about a failure.
fn words(ctx: &Ctx<'_>, error: &rquickjs::Error) -> String {
    if !error.is_exception() {
        return error.to_string();
    }
    let thrown = ctx.catch();
    match thrown.as_exception() {
        Some(exception) => exception.message().unwrap_or_else(|| "it failed".to_owned()),
        None => "it failed".to_owned(),
    }
}

fn evaluate<'js, V: rquickjs::FromJs<'js>>(ctx: &Ctx<'js>, code: &str, name: &str) -> Js<V> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(code, options)
}

pub(crate) fn throw(ctx: &Ctx<'_>, message: &str) -> rquickjs::Error {
    Exception::throw_message(ctx, message)
}

/// Closures with the engine's lifetime in their arguments and in their answer need to be told so.
fn with_text<F>(function: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, String) -> Js<Value<'js>> + 'static,
{
    function
}

fn host_object<'js>(
    ctx: &Ctx<'js>,
    shared: &Arc<Shared>,
    out_of_memory: Arc<AtomicBool>,
) -> Js<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    let own = || Arc::clone(shared);
    let me = own();
    host.set(
        "send",
        Function::new(ctx.clone(), move |id: f64, op: String, payload: String| {
            ask(&me, id as u64, op, &payload);
        })?,
    )?;
    let me = own();
    host.set(
        "sendSync",
        Function::new(ctx.clone(), move |op: String, payload: String| {
            ask_and_wait(&me, op, &payload)
        })?,
    )?;
    let me = own();
    host.set(
        "done",
        Function::new(ctx.clone(), move |id: f64, good: bool, payload: String| {
            let result = if good {
                serde_json::from_str(&payload)
                    .map_err(|e| ScriptError::Thrown { message: e.to_string(), code: None })
            } else {
                let error = thrown(&me, &payload);
                if error == ScriptError::Memory {
                    out_of_memory.store(true, Ordering::Relaxed);
                    me.close();
                }
                Err(error)
            };
            me.done(id as u64, result);
        })?,
    )?;
    let me = own();
    host.set(
        "say",
        Function::new(ctx.clone(), move |level: String, text: String| {
            me.log(&level, &text);
        })?,
    )?;
    let me = own();
    host.set(
        "note",
        Function::new(ctx.clone(), move |note: String| {
            me.note(serde_json::from_str(&note).unwrap_or_default());
        })?,
    )?;
    let me = own();
    host.set("notice", Function::new(ctx.clone(), move |text: String| me.host.notice(text))?)?;
    host.set(
        "resolve",
        Function::new(ctx.clone(), |ctx: Ctx<'_>, from: String, name: String| {
            resolve(&from, &name, Way::Require).map_err(|problem| throw(&ctx, &problem))
        })?,
    )?;
    let me = own();
    host.set(
        "source",
        Function::new(ctx.clone(), move |ctx: Ctx<'_>, path: String| {
            me.read(&path).map_err(|problem| throw(&ctx, &problem))
        })?,
    )?;
    let me = own();
    let compile = with_text(move |ctx, path| {
        let source = me.load(&path).map_err(|problem| throw(&ctx, &problem))?;
        if source.form == Form::Module {
            return required(&ctx, &path);
        }
        let head = "(function (exports, require, module, __filename, __dirname) {";
        me.put_before(&path, head);
        evaluate(&ctx, &format!("{head}{}\n}})", source.code), &path)
    });
    host.set("compile", Function::new(ctx.clone(), compile)?)?;
    let part = with_text(|ctx, name| parts::value(&ctx, &name));
    host.set("part", Function::new(ctx.clone(), part)?)?;
    let import = with_text(|ctx, path| Ok(Module::import(&ctx, path)?.into_value()));
    host.set("importFile", Function::new(ctx.clone(), import)?)?;
    let script = with_text(|ctx, code| {
        let text = format!("(async function (tools, console) {{\n{code}\n}})");
        let source =
            prepare(Path::new("script.ts"), &text).map_err(|problem| throw(&ctx, &problem))?;
        evaluate(&ctx, &source.code, "script")
    });
    host.set("script", Function::new(ctx.clone(), script)?)?;
    host.set(
        "names",
        Function::new(ctx.clone(), |module: String| {
            NAMES.lines().find_map(|line| line.strip_prefix(&module)?.strip_prefix(": "))
        })?,
    )?;
    let me = own();
    host.set("facts", Function::new(ctx.clone(), move || me.host.facts().to_string())?)?;
    let me = own();
    host.set("settings", Function::new(ctx.clone(), move || me.host.settings())?)?;
    bytes_and_hashes(ctx, &host)?;
    Ok(host)
}

/// What a module exports, for somebody who cannot wait: as long as it does not either.
fn required<'js>(ctx: &Ctx<'js>, path: &str) -> Js<Value<'js>> {
    let code = format!("import * as whole from {};\nexport {{ whole }};\n", json!(path));
    let module = Module::declare(ctx.clone(), format!("require:{path}"), code)?;
    let (module, done) = module.eval()?;
    match done.state() {
        PromiseState::Resolved => module.get("whole"),
        PromiseState::Rejected => done.result().unwrap_or(Err(rquickjs::Error::Unknown)),
        PromiseState::Pending => {
            let words = format!("{path} is an ES module that waits: use import instead of require");
            Err(throw(ctx, &words))
        }
    }
}

fn bytes_and_hashes<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Js<()> {
    host.set(
        "url",
        Function::new(ctx.clone(), |href: String, base: Opt<Option<String>>| {
            parts_of_url(&href, base.0.flatten().as_deref())
        })?,
    )?;
    let utf8 = with_text(|ctx, text| Ok(TypedArray::new(ctx, text.into_bytes())?.into_value()));
    host.set("utf8", Function::new(ctx.clone(), utf8)?)?;
    let decode = with_text(|ctx, text| {
        let bytes =
            STANDARD.decode(&text).or_else(|_| STANDARD_NO_PAD.decode(text.trim_end_matches('=')));
        let bytes = bytes.map_err(|_| throw(&ctx, "the text is no base64"))?;
        Ok(TypedArray::new(ctx, bytes)?.into_value())
    });
    host.set("decodeBase64", Function::new(ctx.clone(), decode)?)?;
    host.set(
        "encodeBase64",
        Function::new(ctx.clone(), |bytes: TypedArray<'_, u8>| STANDARD.encode(copied(&bytes)))?,
    )?;
    host.set(
        "text",
        Function::new(ctx.clone(), |bytes: TypedArray<'_, u8>| {
            String::from_utf8_lossy(&copied(&bytes)).into_owned()
        })?,
    )?;
    fn random<'js>(ctx: Ctx<'js>, count: f64) -> Js<TypedArray<'js, u8>> {
        const CAP: f64 = 65536.0;
        let mut bytes = vec![0; count.clamp(0.0, CAP) as usize];
        let filled = rand::SecureRandom::fill(&rand::SystemRandom::new(), &mut bytes);
        filled.map_err(|_| throw(&ctx, "there is no randomness to be had"))?;
        TypedArray::new(ctx, bytes)
    }
    host.set("random", Function::new(ctx.clone(), random)?)?;
    fn hash<'js>(
        ctx: Ctx<'js>,
        name: String,
        data: TypedArray<'js, u8>,
        key: Opt<Option<TypedArray<'js, u8>>>,
    ) -> Js<TypedArray<'js, u8>> {
        if name == "md5" && key.0.as_ref().is_none_or(Option::is_none) {
            use md5::Digest as _;
            return TypedArray::new(ctx, md5::Md5::digest(copied(&data)).to_vec());
        }
        let (plain, keyed) = match name.as_str() {
            "sha1" => (&digest::SHA1_FOR_LEGACY_USE_ONLY, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
            "sha256" => (&digest::SHA256, hmac::HMAC_SHA256),
            "sha384" => (&digest::SHA384, hmac::HMAC_SHA384),
            "sha512" => (&digest::SHA512, hmac::HMAC_SHA512),
            _ => {
                let known = "md5, sha1, sha256, sha384, sha512";
                return Err(throw(
                    &ctx,
                    &format!("the hash {name} is not available; known: {known}"),
                ));
            }
        };
        let data = &copied(&data);
        let made = match key.0.flatten() {
            None => digest::digest(plain, data).as_ref().to_vec(),
            Some(key) => {
                let key = hmac::Key::new(keyed, &copied(&key));
                hmac::sign(&key, data).as_ref().to_vec()
            }
        };
        TypedArray::new(ctx, made)
    }
    host.set("hash", Function::new(ctx.clone(), hash)?)?;
    Ok(())
}

#[allow(unsafe_code)]
fn copied(bytes: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: no script runs between here and the end of the copy, so nobody changes or detaches it.
    unsafe { bytes.as_bytes() }.unwrap_or_default().to_vec()
}

fn parts_of_url(href: &str, base: Option<&str>) -> Option<String> {
    let base = match base {
        None => None,
        Some(base) => Some(reqwest::Url::parse(base).ok()?),
    };
    let url = reqwest::Url::options().base_url(base.as_ref()).parse(href).ok()?;
    let port = url.port().map(|p| p.to_string()).unwrap_or_default();
    let hostname = url.host_str().unwrap_or_default().to_owned();
    let host = if port.is_empty() { hostname.clone() } else { format!("{hostname}:{port}") };
    let marked = |mark: char, text: Option<&str>| match text {
        Some(text) if !text.is_empty() => format!("{mark}{text}"),
        _ => String::new(),
    };
    let parts = json!({
        "href": url.as_str(), "protocol": format!("{}:", url.scheme()), "username": url.username(),
        "password": url.password().unwrap_or_default(), "host": host, "hostname": hostname,
        "port": port, "pathname": url.path(), "search": marked('?', url.query()),
        "hash": marked('#', url.fragment()), "origin": url.origin().ascii_serialization(),
    });
    Some(parts.to_string())
}
