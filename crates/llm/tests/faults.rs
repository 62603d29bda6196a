//! Everything that can go wrong between us and a server, over real sockets: each ends in the right
//! kind of event, in bounded time and memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use futures_util::StreamExt;
use toolwright_llm::{
    Content, Deadlines, Event, Failure, FailureKind, HttpModel, Model, Request, Retry, Sampling,
    ToolChoice, Turn, provider,
};
use toolwright_testkit::{After, Answer, ModelServer, Reply};

/// Long enough that no busy machine reaches it, where a test is not about it.
const AMPLE: Duration = Duration::from_secs(60);
/// To be waited for, where a test is about it.
const SHORT: Duration = Duration::from_millis(300);

fn model_at(url: &str, retries: u32) -> HttpModel {
    patient_model(url, retries, AMPLE, AMPLE)
}

fn patient_model(
    url: &str,
    retries: u32,
    first_event: Duration,
    between_events: Duration,
) -> HttpModel {
    let mut endpoint = provider("anthropic").unwrap().endpoint(&|_| None);
    url.clone_into(&mut endpoint.base_url);
    endpoint.key = Some("k".to_owned());
    let deadlines = Deadlines { connect: AMPLE, first_event, between_events };
    let retry = Retry { retries, base: Duration::from_millis(1), longest: Duration::from_secs(1) };
    HttpModel::new(endpoint, "m", deadlines, retry)
}

