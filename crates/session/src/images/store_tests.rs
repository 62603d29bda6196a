use std::path::Path;

use super::*;
use crate::images::quota;

fn images(folder: &Path, bytes: u64) -> Images {
    Images::new(folder.join("images"), folder.join("sessions"), Quota { bytes, ..Quota::default() })
}

/// Bytes that cannot be compressed, different for each number.
fn noise(number: u64, length: usize) -> Vec<u8> {
    let mut reader = blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof();
    let mut bytes = vec![0; length];
    reader.fill(&mut bytes);
    bytes
}

fn given(images: &Images, hash: &Hash) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    images.copy_to(hash, &mut bytes).ok().map(|_| bytes)
}

fn on_disk(folder: &Path) -> u64 {
    quota::total(&folder.join("images"))
}

#[test]
fn a_content_is_kept_once_compressed_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1 << 30);
    for length in [0, 1, 1000, SMALL_BYTES - 1, SMALL_BYTES, 3 * SMALL_BYTES + 5] {
        let bytes = b"the same again ".repeat(length / 15 + 1);
        let (hash, kept) = images.keep(&bytes[..length], true).unwrap();
        assert_eq!(kept, length as u64);
        assert_eq!(given(&images, &hash).unwrap(), &bytes[..length]);
        let used = images.used();
        assert_eq!(images.keep(&bytes[..length], false).unwrap().0, hash);
        assert_eq!(images.used(), used, "kept once");
        assert_eq!(used, on_disk(folder.path()), "the count is true");
    }
    assert!(images.used() < SMALL_BYTES as u64 / 10, "compressed");
}

#[test]
fn an_endless_producer_does_not_get_past_the_quota_and_drives_out_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let quota = 1 << 20;
    let images = images(folder.path(), quota);
    let (held, _) = images.keep(noise(9999, 10_000).as_slice(), false).unwrap();
    images.pin(held);
    let mut last = None;
    for number in 0..200 {
        last = Some(images.keep(noise(number, 40_000).as_slice(), false).unwrap().0);
        assert!(on_disk(folder.path()) <= quota, "after {number}");
    }
    assert!(images.contains(&last.unwrap()), "the newest is there");
    assert!(images.contains(&held), "what is relied on stays");
    // A single source without end is cut off, and leaves nothing.
    let endless = images.keep(std::io::repeat(7), false);
    assert!(matches!(endless, Err(KeepError::TooLarge { .. })), "{endless:?}");
    assert_eq!(std::fs::read_dir(folder.path().join("images/tmp")).unwrap().count(), 0);
    // If everything is relied on, nothing more is kept.
    let mut pinned = 0;
    let full = (1000..1100).find_map(|number| {
        match images.keep(noise(number, 40_000).as_slice(), false) {
            Ok((hash, _)) => {
                images.pin(hash);
                pinned += 1;
                None
            }
            Err(error) => Some(error),
        }
    });
    assert!(matches!(full, Some(KeepError::Full { .. })), "{full:?}");
    assert!(pinned > 15 && on_disk(folder.path()) <= quota);
}

#[test]
fn what_a_log_speaks_of_goes_after_what_nobody_speaks_of() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1 << 20);
    let (spoken, _) = images.keep(noise(1, 100_000).as_slice(), false).unwrap();
    let sessions = folder.path().join("sessions/p/children");
    std::fs::create_dir_all(&sessions).unwrap();
    std::fs::write(sessions.join("s.jsonl"), format!("{{\"hash\":\"{spoken}\"}}\n")).unwrap();
    for number in 2..30 {
        images.keep(noise(number, 100_000).as_slice(), false).unwrap();
    }
    assert!(images.contains(&spoken), "although it is the oldest");
}

#[test]
fn what_is_too_old_goes() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1 << 20);
    let (hash, _) = images.keep(&b"old"[..], false).unwrap();
    images.sweep(SystemTime::now());
    assert!(images.contains(&hash));
    images.sweep(SystemTime::now() + Quota::default().age + Duration::from_secs(60));
    assert!(!images.contains(&hash));
    assert_eq!(images.used(), 0);
}

#[test]
fn a_damaged_image_is_not_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1 << 20);
    let (hash, _) = images.keep(&b"one content"[..], false).unwrap();
    let (other, _) = images.keep(&b"another content"[..], false).unwrap();
    std::fs::copy(images.path(&other), images.path(&hash)).unwrap();
    assert_eq!(given(&images, &hash), None);
    std::fs::write(images.path(&other), "no zstd").unwrap();
    assert_eq!(given(&images, &other), None);
}
