//! How much of a command says what it is: `git push origin` is a `git push`.

use super::parse::Raw;

const TWO: &[&str] = &[
    "bazel",
    "brew",
    "bun",
    "cargo",
    "cdk",
    "cf",
    "cmake",
    "composer",
    "consul",
    "crictl",
    "deno",
    "docker",
    "eksctl",
    "firebase",
    "flyctl",
    "git",
    "go",
    "gradle",
    "helm",
    "heroku",
    "hugo",
    "ip",
    "kind",
    "kubectl",
    "kustomize",
    "make",
    "mc",
    "minikube",
    "mongosh",
    "mvn",
    "mysql",
    "ng",
    "npm",
    "nvm",
    "nx",
    "openssl",
    "pip",
    "pipenv",
    "pnpm",
    "podman",
    "poetry",
    "psql",
    "pulumi",
    "pyenv",
    "python",
    "rake",
    "rbenv",
    "redis-cli",
    "rustup",
    "serverless",
    "skaffold",
    "sls",
    "sst",
    "swift",
    "systemctl",
    "terraform",
    "tmux",
    "turbo",
    "ufw",
    "vault",
    "vercel",
    "volta",
    "wp",
    "yarn",
];

const THREE: &[&str] = &["aws", "az", "doctl", "gcloud", "gh", "sfdx"];

const THREE_PAIRS: &[(&str, &[&str])] = &[
    ("bun", &["run", "x"]),
    ("cargo", &["add", "run"]),
    ("consul", &["kv"]),
    ("deno", &["task"]),
    ("docker", &["builder", "compose", "container", "image", "network", "volume"]),
    ("eksctl", &["create"]),
    ("git", &["config", "remote", "stash"]),
    ("ip", &["addr", "link", "netns", "route"]),
    ("kind", &["create"]),
    ("kubectl", &["kustomize", "rollout"]),
    ("mc", &["admin"]),
    ("npm", &["exec", "init", "run", "view"]),
    ("openssl", &["req", "x509"]),
    ("pnpm", &["dlx", "exec", "run"]),
    ("podman", &["container", "image"]),
    ("pulumi", &["stack"]),
    ("terraform", &["workspace"]),
    ("vault", &["auth", "kv"]),
    ("yarn", &["dlx", "run"]),
];

/// The beginning that stands for the command, with a star for the rest.
pub(super) fn always(raw: &Raw) -> String {
    let mut tokens = raw.words.iter().filter(|w| w.token).map(|w| w.source.as_str());
    let Some(first) = tokens.next() else { return raw.text.clone() };
    let first = &first;
    let second = tokens.clone().next().unwrap_or_default();
    let is_two = TWO.binary_search(first).is_ok();
    let pair = || THREE_PAIRS.iter().any(|(a, list)| a == first && list.contains(&second));
    let count = match () {
        () if THREE.contains(first) || is_two && pair() => 3,
        () if is_two => 2,
        () => 1,
    };
    let mut always = String::with_capacity(first.len() + 2);
    always.push_str(first);
    for token in tokens.take(count - 1) {
        always.push(' ');
        always.push_str(token);
    }
    always.push_str(" *");
    always
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_and_pairs_are_among_those_of_two() {
        assert!(TWO.is_sorted());
        assert!(THREE_PAIRS.iter().all(|(first, _)| TWO.contains(first)));
    }
}
