//! Programs that make file systems or change partitions. What only looks is told by each program's own
//! words: a letter that lists in one names a label in the next.

use super::parse::Raw;
use super::word::Word;

/// Whether a program of this name may do so at all.
pub(super) fn is_maker(name: &str) -> bool {
    always(name) || rule(name).is_some()
}

/// Those that do nothing else.
fn always(name: &str) -> bool {
    ["mkfs", "newfs"].iter().any(|begin| name.starts_with(begin))
        || matches!(
            name,
            "mkswap"
                | "mkdosfs"
                | "mkntfs"
                | "mkreiserfs"
                | "mkexfatfs"
                | "mkudffs"
                | "blkdiscard"
                | "cfdisk"
                | "pvcreate"
                | "sg_format"
                | "sg_sanitize"
        )
}

type Rule = fn(&[&str]) -> bool;

/// Whether the words of one of the others make it so.
fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "mke2fs" => |words| !words.contains(&"-n"),
        "wipefs" => |words| {
            let wipes = has(words, 'a', "--all") || has(words, 'o', "--offset");
            wipes && !has(words, 'n', "--no-act")
        },
        "fdisk" => |words| !has_any(words, &["-l", "--list", "-x", "--list-details", "-s"]),
        "gdisk" => |words| !words.contains(&"-l"),
        "sfdisk" => |words| {
            const LOOKS: &[&str] = &[
                "-l",
                "--list",
                "-d",
                "--dump",
                "-J",
                "--json",
                "-F",
                "--list-free",
                "-V",
                "--verify",
                "-n",
                "--no-act",
                "-s",
                "--show-size",
                "-T",
                "--list-types",
            ];
            !has_any(words, LOOKS)
        },
        "sgdisk" => |words| {
            const LOOKS: &[&str] = &["-p", "--print", "-v", "--verify", "-L", "--list-types"];
            let looks = |word: &&str| {
                LOOKS.contains(word) || word.starts_with("-i") || word.starts_with("--info")
            };
            !options(words).all(|word| looks(&word))
        },
        "parted" => |words| !has_any(words, &["-l", "--list"]) && !words_of_parted_look(words),
        "partx" => |words| {
            let changes = [('a', "--add"), ('d', "--delete"), ('u', "--update")];
            changes.iter().any(|(short, long)| has(words, *short, long))
        },
        "mdadm" => |words| {
            const LOOKS: &[&str] =
                &["-D", "-E", "-Q", "-F", "-A", "--det", "--exa", "--que", "--mon", "--ass"];
            let first = words.first().copied().unwrap_or_default();
            let looks = LOOKS.iter().any(|begin| first.starts_with(begin));
            !looks || words.contains(&"--zero-superblock")
        },
        "lvremove" | "vgremove" | "pvremove" => |words| !has_any(words, &["-t", "--test"]),
        "zpool" => |words| {
            const CHANGES: &[&str] = &[
                "create",
                "destroy",
                "labelclear",
                "add",
                "attach",
                "detach",
                "remove",
                "replace",
                "split",
                "initialize",
            ];
            CHANGES.contains(&action(words))
        },
        // One that is only a picture of an earlier state may go.
        "zfs" => |words| action(words) == "destroy" && !words.iter().any(|w| w.contains('@')),
        "dmsetup" => |words| matches!(action(words), "remove" | "remove_all" | "wipe_table"),
        "cryptsetup" => |words| has_any(words, &["luksFormat", "luksErase", "erase", "reencrypt"]),
        "nvme" => |words| matches!(action(words), "format" | "sanitize" | "delete-ns"),
        "hdparm" => |words| {
            const ERASES: &[&str] = &[
                "--security-erase",
                "--sanitize-",
                "--write-sector",
                "--make-bad-sector",
                "--trim-sector",
            ];
            words.iter().any(|word| ERASES.iter().any(|begin| word.starts_with(begin)))
        },
        "badblocks" => |words| has(words, 'w', "--") || has(words, 'n', "--"),
        "diskutil" => |words| {
            const CHANGES: &[&str] =
                &["erase", "partition", "zero", "random", "secureerase", "reformat", "delete"];
            let inner = words.get(1).copied().unwrap_or_default();
            let action = if action(words) == "apfs" { inner } else { action(words) };
            let action = action.to_lowercase();
            CHANGES.iter().any(|begin| action.starts_with(begin))
        },
        _ => return None,
    })
}

/// Whether a command does so.
pub(super) fn makes(name: &str, raw: &Raw) -> bool {
    if !is_maker(name) {
        return false;
    }
    let words: Vec<&str> = raw.words.iter().skip(1).map(Word::text).collect();
    if matches!(words.as_slice(), ["--help" | "-h" | "--version" | "-V" | "-v" | "help"]) {
        return false;
    }
    always(name) || rule(name).is_some_and(|makes| makes(&words))
}

fn options<'w>(words: &'w [&'w str]) -> impl Iterator<Item = &'w str> {
    words.iter().copied().filter(|word| word.starts_with('-'))
}

/// The first word that is no option.
fn action<'w>(words: &[&'w str]) -> &'w str {
    words.iter().copied().find(|word| !word.starts_with('-')).unwrap_or_default()
}

fn has_any(words: &[&str], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(word))
}

/// Whether a letter stands among the short options, or a long one, also cut short.
fn has(words: &[&str], short: char, long: &str) -> bool {
    options(words).any(|word| match word.starts_with("--") {
        true => word.len() > 2 && long.starts_with(word.split('=').next().unwrap_or_default()),
        false => word.contains(short),
    })
}

/// Whether all that parted is told to do behind the disk's name is to print.
fn words_of_parted_look(words: &[&str]) -> bool {
    const LOOKS: &[&str] = &[
        "print", "p", "unit", "free", "all", "devices", "list", "quit", "q", "help", "s", "B",
        "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "%", "chs", "cyl", "compact",
    ];
    let mut told = words.iter().filter(|word| !word.starts_with('-')).skip(1).peekable();
    told.peek().is_some()
        && told.all(|word| LOOKS.contains(word) || word.bytes().all(|b| b.is_ascii_digit()))
}
