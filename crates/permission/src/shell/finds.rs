//! How much of a folder `find` and its kin find: what they do to it they do to all of that.

/// Of what is below the folders that it starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// What is called so, or the like.
    Some,
    /// What is large, old or somebody's: in a home folder that is nearly everything.
    Most,
    All,
}

const ACTS: &[&str] =
    &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-print", "-print0", "-printf", "-ls"];

/// What `find` is told behind its own name. Whoever deletes whole folders does not care for a depth.
pub(super) fn extent(words: &[&str], recursive: bool) -> Extent {
    let value = |option: &str| words.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1]);
    let files = value("-type").is_some_and(|kinds| !kinds.contains('d'));
    if value("-maxdepth").is_some() && (files || !recursive) {
        return Extent::Some;
    }
    let ways = ways(words);
    let acts = |way: &&[&str]| way.iter().any(|word| ACTS.contains(word));
    let acting: Vec<&[&str]> = ways.iter().copied().filter(acts).collect();
    let ways = if acting.is_empty() { ways } else { acting };
    ways.into_iter().map(of_way).max().unwrap_or(Extent::All)
}

/// The parts between one `-o` and the next, brackets left whole.
fn ways<'w>(words: &'w [&'w str]) -> Vec<&'w [&'w str]> {
    let mut depth = 0_usize;
    words
        .split(|word| {
            match *word {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(*word, "-o" | "-or" | ",")
        })
        .collect()
}

fn of_way(way: &[&str]) -> Extent {
    let (mut extent, mut depth, mut negated) = (Extent::All, 0_usize, None);
    let mut asks = false;
    for (at, word) in way.iter().enumerate() {
        let next = way.get(at + 1).copied().unwrap_or_default();
        let not = negated.is_some();
        match *word {
            "(" => depth += 1,
            ")" => {
                depth = depth.saturating_sub(1);
                negated = negated.filter(|since| depth > *since);
            }
            "!" | "-not" => negated = Some(depth),
            "-exec" | "-execdir" => asks = true,
            // A program that is asked about each file chooses.
            "-delete" if asks => return Extent::Some,
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" | "-regex"
            | "-iregex" => {
                let all = next.contains('*') && next.chars().all(|c| matches!(c, '*' | '?' | '.'));
                if !not && !all {
                    return Extent::Some;
                }
                negated = negated.filter(|since| depth > *since);
            }
            "-empty" | "-samefile" | "-inum" | "-lname" | "-ilname" | "-nouser" | "-nogroup" => {
                if !not {
                    return Extent::Some;
                }
                negated = negated.filter(|since| depth > *since);
            }
            "-mtime" | "-mmin" | "-atime" | "-amin" | "-ctime" | "-cmin" | "-newer"
            | "-newermt" | "-anewer" | "-cnewer" | "-size" | "-user" | "-group" | "-uid"
            | "-gid" | "-perm" | "-links" | "-executable" | "-readable" | "-writable" | "-used" => {
                extent = Extent::Most;
                negated = negated.filter(|since| depth > *since);
            }
            word if word.starts_with('-') => negated = negated.filter(|since| depth > *since),
            _ => {}
        }
    }
    extent
}

/// What `fd` finds, and where: nothing where no folder is named.
pub(super) fn fd<'w>(words: &[&'w str]) -> (Extent, Vec<&'w str>) {
    const VALUED: &[&str] = &[
        "-t",
        "--type",
        "-d",
        "--max-depth",
        "--min-depth",
        "-E",
        "--exclude",
        "-c",
        "--color",
        "-j",
        "--threads",
        "-o",
        "--owner",
        "--exact-depth",
    ];
    const CHOOSES: &[&str] = &["-e", "-S", "--extension", "--size", "--changed", "--newer"];
    let mut chooses = false;
    let mut plain = Vec::new();
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        match word {
            "-x" | "--exec" | "-X" | "--exec-batch" => break,
            _ if CHOOSES.iter().any(|option| word.starts_with(option)) => {
                chooses = true;
                rest.next();
            }
            _ if VALUED.contains(&word) => drop(rest.next()),
            _ if word.starts_with('-') => {}
            _ => plain.push(word),
        }
    }
    let pattern = plain.first().copied().unwrap_or_default();
    chooses |= !matches!(pattern, "" | "." | ".*" | "^" | "*");
    let extent = if chooses { Extent::Some } else { Extent::All };
    (extent, plain.get(1..).unwrap_or_default().to_vec())
}
