//! From what was said to a load with nothing left open, and the contradictions that stop it.

use model::ModelSpec;

use super::{PlanRequest, RequestError};
use crate::workload::{Load, Preset, Traffic, Workload};

impl PlanRequest {
    /// Checks that no two keys contradict each other.
    pub fn check(&self) -> Result<(), RequestError> {
        let clash =
            |key: &str, value: String, problem: &str, hint: &str| Err(RequestError::new(key, &value, problem, hint));
        if self.model.is_empty() && self.params.is_none() {
            return clash("model", String::new(), "no model is named", "name one, or give a bare size: `--params 70B`");
        }
        if !self.model.is_empty() && self.params.is_some() {
            return clash("params", self.model.clone(), "a model is named too", "leave out the model or `--params`");
        }
        if let (Some(params), Some(active)) = (self.params, self.active)
            && active > params
        {
            return clash("active", active.to_string(), "more than `--params`", "active parameters are a part of all");
        }
        if self.active.is_some() && self.params.is_none() {
            return clash("active", String::new(), "a model's file says it", "use it only with `--params`");
        }
        if self.concurrency.is_some() && self.rate.is_some() {
            return clash(
                "rate",
                self.rate.unwrap_or(0.0).to_string(),
                "`--concurrency` is given too",
                "choose one of them",
            );
        }
        if self.users.is_some() && (self.concurrency.is_some() || self.rate.is_some()) {
            let hint = "users are turned into a rate: leave out `--users`, or `--rate` and `--concurrency`";
            return clash("users", self.users.unwrap_or(0).to_string(), "a load is given too", hint);
        }
        let traffic = self.traffic();
        if let Some(context) = self.context
            && context < traffic.input + traffic.output
        {
            let need = traffic.input + traffic.output;
            let problem = format!("input and output together are {need} tokens");
            return Err(RequestError::new("context", &context.to_string(), problem, format!("use at least `{need}`")));
        }
        Ok(())
    }

    /// Checks the request against the model that it names: a context that it can have, tokens that it can make.
    pub fn check_model(&self, spec: &ModelSpec) -> Result<(), RequestError> {
        let traffic = self.traffic();
        if traffic.output > 0 && spec.is_encoder() {
            let problem = format!("{} makes no tokens, it is an encoder", spec.name);
            return Err(RequestError::new("output", &traffic.output.to_string(), problem, "use `--for embed`"));
        }
        if spec.max_context > 0 && traffic.context > spec.max_context {
            let (key, value) = match self.context {
                Some(context) => ("context", context),
                None => ("input", traffic.input),
            };
            let most = spec.max_context;
            let problem = format!("{} takes {most} tokens in all, as its config claims", spec.name);
            let hint = format!("keep input and output together within `{most}`: `--input`, `--output`, `--context`");
            return Err(RequestError::new(key, &value.to_string(), problem, hint));
        }
        Ok(())
    }

    /// The load with every gap filled from the preset, and what was assumed.
    pub fn traffic(&self) -> Traffic {
        let mut assumptions = Vec::new();
        let said_load = self.concurrency.is_some() || self.rate.is_some();
        let said_anything = said_load || self.users.is_some() || self.input.is_some() || self.output.is_some();
        let workload = self.workload.unwrap_or(Workload::Chat);
        let preset: Preset = workload.preset();
        if self.workload.is_none() && !said_anything {
            assumptions.push("no load was given: `--for chat` is assumed".to_owned());
        }
        let input = self.input.unwrap_or(preset.input);
        let output = self.output.unwrap_or(preset.output);
        if self.input.is_none() || self.output.is_none() {
            assumptions.push(format!("a {} request is {input} tokens in, {output} out (preset)", workload.name()));
        }
        // the preset's cached share belongs to its own prompts: with the user's own shape nothing is assumed cached
        let preset_shape = self.input.is_none();
        let prefix_share = self.prefix_share.unwrap_or(if preset_shape { preset.prefix_share } else { 0.0 });
        if self.prefix_share.is_none() && prefix_share > 0.0 {
            assumptions
                .push(format!("{:.0} % of each prompt is found in the prefix cache (preset)", prefix_share * 100.0));
        }
        let load = if let Some(n) = self.concurrency {
            Load::Concurrency(n)
        } else if let Some(rate) = self.rate {
            Load::Rate(rate)
        } else {
            let users = self.users.unwrap_or(preset.users);
            let what = if self.users.is_some() { "" } else { " (preset)" };
            if preset.seconds_between_requests > 0.0 {
                let rate = users as f64 / preset.seconds_between_requests;
                assumptions.push(format!(
                    "{users} active users{what} send a request every {} s each: {} requests/s",
                    preset.seconds_between_requests,
                    units::sig3(rate)
                ));
                Load::Rate(rate)
            } else {
                assumptions.push(format!("{users} requests are kept in flight{what}"));
                Load::Concurrency(users as f64)
            }
        };
        // limits of a preset hold only where the use was named or nothing at all was said
        let preset_limits = self.workload.is_some() || !said_anything || self.users.is_some();
        let ttft = self.ttft.or(if preset_limits { preset.ttft } else { None });
        let tpot = self.tpot.or(if preset_limits { preset.tpot } else { None });
        if preset_limits && (self.ttft.is_none() && ttft.is_some() || self.tpot.is_none() && tpot.is_some()) {
            let mut limits = Vec::new();
            limits.extend(ttft.filter(|_| self.ttft.is_none()).map(|t| format!("TTFT {t}")));
            limits.extend(tpot.filter(|_| self.tpot.is_none()).map(|t| format!("TPOT {t}")));
            assumptions.push(format!("limits of the {} preset: {}", workload.name(), limits.join(", ")));
        }
        if ttft.is_some() || tpot.is_some() {
            assumptions.push("limits are held against the closed form's mean, not a percentile".to_owned());
        }
        let context = self.context.unwrap_or(input + output);
        Traffic { input, output, prefix_share, load, ttft, tpot, context, assumptions }
    }
}
