//! Paths as `file:` addresses and back, byte for byte.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) fn of_path(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// The path of a `file:` address of this machine; nothing for any other address.
pub(crate) fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let [first, tail @ ..] = left {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                left = &tail[2..];
            }
            None => {
                bytes.push(*first);
                left = tail;
            }
        }
    }
    (!bytes.contains(&0)).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_as_servers_write_them() {
        let cases = [
            ("file:///a/b.rs", Some("/a/b.rs")),
            ("file://localhost/a", Some("/a")),
            ("file:///a%20b/%C3%A4%e2%82%ac", Some("/a b/ä€")),
            ("file:///100%", Some("/100%")),
            ("file:///a%zz", Some("/a%zz")),
            ("file:///a%00b", None),
            ("file://elsewhere/a", None),
            ("untitled:x", None),
            ("jdt://contents/x", None),
        ];
        for (uri, expected) in cases {
            assert_eq!(to_path(uri), expected.map(PathBuf::from), "{uri}");
        }
        assert_eq!(of_path(Path::new("/a b/ä#?%")), "file:///a%20b/%C3%A4%23%3F%25");
    }

    proptest! {
        #[test]
        fn every_path_comes_back(bytes in proptest::collection::vec(1u8.., 0..60)) {
            let mut path = vec![b'/'];
            path.extend(bytes);
            let path = PathBuf::from(OsString::from_vec(path));
            prop_assert_eq!(to_path(&of_path(&path)).unwrap().into_os_string(), path.into_os_string());
        }
    }
}
