//! Each service over a server on this machine: what is sent, what is read, and what goes wrong.

use std::sync::Arc;

use serde_json::{Value, json};

use super::fetch_tests::{Site, answer};
use super::{CodeSearch, SearchOptions, WebSearch};
use crate::kit::Kit;

fn kit(provider: &str, key: Option<&str>, url: &str) -> Kit {
    let options = SearchOptions {
        provider: Some(provider.into()),
        key: key.map(str::to_owned),
        base_url: Some(url.into()),
    };
    let provider = options.provider().unwrap();
    Kit::new([
        Arc::new(WebSearch::new(provider.clone(), 2026)) as _,
        Arc::new(CodeSearch::new(provider)) as _,
    ])
}

fn json_site(value: Value) -> Site {
    let text = value.to_string();
    Site::new(move |_| answer("200 OK", "content-type: application/json\r\n", text.as_bytes()))
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn exa_is_asked_as_a_tool_server_and_its_first_text_is_taken() {
    let site = Site::new(|_| {
        let text = "event: message\ndata: [DONE]\ndata: {\"result\":{\"content\":[{\"type\":\"x\"},{\"type\":\"text\",\"text\":\"found\"}]}}\n\n";
        answer("200 OK", "content-type: text/event-stream\r\n", text.as_bytes())
    });
    let kit = kit("exa", Some("k&y"), &format!("{}/mcp", site.url));
    let outcome = kit.ok("websearch", json!({"query": "rust", "contextMaxCharacters": 900})).await;
    assert_eq!(outcome.output, "found");
    assert_eq!(outcome.title, "Exa Web Search: rust");
    assert_eq!(outcome.details, json!({"provider": "exa"}));
    let request = site.requests().pop().unwrap();
    assert!(request.starts_with("POST /mcp?exaApiKey=k%26y HTTP/1.1"), "{request}");
    assert_eq!(
        body(&request),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "web_search_exa",
            "arguments": {"query": "rust", "type": "auto", "numResults": 8,
                "livecrawl": "fallback", "contextMaxCharacters": 900},
        }})
    );
    let outcome = kit.ok("codesearch", json!({"query": "tokio", "tokensNum": 1})).await;
    assert_eq!(outcome.title, "Code search: tokio");
    assert_eq!(
        body(&site.requests().pop().unwrap())["params"],
        json!({"name": "get_code_context_exa", "arguments": {"query": "tokio", "tokensNum": 1000}})
    );
    let asked = |key: &str, query: &str| (key.to_owned(), query.to_owned());
    assert_eq!(kit.asked(), [asked("websearch", "rust"), asked("codesearch", "tokio")]);
}