fn request() -> Request {
    Request {
        system: "".into(),
        turns: vec![std::sync::Arc::new(Turn::User(vec![Content::text("hi")]))],
        tools: Vec::new().into(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        sampling: Sampling::default(),
        effort: None,
        output_schema: None,
        headers: Vec::new(),
    }
}

/// All events; the stream must close with exactly one closing event and then end.
async fn events(model: &HttpModel) -> Vec<Event> {
    let all: Vec<Event> = model.stream(request()).collect().await;
    let closing = |e: &&Event| matches!(e, Event::Finish(_) | Event::Failed(_));
    assert_eq!(all.iter().filter(closing).count(), 1, "{all:?}");
    assert!(all.last().as_ref().is_some_and(closing), "{all:?}");
    all
}

async fn failure(answer: Answer) -> Failure {
    let server = ModelServer::start([answer]);
    match events(&model_at(&server.url(), 0)).await.pop() {
        Some(Event::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn pieces(pieces: &[&str], after: After) -> Answer {
    Answer::Pieces { pieces: pieces.iter().map(|p| p.as_bytes().to_vec()).collect(), after }
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{}}}\n\n";
const TEXT: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n";

#[tokio::test]
async fn a_refused_connection() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let all = events(&model_at(&format!("http://127.0.0.1:{port}"), 0)).await;
    assert!(
        matches!(all.last(), Some(Event::Failed(f)) if f.kind == FailureKind::Connect),
        "{all:?}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let all = events(&model_at(&url, 0)).await;
    assert!(
        matches!(all.last(), Some(Event::Failed(f)) if f.kind == FailureKind::Connect),
        "{all:?}"
    );
}

#[tokio::test]
async fn statuses_are_told_apart() {
    for (status, body, kind) in [
        (401, r#"{"error":{"message":"no"}}"#, FailureKind::Auth),
        (403, "", FailureKind::Auth),
        (404, r#"{"error":{"message":"model: x"}}"#, FailureKind::NotFound),
        (413, "too large", FailureKind::ContextOverflow),
        (
            400,
            r#"{"error":{"message":"prompt is too long: 5 tokens > 3 maximum"}}"#,
            FailureKind::ContextOverflow,
        ),
        (400, r#"{"error":{"message":"bad"}}"#, FailureKind::InvalidRequest),
        (429, "", FailureKind::RateLimit),
        (500, "<html>oops</html>", FailureKind::Server),
        (503, "", FailureKind::Overloaded),
        (529, "", FailureKind::Overloaded),
        (302, "", FailureKind::Protocol),
    ] {
        let failure = failure(Answer::status(status, body)).await;
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{body}");
    }
}

#[tokio::test]
async fn rate_limits_are_waited_out_as_long_as_the_server_says() {
    let limited = |headers: &[(&str, &str)]| Answer::Status {
        status: 429,
        headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        body: String::new(),
    };
    let server = ModelServer::start([
        limited(&[("retry-after-ms", "3")]),
        limited(&[("retry-after", "0.004")]),
        limited(&[]),
        Answer::text("hi"),
    ]);
    let all = events(&model_at(&server.url(), 3)).await;
    let delays: Vec<u128> = all
        .iter()
        .filter_map(|e| match e {
            Event::Retrying { delay, .. } => Some(delay.as_millis()),
            _ => None,
        })
        .collect();
    assert_eq!(delays[..2], [3, 4]);
    assert_eq!(delays.len(), 3);
    assert!(matches!(all.last(), Some(Event::Finish(_))));
    // A pause that nobody would sit through is reported instead.
    let server = ModelServer::start([limited(&[("retry-after", "3600")]), Answer::text("never")]);
    let all = events(&model_at(&server.url(), 3)).await;
    assert!(
        matches!(&all[..], [Event::Failed(f)] if f.retry_after == Some(Duration::from_secs(3600)))
    );
}

#[tokio::test]
async fn nothing_is_tried_again_once_something_was_said() {
    let server = ModelServer::start([pieces(&[START, TEXT], After::Close), Answer::text("again")]);
    let all = events(&model_at(&server.url(), 3)).await;
    assert!(
        all.iter().any(|e| matches!(e, Event::Text { delta, .. } if delta.contains("hi"))),
        "{all:?}"
    );
    assert!(matches!(all.last(), Some(Event::Failed(f)) if f.kind == FailureKind::Truncated));
    assert_eq!(server.requests().len(), 1);
    // Before that, an error inside the stream is like one before it.
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let server =
        ModelServer::start([pieces(&[START, overloaded], After::Close), Answer::text("hi")]);
    let all = events(&model_at(&server.url(), 1)).await;
    assert!(matches!(all.last(), Some(Event::Finish(_))), "{all:?}");
}

#[tokio::test]
async fn silence_before_and_between_events_has_a_deadline_that_pings_do_not_move() {
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n: comment\n\n";
    for (answer, said) in [
        (Answer::Silence, false),
        (pieces(&[], After::Hold), false),
        (pieces(&[START], After::Hold), false),
        (pieces(&[START, TEXT], After::Hold), true),
        (pieces(&[START, ping], After::Forever), false),
        (pieces(&[START, TEXT, ping], After::Forever), true),
    ] {
        let server = ModelServer::start([answer.clone()]);
        let (first, between) = if said { (AMPLE, SHORT) } else { (SHORT, AMPLE) };
        let all = events(&patient_model(&server.url(), 0, first, between)).await;
        let Some(Event::Failed(failure)) = all.last() else { panic!("{all:?}") };
        assert_eq!(failure.kind, FailureKind::Timeout, "{answer:?}");
        assert_eq!(failure.message.contains("go on"), said, "{}", failure.message);
    }
}

#[tokio::test]
async fn broken_bodies_end_in_words_about_them() {
    let huge_line = Answer::Pieces {
        pieces: vec![b"data: ".to_vec(), vec![b'x'; 1 << 20]],
        after: After::Forever,
    };
    for (answer, kind) in [
        (pieces(&[START, "event: content_block_del"], After::Close), FailureKind::Truncated),
        (pieces(&[START, "data: {\"type\":\"content_bl"], After::Close), FailureKind::Protocol),
        (pieces(&[START, TEXT], After::Reset), FailureKind::Truncated),
        (pieces(&["<!DOCTYPE html><html>"], After::Close), FailureKind::Protocol),
        (
            pieces(
                &["{\"error\":{\"type\":\"api_error\",\"message\":\"x\"},\"type\":\"error\"}"],
                After::Close,
            ),
            FailureKind::Server,
        ),
        (Answer::Raw(b"data: {\"type\":\"\xff\xfe\"}\n\n".to_vec()), FailureKind::Truncated),
        (Answer::Raw(b"data: \0\0\0\n\n".to_vec()), FailureKind::Protocol),
        (huge_line, FailureKind::Protocol),
        (Answer::Close, FailureKind::Connect),
    ] {
        let shown = format!("{answer:.200?}");
        assert_eq!(failure(answer).await.kind, kind, "{shown}");
    }
}

#[tokio::test]
async fn an_error_body_without_end_is_cut() {
    let server = ModelServer::start([Answer::status(500, &"x".repeat(10 << 20))]);
    let all = events(&model_at(&server.url(), 0)).await;
    assert!(matches!(&all[..], [Event::Failed(f)] if f.message.len() < 1_000), "{all:.200?}");
}

#[tokio::test]
async fn events_out_of_order_and_duplicate_ids_are_taken_for_what_they_are() {
    let stop = "data: {\"type\":\"content_block_stop\",\"index\":7}\n\n";
    let end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let server = ModelServer::start([pieces(&[stop, TEXT, START, end], After::Close)]);
    let all = events(&model_at(&server.url(), 0)).await;
    assert!(matches!(all.last(), Some(Event::Finish(_))), "{all:?}");
    let twice = Reply::default()
        .call("a", serde_json::json!({}))
        .with_id("same")
        .call("b", serde_json::json!({}))
        .with_id("same");
    let server = ModelServer::start([twice.into()]);
    let all = events(&model_at(&server.url(), 0)).await;
    assert_eq!(all.iter().filter(|e| matches!(e, Event::CallStart { .. })).count(), 2);
}

#[tokio::test]
async fn dropping_the_stream_hangs_up_at_once() {
    let server = ModelServer::start([pieces(&[START, TEXT], After::Forever)]);
    let mut stream = model_at(&server.url(), 0).stream(request());
    while !matches!(stream.next().await, Some(Event::Text { .. })) {}
    drop(stream);
    // The server writes until the other side is gone; that it can be dropped shows that it is.
    drop(server);
}

#[tokio::test]
async fn an_answer_of_five_megabytes_streams_in_pieces() {
    let text = "x".repeat(20);
    let mut reply = Reply::default();
    for _ in 0..250_000 {
        reply = reply.say(&text);
    }
    let server = ModelServer::start([reply.into()]);
    let mut stream = model_at(&server.url(), 0).stream(request());
    let (mut total, mut largest) = (0, 0);
    while let Some(event) = stream.next().await {
        if let Event::Text { delta, .. } = event {
            total += delta.len();
            largest = largest.max(delta.len());
        }
    }
    assert_eq!(total, 5_000_000);
    assert!(largest < 1 << 20, "one event of {largest} bytes");
}
