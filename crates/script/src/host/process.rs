//! Commands, through the one door for processes.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolwright_proc::{Bounds, Ended, Spec};
use toolwright_tool::{Access, Plan};

use super::{Done, Guard, Host, HostError, ask};

/// Of each stream; more is read and dropped.
const OUTPUT_CAP_BYTES: usize = 8 << 20;

/// When a script does not say.
const USUAL_TIMEOUT: Duration = Duration::from_secs(600);

impl Host {
    pub(super) async fn run(&self, payload: &Value, guard: Option<&dyn Guard>) -> Done {
        let command = payload["command"].as_str().unwrap_or_default().trim().to_owned();
        let directory = match payload["cwd"].as_str() {
            Some(folder) => self.workspace().resolve(folder),
            None => self.workspace().directory().to_owned(),
        };
        let is_inside = self.workspace().contains(&directory);
        let access = Access::Execute { command: command.clone(), directory: directory.clone() };
        let _permit = ask(guard, Plan::new(command.clone(), vec![access])).await?;
        let shell = self.program("bash").or_else(|| self.program("sh"));
        let shell =
            shell.ok_or_else(|| HostError::from("there is no shell on this machine".to_owned()))?;
        let mut spec = Spec::new(shell, directory).arg("-c").arg(command).separate_errors();
        spec.withheld.clone_from(&self.options.withheld);
        spec.passed.clone_from(&self.options.passed);
        // What is asked about less because a sandbox holds it must be held by it. A command elsewhere was
        // asked about as such.
        if is_inside {
            spec = spec.fenced_by(self.options.sandbox.as_ref())?;
        }
        if let Ok(own) = serde_json::from_value::<BTreeMap<String, Value>>(payload["env"].clone()) {
            for (name, value) in own {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if self.options.environment.get(&name) != Some(&value) {
                    spec = spec.env(&name, &value);
                }
            }
        }
        if let Some(input) = payload["input"].as_str() {
            spec = spec.stdin(STANDARD.decode(input).unwrap_or_default());
        }
        let limit = payload["timeout"].as_f64().filter(|ms| *ms > 0.0);
        let limit = limit.and_then(super::milliseconds).unwrap_or(USUAL_TIMEOUT);
        let (output_bytes, errors_bytes) = (OUTPUT_CAP_BYTES, OUTPUT_CAP_BYTES);
        let ran = spec.run(Bounds { time: limit, output_bytes, errors_bytes }).await;
        let ran = ran.map_err(|e| HostError::from(e.to_string()))?;
        let Some(ended) = ran.ended else {
            let message =
                format!("the command took longer than {} s and was ended", limit.as_secs_f64());
            return Err(HostError::coded("ETIMEDOUT", message));
        };
        let (code, signal) = match ended {
            Ended::Exit(code) => (code, None),
            Ended::Signal(signal) => (128 + signal, Some(signal)),
        };
        Ok(json!({
            "stdout": STANDARD.encode(ran.output), "stderr": STANDARD.encode(ran.errors),
            "code": code, "signal": signal,
        }))
    }
}
