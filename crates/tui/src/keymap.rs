//! Which key does what. Names and defaults are OpenCode's where both have the thing, so that a
//! `tui.json` from there works here.

use std::collections::HashMap;

use serde_json::Value;

use crate::key::Key;

macro_rules! actions {
    ($($action:ident $name:literal $default:literal $about:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action { $($action,)* }

        /// Action, name in settings, default keys, what it does.
        const ACTIONS: &[(Action, &str, &str, &str)] =
            &[$((Action::$action, $name, $default, $about),)*];
    };
}

actions! {
    Exit "app_exit" "ctrl+d,<leader>q" "leave",
    Commands "command_list" "ctrl+p" "all commands",
    Help "help_show" "f1" "help",
    Editor "editor_open" "<leader>e" "write in $EDITOR",
    Themes "theme_list" "<leader>t" "themes",
    Status "status_view" "<leader>s" "what is set and spent",
    Export "session_export" "<leader>x" "write the conversation to a file",
    New "session_new" "<leader>n" "new session",
    Sessions "session_list" "<leader>l" "sessions",
    Timeline "session_timeline" "<leader>g" "go back to an earlier message",
    Interrupt "session_interrupt" "escape" "interrupt; twice: go back",
    Compact "session_compact" "<leader>c" "shorten the conversation",
    Models "model_list" "<leader>m" "models",
    NextModel "model_cycle_favorite" "f2" "next favourite model",
    Agents "agent_list" "<leader>a" "agents",
    NextAgent "agent_cycle" "tab" "next agent",
    PreviousAgent "agent_cycle_reverse" "<leader>tab" "previous agent",
    NextMode "mode_cycle" "shift+tab" "next mode: ask, accept-edits, plan, auto",
    Servers "mcp_list" "none" "MCP servers",
    Permissions "permission_list" "<leader>p" "rules, and what was agreed to",
    Keys "keys_list" "<leader>k" "keys",
    Skills "prompt_skills" "none" "skills",
    Connect "provider_connect" "none" "keep a key for a provider",
    Children "session_child_first" "<leader>down" "look at an agent that works for this one",
    Rename "session_rename" "none" "another name for the session",
    VimKeys "vim_keys" "none" "vim keys, or none",
    Undo "messages_undo" "<leader>u" "undo the last message",
    Redo "messages_redo" "<leader>r" "redo it",
    Copy "messages_copy" "<leader>y" "copy the last answer",
    Details "tool_details" "ctrl+o" "show whole outputs",
    Thinking "display_thinking" "<leader>h" "show reasoning",
    Stamps "session_toggle_timestamps" "none" "show when each message was said",
    Transcript "transcript" "ctrl+t" "the whole conversation, full screen",
    Jobs "jobs_list" "<leader>j" "background jobs",
    Suspend "terminal_suspend" "ctrl+z" "to the shell",
    Redraw "redraw" "ctrl+l" "draw again",
    Clear "input_clear" "ctrl+c" "clear; interrupt; leave",
    Submit "input_submit" "return" "send; steer while it works",
    Queue "input_queue" "alt+return" "say it after this turn",
    Newline "input_newline" "shift+return,ctrl+return,ctrl+j" "new line",
    Left "input_move_left" "left,ctrl+b" "left",
    Right "input_move_right" "right,ctrl+f" "right",
    Up "input_move_up" "up" "up, then older prompts",
    Down "input_move_down" "down" "down, then newer prompts",
    LineHome "input_line_home" "ctrl+a" "begin of line",
    LineEnd "input_line_end" "ctrl+e" "end of line",
    Home "input_buffer_home" "home" "begin of text",
    End "input_buffer_end" "end" "end of text",
    WordRight "input_word_forward" "alt+f,alt+right,ctrl+right" "word right",
    WordLeft "input_word_backward" "alt+b,alt+left,ctrl+left" "word left",
    KillEnd "input_delete_to_line_end" "ctrl+k" "cut to end of line",
    KillStart "input_delete_to_line_start" "ctrl+u" "cut to begin of line",
    KillWordBack "input_delete_word_backward" "ctrl+w,alt+backspace,ctrl+backspace" "cut word left",
    KillWord "input_delete_word_forward" "alt+d,alt+delete,ctrl+delete" "cut word right",
    Backspace "input_backspace" "backspace,shift+backspace,ctrl+h" "delete left",
    Delete "input_delete" "delete,shift+delete" "delete right",
    Paste "input_paste" "ctrl+v" "paste an image or text from the clipboard",
    Yank "input_yank" "ctrl+y" "insert what was cut",
    Transpose "input_transpose" "alt+t" "swap characters",
    UndoText "input_undo" "ctrl+-" "undo writing",
    RedoText "input_redo" "ctrl+.,alt+-" "redo writing",
    SearchHistory "history_search" "ctrl+r" "search older prompts",
}

impl Action {
    fn row(self) -> &'static (Self, &'static str, &'static str, &'static str) {
        // Each has one: the list is made with the type.
        &ACTIONS[self as usize]
    }

    /// As settings call it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    pub fn about(self) -> &'static str {
        self.row().3
    }

    pub fn all() -> impl Iterator<Item = Self> {
        ACTIONS.iter().map(|(action, ..)| *action)
    }

    pub fn named(name: &str) -> Option<Self> {
        ACTIONS.iter().find(|(_, own, ..)| *own == name).map(|(action, ..)| *action)
    }
}

