//! Images reach a model in a size that it takes, or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let image = image::RgbImage::from_fn(width, height, |x, _| image::Rgb([(x % 256) as u8, 9, 9]));
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Every image in a request, also inside results.
fn images(request: &Captured) -> Vec<Vec<u8>> {
    fn walk(value: &Value, found: &mut Vec<Vec<u8>>) {
        if value["type"] == "image" {
            assert_eq!(value["source"]["media_type"], "image/png");
            found.push(STANDARD.decode(value["source"]["data"].as_str().unwrap()).unwrap());
        }
        let below = value.as_array().into_iter().flatten();
        below
            .chain(value.as_object().into_iter().flat_map(|object| object.values()))
            .for_each(|value| walk(value, found));
    }
    let mut found = Vec::new();
    request.messages().iter().for_each(|message| walk(message, &mut found));
    found
}

#[test]
fn an_attached_image_is_scaled_and_the_model_is_told_or_it_is_sent_as_it_is() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let small = png(20, 10);
    folder.write_bytes("large.png", &png(3136, 20));
    folder.write_bytes("small.png", &small);
    let files = ["-f", "large.png", "-f", "small.png", "look"];
    folder.tw(&[&["run", "-m", "anthropic/m"][..], &files].concat()).expect(0);
    let request = server.last_request();
    let sent = images(&request);
    let scaled = image::load_from_memory(&sent[0]).unwrap();
    assert_eq!((scaled.width(), scaled.height()), (1568, 10));
    assert_eq!(sent[1..], [small]);
    let body = String::from_utf8_lossy(&request.raw);
    assert!(body.contains("(image scaled from 3136x20 to 1568x10)"), "{body}");
}

#[test]
fn what_is_configured_about_images_counts_for_attached_ones_too() {
    let server = ModelServer::start([Answer::text("ok")]);
    let settings = r#"{ "attachment": { "image": { "max_width": 300 } } }"#;
    let folder = folder().file("opencode.json", settings).with_model(&server, Wire::Anthropic);
    folder.write_bytes("large.png", &png(600, 20));
    let arguments = ["run", "--trust", "-m", "anthropic/m", "-f", "large.png", "look"];
    folder.tw(&arguments).expect(0);
    let sent = images(&server.last_request());
    let scaled = image::load_from_memory(&sent[0]).unwrap();
    assert_eq!((scaled.width(), scaled.height()), (300, 10));
}

#[test]
fn an_image_that_a_tool_hands_over_is_scaled_and_a_broken_one_is_told() {
    let read = |file: &str| Answer::call("read", json!({ "filePath": file }));
    let server = ModelServer::start([read("large.png"), read("broken.png"), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.write_bytes("large.png", &png(3136, 20));
    folder.write_bytes("broken.png", &png(40, 40)[..60]);
    folder.tw(&["run", "-m", "anthropic/m", "look"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    assert!(results[0].contains("(image scaled from 3136x20 to 1568x10)"), "{}", results[0]);
    assert!(results[1].contains("(the image could not be decoded: "), "{}", results[1]);
    let sent = images(&request);
    assert_eq!(sent.len(), 1);
    assert_eq!(image::load_from_memory(&sent[0]).unwrap().width(), 1568);
}

#[test]
fn a_broken_image_is_not_attached_and_nothing_is_asked() {
    let server = ModelServer::start([]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.write_bytes("broken.png", &png(40, 40)[..60]);
    let run = folder.tw(&["run", "-m", "anthropic/m", "-f", "broken.png", "look"]).expect(2);
    assert!(run.stderr.contains("broken.png: the image could not be decoded"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}
