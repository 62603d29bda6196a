//! Names under which models call the tools of servers: safe for every provider, and each of them once.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Characters that every provider takes.
const NAME_CAP: usize = 64;

/// Names with an underscore that are ours, as tools or as keys of rules: a server called `bash` with a
/// tool called `output` must not be judged as our own.
const OURS: &[&str] = &[
    "apply_patch",
    "bash_input",
    "bash_kill",
    "bash_output",
    "doom_loop",
    "external_directory",
    "final_answer",
    "list_mcp_resource_templates",
    "list_mcp_resources",
    "mcp_sampling",
    "outside_sandbox",
    "plan_enter",
    "plan_exit",
    "read_mcp_resource",
    "tool_call",
    "tool_search",
];

/// As in names of tools: everything else becomes an underscore.
pub fn plain(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

/// Who has which name. A tool keeps its name for as long as the program runs.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: Mutex<BTreeMap<String, (String, String)>>,
}

impl Names {
    pub(crate) fn of(&self, server: &str, tool: &str) -> String {
        self.beside(server, tool, &|_| false)
    }

    /// Where others than servers may have names too: `held` says which.
    pub(crate) fn beside(&self, server: &str, tool: &str, held: &dyn Fn(&str) -> bool) -> String {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = (server.to_owned(), tool.to_owned());
        let wanted = format!("{}_{}", plain(server), plain(tool));
        let mut number = 1;
        loop {
            let name = fitted(&wanted, number);
            let free = !OURS.contains(&name.as_str());
            match taken.get(&name) {
                _ if held(&name) => number += 1,
                Some(other) if *other == owner => return name,
                None if free => {
                    taken.insert(name.clone(), owner);
                    return name;
                }
                _ => number += 1,
            }
        }
    }
}

/// The wanted name, with a number where another has it. What is too long is cut, and told apart by
/// what was cut off.
fn fitted(wanted: &str, number: usize) -> String {
    let suffix = if number == 1 { String::new() } else { format!("_{number}") };
    if wanted.len() + suffix.len() <= NAME_CAP {
        return format!("{wanted}{suffix}");
    }
    let mut hasher = DefaultHasher::new();
    wanted.hash(&mut hasher);
    let suffix = format!("_{:08x}{suffix}", hasher.finish() & 0xFFFF_FFFF);
    format!("{}{suffix}", &wanted[..NAME_CAP - suffix.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_unique_and_stay() {
        let names = Names::default();
        assert_eq!(names.of("my server", "get.it"), "my_server_get_it");
        assert_eq!(names.of("my server", "get/it"), "my_server_get_it_2");
        assert_eq!(names.of("my_server", "get_it"), "my_server_get_it_3");
        assert_eq!(names.of("my server", "get/it"), "my_server_get_it_2");
        assert_eq!(names.of("bash", "output"), "bash_output_2");
        assert_eq!(names.of("bash", "input"), "bash_input_2");
        assert_eq!(names.of("outside", "sandbox"), "outside_sandbox_2");
        assert_eq!(names.of("süd", "ä"), "s_d__");
        // A script has the name here, and another desk has no such script.
        let held = |name: &str| name == "my_server_get_it";
        assert_eq!(names.beside("my server", "get.it", &held), "my_server_get_it_4");
        assert_eq!(names.of("my server", "get.it"), "my_server_get_it");
        let (a, b) = (format!("{}a", "x".repeat(80)), format!("{}b", "x".repeat(80)));
        let long = [names.of("s", &a), names.of("s", &b)];
        assert_ne!(long[0], long[1]);
        assert!(long.iter().all(|name| name.len() == NAME_CAP), "{long:?}");
        assert_eq!(names.of("s", &a), long[0]);
    }
}
