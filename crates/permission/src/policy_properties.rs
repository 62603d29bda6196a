//! Law: *deny* is final. Whatever is added inside (a layer, an approval, a mode), it stays.

use proptest::prelude::*;

use super::*;
use crate::defaults::shipped_defaults;

const WORDS: &[&str] = &["*", "a", "a*", "*b", "a b", "a *", "?", "b/*", "bash", "edit"];

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(WORDS).prop_map(str::to_owned)
}

fn action() -> impl Strategy<Value = Action> {
    prop::sample::select(vec![Action::Allow, Action::Ask, Action::Deny])
}

fn layer(kind: LayerKind) -> impl Strategy<Value = Layer> {
    let rule = (word(), word(), action()).prop_map(|(permission, pattern, action)| Rule {
        permission,
        pattern,
        action,
    });
    prop::collection::vec(rule, 0..5).prop_map(move |rules| Layer {
        kind,
        origin: format!("{kind:?}"),
        rules,
    })
}

fn request() -> impl Strategy<Value = Request> {
    let maybe = || prop::option::of(word());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (word(), word(), maybe(), maybe(), maybe(), flags).prop_map(
        |(permission, pattern, also, floor, doubt, (harmless, read_only, advisory))| Request {
            respelled: false,
            permission,
            always: pattern.clone(),
            pattern,
            also,
            floor,
            doubt,
            harmless,
            read_only,
            advisory,
            contained: !advisory,
            unasked: false,
        },
    )
}

fn approval() -> impl Strategy<Value = Approval> {
    let scope = prop::sample::select(Scope::ALL.to_vec());
    (word(), word(), any::<bool>(), scope).prop_map(|(permission, pattern, exact, scope)| {
        Approval { permission, pattern, exact, scope, command: String::new() }
    })
}

const KINDS: [LayerKind; 5] =
    [LayerKind::Managed, LayerKind::User, LayerKind::Project, LayerKind::Agent, LayerKind::Session];

/// Layers from the outermost inwards; how many of them there are at first.
fn layers() -> impl Strategy<Value = (Vec<Layer>, usize)> {
    let all = KINDS.map(layer);
    (all, any::<bool>(), 0..KINDS.len()).prop_map(|(layers, shipped, count)| {
        let mut found: Vec<Layer> = layers.into();
        if shipped {
            found.insert(0, shipped_defaults());
        }
        (found, count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_inside_turns_a_deny_by_rule_into_something_else(
        (layers, count) in layers(),
        request in request(),
        approvals in prop::collection::vec(approval(), 0..4),
        mode in prop::sample::select(Mode::ALL.to_vec()),
    ) {
        let outer = Policy::new(layers[..count].to_vec());
        let before = outer.judge(&request);
        // Where no rule spoke, nothing was denied by anybody: an inner layer may be the first to.
        if before.action == Action::Deny && before.from != "no rule" {
            let mut inner = Policy::new(layers).with_mode(mode);
            approvals.into_iter().for_each(|approval| inner.approve(approval));
            prop_assert_eq!(inner.judge(&request).action, Action::Deny);
        }
    }

    #[test]
    fn approvals_and_modes_never_lift_a_deny_nor_the_floor(
        (layers, _) in layers(),
        request in request(),
        approvals in prop::collection::vec(approval(), 0..4),
        mode in prop::sample::select(Mode::ALL.to_vec()),
    ) {
        let plain = Policy::new(layers);
        let mut changed = plain.clone().with_mode(mode);
        approvals.into_iter().for_each(|approval| changed.approve(approval));
        let (before, after) = (plain.judge(&request).action, changed.judge(&request).action);
        if before == Action::Deny {
            prop_assert_eq!(after, Action::Deny);
        }
        // And nothing but a plan makes it stricter.
        if mode != Mode::Plan {
            prop_assert!(after <= before);
        }
        if request.floor.is_some() {
            prop_assert_eq!(after, Action::Deny);
        }
    }

    #[test]
    fn what_may_be_done_in_plan_changes_nothing(request in request(), (layers, _) in layers()) {
        let judged = Policy::new(layers).with_mode(Mode::Plan).judge(&request);
        if judged.action != Action::Deny {
            prop_assert!(request.read_only || request.harmless);
        }
    }

    #[test]
    fn a_tool_that_is_not_offered_is_never_allowed((layers, _) in layers(), request in request()) {
        let policy = Policy::new(layers);
        if policy.always_denies(&request.permission) {
            prop_assert_eq!(policy.judge(&request).action, Action::Deny);
        }
    }
}
