//! A permission: what is asked, and how far and for how long a yes is to reach.

use toolwright::permission::{Asked, Extent, Grant, Offer, Scope};
use toolwright::tool::Question;

use crate::width;

pub(super) struct Permission {
    pub(super) question: Question,
    pub(super) offer: Offer,
    /// What "always" could mean, the narrowest first; empty where it cannot be said.
    extents: Vec<Extent>,
    extent: usize,
    /// The person chose how far; until then what is kept for long is kept narrow.
    chosen: bool,
    scope: usize,
}

/// One way to answer.
pub(super) struct Row {
    pub(super) key: char,
    pub(super) label: String,
}

impl Permission {
    pub(super) fn new(question: Question, offer: Offer) -> Self {
        let extents: Vec<Extent> = offer.choices().into_iter().map(|(extent, _)| extent).collect();
        let extents = if offer.scopes.is_empty() { Vec::new() } else { extents };
        let mut own = Self { question, offer, extents, extent: 0, chosen: false, scope: 0 };
        own.extent = own.usual();
        own
    }

    /// The reach that is usual for the tool while this run goes on.
    fn usual(&self) -> usize {
        let always = |asked: &Asked| {
            let requests = &self.question.requests;
            let own = requests
                .iter()
                .find(|r| r.permission == asked.permission && r.pattern == asked.pattern);
            own.map(|request| request.always.clone())
        };
        let usual: Vec<String> = self.offer.asked.iter().filter_map(always).collect();
        let fits = |extent: &Extent| self.patterns(*extent) == usual;
        self.extents.iter().position(fits).unwrap_or(0)
    }

    fn patterns(&self, extent: Extent) -> Vec<String> {
        let one = |asked: &Asked| {
            let all = &asked.suggestions;
            let reaching = all.iter().rev().find(|own| own.extent <= extent);
            reaching.or(all.first()).map(|own| own.pattern.clone())
        };
        self.offer.asked.iter().filter_map(one).collect()
    }

    fn scope(&self) -> Scope {
        self.offer.scopes.get(self.scope).copied().unwrap_or_default()
    }

    /// How far it reaches, one step wider or narrower; whether there is a choice.
    pub(super) fn reach(&mut self, wider: bool) -> bool {
        let count = self.extents.len();
        if count == 0 {
            return false;
        }
        self.chosen = true;
        self.extent =
            if wider { (self.extent + 1) % count } else { (self.extent + count - 1) % count };
        true
    }

    /// For how long.
    pub(super) fn last(&mut self, longer: bool) -> bool {
        let count = self.offer.scopes.len();
        if self.extents.is_empty() || count == 0 {
            return false;
        }
        self.scope =
            if longer { (self.scope + 1) % count } else { (self.scope + count - 1) % count };
        if !self.chosen {
            self.extent = if self.scope() == Scope::Session { self.usual() } else { 0 };
        }
        true
    }

    pub(super) fn grant(&self) -> Grant {
        let extent = self.extents.get(self.extent).copied();
        Grant { scope: self.scope(), extent, patterns: Vec::new() }
    }

    /// What could be written instead, one pattern a line.
    pub(super) fn patterns_to_edit(&self) -> Option<String> {
        let extent = self.extents.get(self.extent)?;
        Some(self.patterns(*extent).join("\n"))
    }

    pub(super) fn grant_of(&self, words: &str) -> Option<Grant> {
        let lines = words.lines().map(|line| line.trim().to_owned());
        let patterns: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        (!patterns.is_empty()).then(|| Grant { scope: self.scope(), extent: None, patterns })
    }

    pub(super) fn always_row(&self) -> usize {
        usize::from(!self.extents.is_empty())
    }

    pub(super) fn can_be_kept(&self) -> bool {
        !self.extents.is_empty()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |key, label: &str| Row { key, label: label.to_owned() };
        let mut rows = vec![row('y', "Yes, once")];
        if let Some(extent) = self.extents.get(self.extent) {
            let label = format!("{}: {}", self.long(), self.said(*extent));
            rows.push(Row { key: 'a', label });
        }
        rows.push(row('n', "No"));
        rows.push(row('w', "No, and say what to do instead"));
        rows
    }

    pub(super) fn long(&self) -> &'static str {
        match self.scope() {
            Scope::Session => "Yes, always in this session",
            Scope::Project => "Yes, always in this project",
            Scope::Everywhere => "Yes, always and everywhere",
        }
    }

    /// What would be agreed to, in a few words.
    fn said(&self, extent: Extent) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (asked, pattern) in self.offer.asked.iter().zip(self.patterns(extent)) {
            let text = match pattern.as_str() {
                "*" => format!("every {}", asked.permission),
                pattern => format!("{} {pattern}", asked.permission),
            };
            if !parts.contains(&text) {
                parts.push(text);
            }
        }
        let text = width::flat(&parts.join(", "));
        if extent == Extent::Exact { format!("just {text}") } else { text }
    }

    /// Why it is asked, each reason once.
    pub(super) fn reasons(&self) -> Vec<String> {
        let asked = &self.offer.asked;
        let same = asked.iter().all(|own| asked.first().is_some_and(|first| first.why == own.why));
        let mut reasons: Vec<String> = Vec::new();
        for asked in asked {
            let text = match same {
                true => asked.why.clone(),
                false => format!("{} {}: {}", asked.permission, asked.pattern, asked.why),
            };
            if !reasons.contains(&text) {
                reasons.push(text);
            }
        }
        if reasons.is_empty() && !self.offer.why.is_empty() {
            reasons.push(self.offer.why.clone());
        }
        reasons.iter().map(|text| width::flat(text)).collect()
    }
}
