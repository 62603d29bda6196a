//! What people set (`tui.json`) and what they did before: theme, favourites, prompts of this project.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::picture::Means;
use crate::theme::Theme;

/// Prompts of one project that are read back.
const HISTORY_CAP: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prefs {
    pub theme: Option<String>,
    pub favourites: Vec<String>,
    /// Models, newest first.
    pub recent: Vec<String>,
    pub details: bool,
    pub thinking: bool,
    pub dark: bool,
    /// Vim's keys as the settings say, and as was chosen here.
    pub vim_usual: bool,
    pub vim: Option<bool>,
    /// How images are shown.
    pub pictures: Means,
    /// When each message was said.
    pub stamps: bool,
    /// Keys that were chosen here, by the names of settings.
    pub keys: BTreeMap<String, String>,
    /// Themes of the person's own, by name.
    pub themes: BTreeMap<String, Theme>,
}

/// Everything that is read at the start.
pub struct Loaded {
    pub prefs: Prefs,
    pub theme: Theme,
    pub keybinds: Value,
    pub history: Vec<String>,
    pub warnings: Vec<String>,
}

/// Where it is all kept.
#[derive(Debug, Clone)]
pub struct Places {
    /// Folders with `tui.json` and `themes`, the nearest last.
    pub config: Vec<PathBuf>,
    pub state: PathBuf,
    pub history: PathBuf,
}

impl Places {
    pub fn new(config: &Path, data: &Path, directory: &Path) -> Self {
        let mut folders = vec![config.join("opencode"), config.join("toolwright")];
        folders.extend([directory.join(".opencode"), directory.join(".toolwright")]);
        let name: String = directory
            .display()
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let start = name.len().saturating_sub(120);
        let history = data.join("history").join(format!("{}.jsonl", &name[start..]));
        Self { config: folders, state: data.join("tui.json"), history }
    }

    pub fn load(&self, env: &dyn Fn(&str) -> Option<String>) -> Loaded {
        let mut warnings = Vec::new();
        let mut settings = json!({});
        let mut keybinds = serde_json::Map::new();
        for folder in &self.config {
            for name in ["tui.json", "tui.jsonc"] {
                let path = folder.join(name);
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let (collect, options) = (Default::default(), Default::default());
                let parsed = jsonc_parser::parse_to_ast(&text, &collect, &options);
                match parsed.map(|parsed| parsed.value.map(Value::from)) {
                    Ok(Some(Value::Object(own))) => {
                        for (key, value) in own {
                            match (key.as_str(), value) {
                                ("keybinds", Value::Object(keys)) => keybinds.extend(keys),
                                (_, value) => settings[key] = value,
                            }
                        }
                    }
                    Ok(_) => {}
                    Err(problem) => warnings.push(format!("{}: {problem}", path.display())),
                }
            }
        }
        let state: Value = std::fs::read_to_string(&self.state)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let strings = |value: &Value| -> Vec<String> {
            let all = value.as_array().map_or(&[][..], Vec::as_slice);
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (pictures, warning) = Means::chosen(&settings["images"], env);
        warnings.extend(warning);
        let dark = is_dark(&settings["mode"], env);
        let themes = self.themes(dark, &mut warnings);
        let wanted = state["theme"].as_str().or(settings["theme"].as_str()).map(str::to_owned);
        let prefs = Prefs {
            theme: wanted.clone(),
            favourites: strings(&state["favourites"]),
            recent: strings(&state["recent"]),
            details: state["details"] == true,
            thinking: state["thinking"] == true,
            dark,
            vim_usual: settings["vim"] == true,
            vim: state["vim"].as_bool(),
            pictures,
            stamps: state["timestamps"] == true,
            keys: chosen_keys(&state["keybinds"]),
            themes,
        };
        let theme = match wanted.as_deref().map(|name| (name, prefs.theme_named(name))) {
            None => Theme::default(),
            Some((_, Some(theme))) => theme,
            Some((name, None)) => {
                warnings.push(format!("there is no theme {name}; /themes lists them"));
                Theme::default()
            }
        };
        Loaded { prefs, theme, keybinds: Value::Object(keybinds), history: self.past(), warnings }
    }

    fn themes(&self, dark: bool, warnings: &mut Vec<String>) -> BTreeMap<String, Theme> {
        let mut themes = BTreeMap::new();
        for folder in &self.config {
            let files = std::fs::read_dir(folder.join("themes")).into_iter().flatten().flatten();
            for path in
                files.map(|f| f.path()).filter(|p| p.extension().is_some_and(|x| x == "json"))
            {
                let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                match Theme::from_json(&name, &text, dark) {
                    Ok(theme) => {
                        themes.insert(name, theme);
                    }
                    Err(problem) => {
                        warnings
                            .push(format!("the theme {} is left out: {problem}", path.display()));
                    }
                }
            }
        }
        themes
    }

    fn past(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.history).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(HISTORY_CAP);
        lines[from..].iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Adds a prompt. One that cannot be kept is not worth a complaint.
    pub fn remember(&self, prompt: &str) {
        if let Some(folder) = self.history.parent() {
            std::fs::create_dir_all(folder).ok();
        }
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.history);
        if let Ok(mut file) = file {
            writeln!(file, "{}", json!(prompt)).ok();
        }
    }