#[tokio::test]
async fn exa_says_what_went_wrong_and_that_nothing_was_found() {
    for (text, expected) in [
        (r#"{"error":{"code":-32000,"message":"bad key"}}"#, "Exa says: bad key"),
        (r#"{"result":{"isError":true,"content":[{"text":"no"}]}}"#, "Exa says: no"),
    ] {
        let site = Site::new(move |_| answer("200 OK", "", text.as_bytes()));
        let error =
            kit("exa", Some("k"), &site.url).error("websearch", json!({"query": "q"})).await;
        assert_eq!(error, expected);
    }
    for text in [r#"{"result":{"content":[]}}"#, "data: [DONE]\n", ""] {
        let site = Site::new(move |_| answer("200 OK", "", text.as_bytes()));
        let outcome = kit("exa", Some("k"), &site.url).ok("websearch", json!({"query": "q"})).await;
        assert!(outcome.output.starts_with("No search results found."));
        let outcome =
            kit("exa", Some("k"), &site.url).ok("codesearch", json!({"query": "q"})).await;
        assert!(outcome.output.starts_with("Nothing was found."));
    }
}

#[tokio::test]
async fn brave_takes_the_query_in_the_address_and_the_key_in_a_header() {
    let site = json_site(json!({"web": {"results": [
        {"title": "One", "url": "https://a/", "description": "first"},
        {"title": "Two", "url": "https://b/", "description": "second"},
    ]}}));
    let kit = kit("brave", Some("key"), &format!("{}/res", site.url));
    let outcome = kit.ok("websearch", json!({"query": "a b", "numResults": 40})).await;
    assert_eq!(
        outcome.output,
        "Title: One\nURL: https://a/\nText: first\n\nTitle: Two\nURL: https://b/\nText: second"
    );
    assert_eq!(outcome.title, "Brave Web Search: a b");
    let request = site.requests().pop().unwrap();
    assert!(request.starts_with("GET /res?q=a+b&count=20 HTTP/1.1"), "{request}");
    assert!(request.to_lowercase().contains("x-subscription-token: key"), "{request}");
}

#[tokio::test]
async fn tavily_takes_a_body_and_a_bearer() {
    let site = json_site(json!({"results": [{"title": "T", "url": "https://a/", "content": "c"}]}));
    let kit = kit("tavily", Some("key"), &site.url);
    let outcome = kit.ok("websearch", json!({"query": "q", "type": "deep"})).await;
    assert_eq!(outcome.output, "Title: T\nURL: https://a/\nText: c");
    let request = site.requests().pop().unwrap();
    assert!(request.to_lowercase().contains("authorization: bearer key"), "{request}");
    let expected = json!({"query": "q", "max_results": 8, "search_depth": "advanced"});
    assert_eq!(body(&request), expected);
}

#[tokio::test]
async fn searxng_needs_an_address_and_no_key() {
    let long = "x".repeat(10_000);
    let site =
        json_site(json!({"results": [{"title": "T", "url": "https://a/", "content": long}]}));
    let kit = kit("searxng", None, &format!("{}/inner/", site.url));
    kit.ok("websearch", json!({"query": "q"})).await;
    let request = site.requests().pop().unwrap();
    assert!(request.starts_with("GET /inner/search?q=q&format=json HTTP/1.1"), "{request}");
    let code = kit.ok("codesearch", json!({"query": "q", "tokensNum": 1000})).await;
    assert!(code.output.ends_with("(cut here)") && code.output.len() < 4_100);
    let page = Site::new(|_| answer("200 OK", "", b"<html>"));
    let error =
        self::kit("searxng", None, &page.url).error("websearch", json!({"query": "q"})).await;
    assert!(error.contains("must allow the format json"), "{error}");
}

#[tokio::test]
async fn a_service_of_ones_own_takes_and_gives_a_simple_form() {
    let site = json_site(json!({"results": [
        {"title": "T", "link": "https://a/", "snippet": "s"}, {"title": "no address"}, 7,
    ]}));
    let kit = kit("custom", Some("key"), &format!("{}/find", site.url));
    let outcome = kit.ok("websearch", json!({"query": "q", "numResults": 3})).await;
    assert_eq!(outcome.output, "Title: T\nURL: https://a/\nText: s");
    let request = site.requests().pop().unwrap();
    assert!(request.starts_with("POST /find HTTP/1.1"), "{request}");
    assert_eq!(body(&request), json!({"query": "q", "numResults": 3}));
}

#[tokio::test]
async fn refusals_of_a_service_say_what_to_do_and_never_show_the_key() {
    for (status, expected) in [
        ("401 Unauthorized", "did not accept the key"),
        ("403 Forbidden", "did not accept the key"),
        ("429 Too Many Requests", "Try again later"),
        ("500 Oops", "status 500 Internal Server Error: it broke"),
        ("302 Found", "status 302"),
    ] {
        let site = Site::new(move |_| answer(status, "location: /x\r\n", b"it broke"));
        for provider in ["exa", "brave", "tavily", "searxng", "custom"] {
            let kit = kit(provider, Some("very-secret"), &site.url);
            let error = kit.error("websearch", json!({"query": "q"})).await;
            assert!(error.contains(expected), "{provider}: {error}");
            assert!(!error.contains("very-secret"), "{error}");
        }
    }
    let gone = kit("exa", Some("very-secret"), "http://127.0.0.1:1/mcp");
    let error = gone.error("websearch", json!({"query": "q"})).await;
    assert!(
        error.starts_with("Exa cannot be reached") && !error.contains("very-secret"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_service_both_say_what_to_set() {
    let kit =
        Kit::new([Arc::new(WebSearch::new(None, 2026)) as _, Arc::new(CodeSearch::new(None)) as _]);
    for tool in ["websearch", "codesearch"] {
        let error = kit.error(tool, json!({"query": "q"})).await;
        assert!(error.starts_with(&format!("{tool} is off")) && error.contains("EXA_API_KEY"));
    }
}

#[test]
fn settings_that_cannot_work_are_told() {
    let of = |provider: Option<&str>, key: Option<&str>, base_url: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        SearchOptions { provider: own(provider), key: own(key), base_url: own(base_url) }.provider()
    };
    assert!(of(None, None, None).unwrap().is_none());
    assert!(of(Some("exa"), None, None).unwrap().is_none(), "off without a key");
    assert!(of(Some("brave"), Some(" "), None).unwrap().is_none());
    assert_eq!(of(None, None, Some("http://x/")).unwrap().unwrap().id(), "custom");
    for (provider, base_url, expected) in [
        (Some("bing"), None, "is not known"),
        (Some("searxng"), None, "websearch.baseURL is needed"),
        (Some("custom"), Some("file:///x"), "is no web address"),
    ] {
        let error = of(provider, None, base_url).err().unwrap();
        assert!(error.contains(expected), "{error}");
    }
}
