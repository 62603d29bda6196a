//! A scripted model on loopback: answers requests in the order of its script and keeps them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::answer::{After, Answer, Reply};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

impl Wire {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    /// A model that speaks this wire, as `tw` is told.
    pub fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic/m",
            Self::Chat => "openai-chat/m",
            Self::Responses => "openai/m",
            Self::Gemini => "google/m",
        }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Captured {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub raw: Vec<u8>,
    pub body: Value,
}

impl Captured {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

type Respond = Box<dyn Fn(&Captured) -> Answer + Send + Sync>;

struct Shared {
    script: Mutex<std::collections::VecDeque<Answer>>,
    /// Answers what the script does not.
    respond: Option<Respond>,
    requests: Mutex<Vec<Captured>>,
    resumed: (Mutex<bool>, std::sync::Condvar),
    arrived: Sender<()>,
    open: Mutex<Vec<TcpStream>>,
    closing: AtomicBool,
}

pub struct ModelServer {
    shared: Arc<Shared>,
    port: u16,
    arrivals: Mutex<Receiver<()>>,
}

impl ModelServer {
    /// Starts with a script; a request beyond its end gets status 500.
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(script.into_iter().collect(), None)
    }

    /// Answers each request by what it says, in whatever order they come.
    pub fn answering(respond: impl Fn(&Captured) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(std::collections::VecDeque::new(), Some(Box::new(respond)))
    }