    pub fn save(&self, prefs: &Prefs) -> std::io::Result<()> {
        let state = json!({
            "theme": prefs.theme, "favourites": prefs.favourites, "recent": prefs.recent,
            "details": prefs.details, "thinking": prefs.thinking, "timestamps": prefs.stamps, "vim": prefs.vim,
            "keybinds": prefs.keys,
        });
        if let Some(folder) = self.state.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = self.state.with_extension("json.new");
        std::fs::write(&fresh, format!("{state:#}\n"))?;
        std::fs::rename(&fresh, &self.state)
    }
}

impl Prefs {
    pub fn theme_named(&self, name: &str) -> Option<Theme> {
        self.themes.get(name).cloned().or_else(|| Theme::built_in(name, self.dark))
    }
}

fn chosen_keys(value: &Value) -> BTreeMap<String, String> {
    let all = value.as_object().into_iter().flatten();
    all.filter_map(|(name, key)| Some((name.clone(), key.as_str()?.to_owned()))).collect()
}

/// By the settings, else by what some terminals tell; asking the terminal would take time.
fn is_dark(mode: &Value, env: &dyn Fn(&str) -> Option<String>) -> bool {
    match mode.as_str() {
        Some("light") => return false,
        Some("dark") => return true,
        _ => {}
    }
    let told = env("COLORFGBG");
    let background = told.as_deref().and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
    !matches!(background, Some(7 | 9..=15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_themes_and_prompts_are_found_again() {
        let root = tempfile::tempdir().unwrap();
        let (config, data) = (root.path().join("config"), root.path().join("data"));
        let themes = config.join("opencode/themes");
        std::fs::create_dir_all(&themes).unwrap();
        std::fs::write(themes.join("mine.json"), r#"{"theme": {"primary": 5}}"#).unwrap();
        std::fs::write(themes.join("bad.json"), "{").unwrap();
        let text = "{ // mine\n\"theme\": \"mine\", \"keybinds\": {\"leader\": \"ctrl+g\"}}";
        std::fs::write(config.join("opencode/tui.json"), text).unwrap();
        let places = Places::new(&config, &data, Path::new("/some/work"));
        places.remember("one\ntwo");
        let loaded = places.load(&|_| None);
        assert_eq!(loaded.theme.name, "mine");
        assert_eq!(loaded.keybinds["leader"], "ctrl+g");
        assert_eq!(loaded.history, ["one\ntwo"]);
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
        let prefs = Prefs { theme: Some("nord".to_owned()), details: true, ..loaded.prefs };
        places.save(&prefs).unwrap();
        let again = places.load(&|_| None);
        assert_eq!(again.theme.name, "nord");
        assert!(again.prefs.details);
    }

    #[test]
    fn light_terminals_are_known_where_they_say_so() {
        let env = |value: &'static str| move |_: &str| Some(value.to_owned());
        assert!(!is_dark(&Value::Null, &env("0;15")));
        assert!(is_dark(&Value::Null, &env("15;0")));
        assert!(!is_dark(&json!("light"), &|_| None));
        assert!(is_dark(&Value::Null, &|_| None));
    }
}
