//! `tw run`: one prompt, headless, with an exit status that tells the truth.

mod ask;
mod commands;
mod input;
mod json;
mod lines;
mod opening;
mod text;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use toolwright::config::Command;
use toolwright::llm::Content;
use toolwright::session::TurnStatus;
use toolwright::{
    CancellationToken, Desk, DeskOptions, Engine, Event, Handover, JobInfo, Jobs, Selection,
    SessionChoice, TurnEnd, Workbench,
};

use self::opening::{Beginning, Opening};
use crate::args::{Effort, Format, Init, Run, Shared};
use crate::exit::{Exit, Problem};
use crate::terminal::{Style, harmless, note, print};

/// Events that the printer may lag behind before the loop waits for it.
const EVENTS_AHEAD: usize = 256;

/// Said wherever nothing holds any more.
pub const EVERYTHING: &str = "!!! EVERYTHING IS ALLOWED (--dangerously-allow-everything): no question is asked, and not even deleting \
     this machine's files is refused";

/// How long hooks may take to see an interrupted run out.
const FAREWELL: Duration = Duration::from_secs(1);

/// Something that shows a run.
trait Face: Send {
    /// Before the first event. A face that cannot write any more says so with an error.
    fn begin(&mut self, desk: &Desk) -> std::io::Result<()>;
    fn event(&mut self, event: &Event) -> std::io::Result<()>;
    /// Called now and then while nothing happens.
    fn tick(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn directory(shared: &Shared) -> std::path::PathBuf {
    shared.dir.clone().unwrap_or_else(|| std::path::PathBuf::from("."))
}

fn effort(effort: Effort) -> toolwright::llm::Effort {
    use toolwright::llm::Effort as Wanted;
    match effort {
        Effort::Off => Wanted::Off,
        Effort::Minimal => Wanted::Minimal,
        Effort::Low => Wanted::Low,
        Effort::Medium => Wanted::Medium,
        Effort::High => Wanted::High,
        Effort::Max => Wanted::Max,
    }
}

/// `tw init`: the command of that name, headless.
pub async fn init(shared: &Shared, options: Init) -> Result<Exit, Problem> {
    let mut words =
        vec!["run", "--command", "init"].into_iter().map(str::to_owned).collect::<Vec<_>>();
    if options.auto {
        words.push("--auto".to_owned());
    }
    if let Some(model) = options.model {
        words.extend(["-m".to_owned(), model]);
    }
    words.push("--".to_owned());
    words.extend(options.focus);
    let run = Run::try_parse_from(words).map_err(|e| Problem::usage(e.to_string()))?;
    self::run(shared, run).await
}

pub async fn run(shared: &Shared, mut options: Run) -> Result<Exit, Problem> {
    if options.fork && !options.resume && options.session.is_none() {
        return Err(Problem::usage("--fork needs a session to copy: add -c or -s ID"));
    }
    if options.from.is_some() && !options.resume && options.session.is_none() {
        return Err(Problem::usage("--from needs a session: add -c or -s ID"));
    }
    // A person can be asked where both the question and the answer have a terminal, and a program
    // where it talks to us.
    let interactive = options.format == Format::Text
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
        && !options.commands;
    let mut workbench = Workbench::open(&directory(shared), shared.trust)?;
    if interactive && crate::trust::is_agreed_to(&workbench)? {
        workbench = Workbench::open(&directory(shared), true)?;
    }
    let style = Style::for_stderr();
    let told = workbench.prepare(options.stance.mode()).await;
    for warning in workbench.config.warnings.iter().chain(&told) {
        note(&style.attention(&format!("! {warning}")));
    }
    let command = options
        .command
        .as_deref()
        .map(|name| Command::find(&workbench.config.settings, name).map_err(|e| (name, e)));
    let given = input::given(&options, workbench.image_limits()).await?;
    let own_words = options.prompt.join(" ");
    let text = given.text();
    let mut content = given.attached;
    let opening = match command {
        None => {
            if !text.is_empty() {
                content.insert(0, Content::text(text));
            }
            Opening::Words
        }
        // `server:prompt` is a prompt of an MCP server.
        Some(Err((name, error))) => match workbench.mcp.prompt_named(name) {
            Some((server, prompt)) => {
                // The words fill its arguments; what else was given stands beside it.
                let piped = (!given.piped.is_empty()).then(|| Content::text(given.piped));
                content.splice(0..0, [Content::text(format!("/{name}"))].into_iter().chain(piped));
                let words = options.prompt.clone();
                Opening::Server { server, prompt, words }
            }
            None => return Err(Problem::usage(error.to_string())),
        },
        Some(Ok(command)) => {
            // What it says itself counts where the person says nothing.
            let agent = command.agent.clone().filter(|name| workbench.agent(Some(name)).is_ok());
            options.agent = options.agent.take().or(agent);
            options.model = options.model.take().or_else(|| command.model.clone());
            // There is something to do even without arguments.
            content.insert(0, Content::text(format!("/{} {text}", command.name)));
            Opening::Command(Box::new(command), text)
        }
    };
    let (sender, events) = mpsc::channel(EVENTS_AHEAD);
    let session = match (&options.session, options.resume) {
        (Some(id), _) => SessionChoice::Id(id.clone()),
        (None, true) => SessionChoice::Latest,
        (None, false) => SessionChoice::New,
    };
    if content.is_empty() && session == SessionChoice::New {
        return Err(Problem::usage(
            "there is nothing to do: give a prompt, for example  tw run \"What is this project?\"",
        ));
    }
    if content.is_empty() && options.from.is_some() {
        return Err(Problem::usage("--from needs a prompt: what is to be said there?"));
    }
    let can_ask = interactive || (options.commands && options.format == Format::Json);
    let answer_form = options.output_schema.as_deref().map(input::answer_form).transpose()?;
    let trace = match &options.trace {
        None => None,
        Some(folder) => Some(toolwright::llm::Trace::new(folder).map_err(|e| {
            Problem::usage(format!("cannot keep a trace in {}: {e}", folder.display()))
        })?),
    };
    let desk = workbench
        .desk(DeskOptions {
            model: options.model.clone(),
            agent: options.agent.clone(),
            session,
            fork: options.fork,
            from: options.from.clone(),
            mode: options.stance.mode(),
            everything: options.stance.dangerously_allow_everything,
            rules: Vec::new(),
            asker: can_ask.then(|| sender.clone()),
            steps: options.max_steps,
            time: options.timeout.map(Duration::from_secs),
            cost: options.max_cost,
            effort: options.effort.map(effort),
            trace,
            answer_form,
        })
        .await?;
    if content.is_empty() && !desk.engine.session().is_open() {
        return Err(Problem::usage(
            "the session has nothing left to do: give a prompt to go on with it",
        ));
    }
    let mut face: Box<dyn Face> = match options.format {
        Format::Text => {
            Box::new(text::TextFace::new(style, options.thinking, options.output_schema.is_some()))
        }
        Format::Json => Box::new(json::JsonFace::new(desk.engine.session(), options.thinking)),
    };
    for notice in &desk.notices {
        note(&style.attention(&format!("! {notice}")));
    }
    if desk.gate.allows_everything() {
        note(&style.bad(EVERYTHING));
    }
    if desk.chosen == Selection::Demo && options.format == Format::Text {
        let text = "! no key and no local server found: this is the built-in demo model";
        note(&style.attention(text));
    }
    // A reader that is gone before anything was printed: nothing has been done yet.
    if face.begin(&desk).is_err() {
        return Ok(Exit::Failed);
    }
    let manner = Manner { interactive, commands: options.commands };
    let begin = Beginning { opening, given: content, own_words };
    let end = drive(desk, begin, sender, events, face, manner).await;
    // Whoever does not go by themselves is ended with everything else.
    tokio::time::timeout(FAREWELL, workbench.mcp.close()).await.ok();
    if options.output_schema.is_some()
        && end.status == TurnStatus::Done
        && options.format == Format::Text
    {
        print(&format!("{}\n", end.answer));
    }
    Ok(Exit::from(end.status))
}

/// Who talks to the run while it works.
struct Manner {
    interactive: bool,
    commands: bool,
}

/// Runs the turn, and those that were queued behind it, and shows it all until it has come to its end.
async fn drive(
    desk: Desk,
    begin: Beginning,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    face: Box<dyn Face>,
    manner: Manner,
) -> TurnEnd {
    let Desk { mut engine, questions, gate, jobs, handover, .. } = desk;
    let cancel = CancellationToken::new();
    if manner.commands {
        let listener = commands::Listener {
            inbox: engine.inbox(),
            questions: Arc::clone(&questions),
            gate,
            cancel: cancel.clone(),
            events: sender.clone(),
        };
        listener.listen();
    }
    let asker = manner.interactive.then(|| ask::Asker::new(questions));
    let shown = show(face, events, asker, cancel.clone());
    let work = async {
        let mut end = if !begin.given.is_empty() {
            match begin.content(&handover, &cancel, &sender).await {
                Ok(content) => Some(engine.prompt(content, &cancel, &sender).await),
                Err(end) => {
                    if let Some(text) = end.problem.clone() {
                        sender.send(Event::Notice { text }).await.ok();
                    }
                    sender.send(Event::TurnEnded(end.clone())).await.ok();
                    Some(end)
                }
            }
        } else if engine.session().is_cut_off() {
            Some(engine.resume(&cancel, &sender).await)
        } else {
            None
        };
        while let Some(next) =
            next_turn(&mut engine, &handover, end.as_ref().map(|e| e.status), &cancel, &sender)
                .await
        {
            end = Some(next);
        }
        tokio::select! {
            biased;
            _ = sender.send(Event::Idle) => {}
            () = cancel.cancelled() => {}
        }
        let waiting = engine.session().queued().len();
        if waiting > 0 {
            note(&format!("tw: {waiting} queued message(s) not said yet; go on with: tw run -c"));
        }
        name_jobs(&jobs);
        // The last event is on its way; a face that broke has cancelled and is gone, and one whose
        // reader does not read is not waited for by somebody who wants to leave.
        tokio::select! {
            _ = shown => {}
            () = async { cancel.cancelled().await; tokio::time::sleep(FAREWELL).await } => {}
        }
        tokio::select! {
            notices = engine.close() => notices.iter().for_each(|text| note(&format!("! {text}"))),
            // Somebody who wants to leave does not wait for the hooks that see them out.
            () = async { cancel.cancelled().await; tokio::time::sleep(FAREWELL).await } => {}
        }
        end
    };
    tokio::pin!(work);
    let mut stop = StopSignals::listen();
    loop {
        tokio::select! {
            biased;
            () = stop.next() => {
                if cancel.is_cancelled() {
                    // Asked twice: the person does not want to wait.
                    toolwright::end_everything();
                    std::process::exit(Exit::Interrupted.code());
                }
                cancel.cancel();
            }
            end = &mut work => return end.unwrap_or_else(nothing_done),
        }
    }
}

/// What comes after a turn that ended well: another agent that the person agreed to, then what was
/// queued. A call that was refused on the way does not undo what the person agreed to.
async fn next_turn(
    engine: &mut Engine,
    handover: &Handover,
    ended: Option<TurnStatus>,
    cancel: &CancellationToken,
    sender: &mpsc::Sender<Event>,
) -> Option<TurnEnd> {
    let is_done = ended.is_none_or(|status| status == TurnStatus::Done);
    let told = match is_done || ended == Some(TurnStatus::Denied) {
        true => handover.follow(engine).await,
        false => Ok(None),
    };
    match told {
        Ok(Some(told)) => Some(engine.prompt(told, cancel, sender).await),
        Ok(None) if is_done => engine.follow_up(cancel, sender).await,
        Ok(None) => None,
        Err(error) => {
            note(&format!("tw: the other agent cannot take over: {error}"));
            None
        }
    }
}

/// Jobs end with the run; whoever reads along should know which.
fn name_jobs(jobs: &Jobs) {
    let running = jobs.running();
    if running.is_empty() {
        return;
    }
    let name = |job: &JobInfo| format!("{} ({})", job.id, first_line(&job.command));
    let names: Vec<_> = running.iter().map(name).collect();
    note(&format!(
        "tw: ended {} job(s) that were still running: {}",
        names.len(),
        names.join(", ")
    ));
    jobs.end_all();
}

/// Enough of a command to know it again.
fn first_line(command: &str) -> String {
    const SHOWN: usize = 60;
    let line = command.trim().lines().next().unwrap_or_default();
    let shown: String = harmless(line).chars().take(SHOWN).collect();
    if shown.len() < command.trim().len() { format!("{shown}…") } else { shown }
}

/// There was nothing to go on with after all.
fn nothing_done() -> TurnEnd {
    TurnEnd {
        status: TurnStatus::Done,
        problem: None,
        advice: None,
        answer: "".into(),
        usage: toolwright::llm::Usage::default(),
        cost: None,
        steps: 0,
        denials: Vec::new(),
    }
}

/// Shows events on a thread of its own: a terminal or a pipe that does not take what is written
/// would otherwise hold up signals, deadlines and the turn itself.
fn show(
    mut face: Box<dyn Face>,
    mut events: mpsc::Receiver<Event>,
    asker: Option<ask::Asker>,
    cancel: CancellationToken,
) -> oneshot::Receiver<()> {
    const TICK: Duration = Duration::from_millis(100);
    let (done, finished) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        // What came while a person was thinking.
        let mut later = VecDeque::new();
        loop {
            let next = match later.pop_front() {
                Some(event) => Ok(Some(event)),
                None => runtime.block_on(async { tokio::time::timeout(TICK, events.recv()).await }),
            };
            let (result, is_last) = match next {
                Ok(Some(event)) => {
                    let result = face.event(&event);
                    let answered = match (&event, &asker) {
                        // What another answer has settled meanwhile is not asked any more.
                        (Event::Question { id, question, offer }, Some(asker))
                            if asker.is_waiting(*id) =>
                        {
                            Some((*id, asker.ask(*id, question, offer)))
                        }
                        (Event::Inquiry { id, inquiry }, Some(asker)) if asker.is_waiting(*id) => {
                            Some((*id, asker.inquire(*id, inquiry)))
                        }
                        _ => None,
                    };
                    if let Some((id, answered)) = answered {
                        // Nothing else is written until the person has answered.
                        let waiting =
                            wait_for_answer(id, answered, &mut events, &mut later, &cancel);
                        runtime.block_on(waiting);
                    }
                    // After an abort nothing follows.
                    let over = matches!(event, Event::TurnEnded(_)) && cancel.is_cancelled();
                    (result, over || matches!(event, Event::Idle))
                }
                Ok(None) => break,
                Err(_) => (face.tick(), false),
            };
            if result.is_err() {
                // Nobody reads any more: what cannot be shown should not go on.
                cancel.cancel();
                break;
            }
            if is_last {
                break;
            }
        }
        // Nobody waits any more after a second interrupt.
        done.send(()).ok();
    });
    finished
}

/// Until the person has answered, or nobody waits for it any more.
async fn wait_for_answer(
    id: u64,
    answered: oneshot::Receiver<()>,
    events: &mut mpsc::Receiver<Event>,
    later: &mut VecDeque<Event>,
    cancel: &CancellationToken,
) {
    tokio::pin!(answered);
    loop {
        let event = tokio::select! {
            _ = &mut answered => return,
            () = cancel.cancelled() => return note(""),
            event = events.recv() => event,
        };
        match event {
            None => return,
            Some(Event::QuestionClosed { id: closed }) if closed == id => {
                return note("\n(nobody waits for the answer any more)");
            }
            // How far something was is of no use later.
            Some(Event::CallProgress { .. }) => {}
            Some(event) => later.push_back(event),
        }
    }
}

/// SIGINT, SIGTERM and SIGHUP, all of them a wish to stop.
struct StopSignals(Vec<tokio::signal::unix::Signal>);

impl StopSignals {
    fn listen() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self.0.iter_mut().any(|s| s.poll_recv(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}