pub struct Keymap {
    pub leader: Key,
    keys: HashMap<(bool, Key), Action>,
}

impl Default for Keymap {
    fn default() -> Self {
        let mut map = Self { leader: Key::ctrl('x'), keys: HashMap::new() };
        for (action, _, keys, _) in ACTIONS {
            map.bind(*action, keys);
        }
        map
    }
}

impl Keymap {
    /// With a `keybinds` object. What is not understood is told, and left as it was.
    pub fn with(settings: &Value) -> (Self, Vec<String>) {
        let mut map = Self::default();
        let mut problems = Vec::new();
        for (name, value) in settings.as_object().into_iter().flatten() {
            let wanted = alternatives(value);
            if name == "leader" {
                match wanted.first().and_then(|k| Key::parse(k)) {
                    Some(key) => map.leader = key,
                    None => problems.push(format!("keybinds.leader: {value} is no key")),
                }
                continue;
            }
            // Those that only OpenCode has are nothing to complain of.
            let Some((action, _, _, _)) = ACTIONS.iter().find(|(_, own, _, _)| own == name) else {
                continue;
            };
            map.keys.retain(|_, bound| bound != action);
            for key in &wanted {
                if !map.bind(*action, key) {
                    problems.push(format!("keybinds.{name}: {key:?} is no key"));
                }
            }
        }
        (map, problems)
    }

    fn bind(&mut self, action: Action, keys: &str) -> bool {
        let mut all = true;
        for text in keys.split(',').map(str::trim).filter(|t| !t.is_empty() && *t != "none") {
            let (led, name) = match text.strip_prefix("<leader>") {
                Some(name) => (true, name),
                None => (false, text),
            };
            match Key::parse(name) {
                Some(key) => {
                    self.keys.insert((led, key), action);
                }
                None => all = false,
            }
        }
        all
    }

    pub fn action(&self, led: bool, key: Key) -> Option<Action> {
        self.keys.get(&(led, key)).copied()
    }

    /// The keys of an action as people write them.
    pub fn keys_of(&self, action: Action) -> String {
        let mut keys: Vec<String> = self
            .keys
            .iter()
            .filter(|(_, bound)| **bound == action)
            .map(|((led, key), _)| match led {
                true => format!("{} {key}", self.leader),
                false => key.to_string(),
            })
            .collect();
        keys.sort_by_key(|key| (key.len(), key.clone()));
        keys.join(", ")
    }

    /// Every action with its keys, for help.
    pub fn all(&self) -> Vec<(String, &'static str)> {
        ACTIONS.iter().map(|(action, _, _, about)| (self.keys_of(*action), *about)).collect()
    }
}

/// A string of alternatives, an object with a key, a list of either, or `false`.
fn alternatives(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        Value::Array(all) => all.iter().flat_map(alternatives).collect(),
        Value::Object(one) => {
            if let Some(key) = one.get("key") {
                return alternatives(key);
            }
            let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
            let on = |key: &str| one.get(key) == Some(&Value::Bool(true));
            let mut text = String::new();
            for (key, word) in [("ctrl", "ctrl+"), ("meta", "alt+"), ("shift", "shift+")] {
                if on(key) {
                    text.push_str(word);
                }
            }
            vec![format!("{text}{name}")]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::key::Code;

    #[test]
    fn defaults_are_all_keys_and_none_is_taken_twice() {
        let map = Keymap::default();
        let keys = ACTIONS.iter().flat_map(|(_, _, keys, _)| keys.split(','));
        let count = keys.filter(|key| *key != "none").count();
        assert_eq!(map.keys.len(), count);
        assert_eq!(map.action(true, Key::char('m')), Some(Action::Models));
        assert_eq!(map.action(false, Key::plain(Code::Enter)), Some(Action::Submit));
    }

    #[test]
    fn keys_can_be_bound_anew_taken_away_and_written_in_every_form() {
        let (map, problems) = Keymap::with(&json!({
            "leader": "ctrl+g", "model_list": "f5,<leader>o", "agent_cycle": false,
            "theme_list": {"name": "t", "ctrl": true}, "session_new": ["none"],
            "tool_details": "ctrl+nothing", "diff_close": "q",
        }));
        assert_eq!(map.leader, Key::ctrl('g'));
        assert_eq!(map.action(false, Key::plain(Code::F(5))), Some(Action::Models));
        assert_eq!(map.action(true, Key::char('m')), None);
        assert_eq!(map.action(false, Key::plain(Code::Tab)), None);
        assert_eq!(map.action(false, Key::ctrl('t')), Some(Action::Themes));
        assert_eq!(map.action(true, Key::char('n')), None);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(map.keys_of(Action::Models), "f5, ctrl+g o");
    }
}
