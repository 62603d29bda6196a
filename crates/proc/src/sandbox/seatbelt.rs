//! The fence in the words of macOS's sandbox. The last rule that matches decides.

use std::path::Path;

use super::{Fence, Network};

pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Places that every program writes to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr"];

pub(super) fn profile(fence: &Fence) -> String {
    let mut text = String::from("(version 1)\n(allow default)\n");
    let mut rule = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    rule("(deny file-write*)");
    for path in DEVICES {
        rule(&format!("(allow file-write* (literal {}))", quoted(Path::new(path))));
    }
    rule("(allow file-write* (regex #\"^/dev/ttys[0-9]+$\"))");
    for path in &fence.writable {
        rule(&format!("(allow file-write* (subpath {}))", quoted(path)));
    }
    // A name that does not exist yet can be forbidden here too.
    for path in &fence.read_only {
        rule(&format!("(deny file-write* (subpath {}))", quoted(path)));
        // A folder on the way must not be moved away and made anew.
        let inside = |folder: &&Path| fence.writable.iter().any(|root| folder.starts_with(root));
        for folder in path.ancestors().skip(1).take_while(inside) {
            if !fence.writable.iter().any(|root| root == folder) {
                rule(&format!("(deny file-write-unlink (literal {}))", quoted(folder)));
            }
        }
    }
    for path in &fence.unreadable {
        rule(&format!("(deny file-read* file-write* (subpath {}))", quoted(path)));
    }
    // Other programs: neither signals nor their memory.
    rule("(deny signal)");
    rule("(allow signal (target same-sandbox))");
    rule("(deny mach-priv-task-port)");
    match fence.network {
        Network::On => {
            rule("(deny network* (remote unix-socket))");
        }
        // Named hosts need a network of one's own, which there is none of.
        Network::Off | Network::Hosts(_) => {
            rule("(deny network*)");
        }
    }
    text
}

fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_profile_says_the_whole_fence_and_the_stricter_last() {
        let fence = Fence {
            writable: vec![PathBuf::from("/Users/x/w"), PathBuf::from("/private/tmp")],
            read_only: vec![PathBuf::from("/Users/x/w/.git/hooks")],
            unreadable: vec![PathBuf::from("/Users/x/.ssh")],
            network: Network::Off,
        };
        let text = profile(&fence);
        let wanted = r#"(version 1)
(allow default)
(deny file-write*)
(allow file-write* (literal "/dev/null"))
(allow file-write* (literal "/dev/zero"))
(allow file-write* (literal "/dev/tty"))
(allow file-write* (literal "/dev/stdout"))
(allow file-write* (literal "/dev/stderr"))
(allow file-write* (regex #"^/dev/ttys[0-9]+$"))
(allow file-write* (subpath "/Users/x/w"))
(allow file-write* (subpath "/private/tmp"))
(deny file-write* (subpath "/Users/x/w/.git/hooks"))
(deny file-write-unlink (literal "/Users/x/w/.git"))
(deny file-read* file-write* (subpath "/Users/x/.ssh"))
(deny signal)
(allow signal (target same-sandbox))
(deny mach-priv-task-port)
(deny network*)
"#;
        assert_eq!(text, wanted);
        let open = profile(&Fence { network: Network::On, ..fence });
        assert!(!open.contains("(deny network*)\n"), "{open}");
        assert!(open.contains("unix-socket"), "{open}");
    }

    #[test]
    fn a_path_cannot_end_its_own_quotes() {
        let fence = Fence { writable: vec![PathBuf::from("/a\"b\\c")], ..Fence::default() };
        assert!(profile(&fence).contains(r#"(subpath "/a\"b\\c")"#));
    }
}