    fn with(script: std::collections::VecDeque<Answer>, respond: Option<Respond>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        let (arrived, arrivals) = channel();
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            respond,
            requests: Mutex::default(),
            resumed: Default::default(),
            arrived,
            open: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.closing.load(Ordering::SeqCst) {
                    return;
                }
                accepting.open.lock().unwrap().push(stream.try_clone().expect("a handle"));
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { shared, port, arrivals: Mutex::new(arrivals) }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Adds to the script.
    pub fn then(&self, answer: impl Into<Answer>) {
        self.shared.script.lock().unwrap().push_back(answer.into());
    }

    pub fn requests(&self) -> Vec<Captured> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub fn last_request(&self) -> Captured {
        self.requests().pop().expect("a request")
    }

    /// Lets answers that paused go on, now and from here on.
    pub fn resume(&self) {
        *self.shared.resumed.0.lock().unwrap() = true;
        self.shared.resumed.1.notify_all();
    }

    /// Waits until one more request has come in.
    pub fn wait_for_request(&self) {
        let arrivals = self.arrivals.lock().unwrap();
        arrivals.recv_timeout(crate::PATIENCE).expect("a request in time");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        for stream in self.shared.open.lock().unwrap().iter() {
            stream.shutdown(Shutdown::Both).ok();
        }
        // Wakes the accepting thread so that it sees the flag.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// Answers the requests of one connection until either side has enough.
fn serve(shared: &Shared, mut stream: TcpStream) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    loop {
        let silent = matches!(shared.script.lock().unwrap().front(), Some(Answer::Silence));
        if silent {
            shared.script.lock().unwrap().pop_front();
            shared.arrived.send(()).ok();
            return hold(&mut stream);
        }
        let Some(captured) = read_request(&mut reader) else { return };
        let wire = match captured.path.as_str() {
            path if path.ends_with("/messages") => Wire::Anthropic,
            path if path.ends_with("/responses") => Wire::Responses,
            path if path.contains(":streamGenerateContent") => Wire::Gemini,
            _ => Wire::Chat,
        };
        // Taken before anybody hears of the request: what a test adds then is for the next one.
        let scripted = shared.script.lock().unwrap().pop_front();
        let by_rule = || shared.respond.as_ref().map(|respond| respond(&captured));
        let answer = scripted.or_else(by_rule);
        shared.requests.lock().unwrap().push(captured);
        shared.arrived.send(()).ok();
        let answer = answer.unwrap_or_else(|| Answer::status(500, "the script is at its end"));
        if !respond(shared, &mut stream, answer, wire) {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Captured> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(n, _)| n == "content-length");
    let length = length.and_then(|(_, v)| v.parse().ok()).unwrap_or(0);
    let mut raw = vec![0; length];
    reader.read_exact(&mut raw).ok()?;
    let body = serde_json::from_slice(&raw).unwrap_or(Value::Null);
    Some(Captured { path, headers, raw, body })
}

/// Whether the connection may be used again.
fn respond(shared: &Shared, stream: &mut TcpStream, answer: Answer, wire: Wire) -> bool {
    let sent = match answer {
        Answer::Reply(reply) => return send_reply(shared, stream, &reply, wire),
        Answer::Status { status, headers, body } => {
            let extra: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {length}\r\n{extra}\r\n");
            stream.write_all((head + &body).as_bytes())
        }
        Answer::Raw(bytes) => {
            // Without a length: the end of the connection is the end of the body.
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes)).ok();
            stream.shutdown(Shutdown::Both).ok();
            return false;
        }
        Answer::Pieces { pieces, after } => {
            send_pieces(stream, &pieces, after);
            return false;
        }
        Answer::Close => {
            stream.shutdown(Shutdown::Both).ok();
            return false;
        }
        Answer::Silence => {
            hold(stream);
            return false;
        }
    };
    sent.is_ok()
}

fn send_reply(shared: &Shared, stream: &mut TcpStream, reply: &Reply, wire: Wire) -> bool {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let (before, after) = reply.encode(wire);
    let size = reply.split.unwrap_or(usize::MAX).max(1);
    let send = |stream: &mut TcpStream, bytes: &[u8]| -> std::io::Result<()> {
        for piece in bytes.chunks(size.min(bytes.len().max(1))) {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
            stream.flush()?;
        }
        Ok(())
    };
    if stream.write_all(head.as_bytes()).and_then(|()| send(stream, &before)).is_err() {
        return false;
    }
    if reply.hold_after_text {
        hold(stream);
        return false;
    }
    if reply.pause_after_text {
        let mut resumed = shared.resumed.0.lock().unwrap();
        while !*resumed {
            let (guard, waited) =
                shared.resumed.1.wait_timeout(resumed, crate::PATIENCE).expect("a lock");
            assert!(!waited.timed_out(), "nobody let the answer go on");
            resumed = guard;
        }
    }
    if reply.cut_after_text {
        send(stream, b"event: content_block_del").ok();
        stream.shutdown(Shutdown::Both).ok();
        return false;
    }
    send(stream, &after).and_then(|()| stream.write_all(b"0\r\n\r\n")).is_ok()
}

fn send_pieces(stream: &mut TcpStream, pieces: &[Vec<u8>], after: After) {
    let length = if after == After::Reset { "content-length: 1000000\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{length}connection: close\r\n\r\n"
    );
    let mut sent = stream.write_all(head.as_bytes());
    for piece in pieces {
        sent = sent.and_then(|()| stream.write_all(piece)).and_then(|()| stream.flush());
    }
    match after {
        After::Close => stream.shutdown(Shutdown::Both).unwrap_or_default(),
        After::Hold => hold(stream),
        After::Reset => {
            // A length that is never reached: the client sees the body break off.
            stream.shutdown(Shutdown::Both).unwrap_or_default();
        }
        After::Forever => {
            let piece = pieces.last().cloned().unwrap_or_default();
            while sent.is_ok() && !piece.is_empty() {
                sent = stream.write_all(&piece);
            }
        }
        After::ForeverAt(per_second) => {
            let piece = pieces.last().cloned().unwrap_or_default();
            let begun = std::time::Instant::now();
            let mut count = 0_u64;
            while sent.is_ok() {
                // By the clock, so that what was slept too long is made up for.
                let due = begun.elapsed().as_micros() as u64 * u64::from(per_second) / 1_000_000;
                while count < due && sent.is_ok() {
                    sent = stream.write_all(&piece);
                    count += 1;
                }
                std::thread::park_timeout(std::time::Duration::from_micros(500));
            }
        }
    }
}

/// Waits until the other side hangs up (or the server is dropped).
fn hold(stream: &mut TcpStream) {
    let mut sink = [0; 1024];
    while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
}
