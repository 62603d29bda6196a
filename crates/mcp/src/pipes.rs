//! A server's pipes as a transport: one message a line.
//!
//! The SDK has one too; it drops a line that is too long without a word, so that whoever waits for
//! the answer waits until the deadline. This one answers in the server's place, and remembers noise.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::tail::Tail;

/// Bytes of one message. A screenshot in base64 has some two million.
pub(crate) const MESSAGE_CAP_BYTES: usize = 16 << 20;

/// Bytes that are read at a time: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// Bytes from both ends of a message that was too large: its id stands at one of them.
const ENDS_BYTES: usize = 512;

/// How long a server may leave its input unread before it counts as hanging.
const UNREAD_LIMIT: Duration = Duration::from_secs(10);

/// Bytes of a line that is no message, for people.
const NOISE_CAP_BYTES: usize = 200;

pub(crate) struct Pipes<R, W> {
    output: BufReader<R>,
    line: Line,
    input: Arc<Mutex<Option<W>>>,
    tail: Arc<Tail>,
}

/// A line as far as it has come. Kept between calls: reading may be interrupted anywhere.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Of a line that is too long: how long it is, and its ends.
    beyond: Option<Beyond>,
}

struct Beyond {
    length: usize,
    head: Vec<u8>,
    end: Vec<u8>,
}

enum Whole {
    Message(Vec<u8>),
    TooLong(Beyond),
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Pipes<R, W> {
    pub(crate) fn new(output: R, input: W, tail: Arc<Tail>) -> Self {
        let input = Arc::new(Mutex::new(Some(input)));
        Self {
            output: BufReader::with_capacity(READ_BYTES, output),
            line: Line::default(),
            input,
            tail,
        }
    }

    /// The next whole line; nothing at the end.
    async fn next_line(&mut self) -> Option<Whole> {
        loop {
            // Nothing is lost if this is interrupted: it gives the same bytes again.
            let available = match self.output.fill_buf().await {
                Ok([]) | Err(_) => return None,
                Ok(available) => available,
            };
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            self.line.push(&available[..end.unwrap_or(taken)]);
            self.output.consume(taken);
            if end.is_some() {
                return Some(self.line.take());
            }
        }
    }
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(beyond) = &mut self.beyond {
            return beyond.push(bytes);
        }
        if self.bytes.len() + bytes.len() <= MESSAGE_CAP_BYTES {
            return self.bytes.extend_from_slice(bytes);
        }
        let so_far = std::mem::take(&mut self.bytes);
        let head = so_far[..so_far.len().min(ENDS_BYTES)].to_vec();
        let mut beyond = Beyond { length: 0, head, end: Vec::new() };
        beyond.push(&so_far);
        beyond.push(bytes);
        self.beyond = Some(beyond);
    }

    fn take(&mut self) -> Whole {
        match self.beyond.take() {
            Some(beyond) => Whole::TooLong(beyond),
            None => Whole::Message(std::mem::take(&mut self.bytes)),
        }
    }
}

impl Beyond {
    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        self.end.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS_BYTES)..]);
        let excess = self.end.len().saturating_sub(ENDS_BYTES);
        self.end.drain(..excess);
    }

    /// The answer that the message would have been: an error under its id.
    fn as_answer(&self) -> Option<ServerJsonRpcMessage> {
        let id = own_id(&self.end, true).or_else(|| own_id(&self.head, false))?;
        let text = format!(
            "the answer has {} bytes; more than {MESSAGE_CAP_BYTES} are not taken",
            self.length
        );
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None);
        Some(ServerJsonRpcMessage::error(error, Some(id)))
    }
}

/// The id that stands at one end of a message: `{"jsonrpc":"2.0","id":7,…` or `…},"id":7}`.
fn own_id(bytes: &[u8], at_end: bool) -> Option<RequestId> {
    let text = String::from_utf8_lossy(bytes);
    let (before, after) =
        if at_end { text.rsplit_once("\"id\"")? } else { text.split_once("\"id\"")? };
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let number: String = value.chars().take_while(char::is_ascii_digit).collect();
    let rest = value[number.len()..].trim_start();
    // Inside of the content anything may look like an id.
    let in_place = if at_end {
        matches!(rest.trim_end(), "}" | ",\"jsonrpc\":\"2.0\"}")
    } else {
        !before.contains(['[', '\n']) && before.matches('{').count() == 1
    };
    in_place.then(|| number.parse().ok().map(RequestId::Number)).flatten()
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut bytes = serde_json::to_vec(&message)?;
            bytes.push(b'\n');
            let mut input = input.lock().await;
            let Some(pipe) = input.as_mut() else {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "it was closed"));
            };
            let written = async {
                pipe.write_all(&bytes).await?;
                pipe.flush().await
            };
            match tokio::time::timeout(UNREAD_LIMIT, written).await {
                Ok(written) => written,
                Err(_) => {
                    // Half a message may be in the pipe: nothing after it would be understood.
                    *input = None;
                    Err(io::Error::new(io::ErrorKind::TimedOut, "it does not read its input"))
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = match self.next_line().await? {
                Whole::Message(line) => line,
                Whole::TooLong(beyond) => match beyond.as_answer() {
                    Some(answer) => return Some(answer),
                    None => {
                        self.tail
                            .line(&format!("(a message of {} bytes was not taken)", beyond.length));
                        continue;
                    }
                },
            };
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(message) => return Some(message),
                Err(error) => {
                    let shown = &line[..line.len().min(NOISE_CAP_BYTES)];
                    let shown = String::from_utf8_lossy(shown);
                    self.tail.line(&format!("(no message: {error}) {shown}"));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The end of its input is how a server is told to go.
        self.input.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
#[path = "pipes_tests.rs"]
mod tests;
