// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure: what was measured, and how it compares with its target. build/bench.json has one
//! object for each.

use dune_machine::{MachineType, Series};
use serde::{Deserialize, Serialize};

use super::targets::{Outcome, Subject};
use super::{Measured, OfFunction};

/// Cycles of a world switch there and back, with which instructions and exits
/// make a modelled number of cycles. This is the Dune paper's figure on Ivy Bridge.
const MODEL_EXIT_CYCLES: f64 = 750.0;

/// A figure of one machine and kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct Figure {
    pub id: String,
    pub machine: String,
    pub kernel: String,
    pub unit: String,
    /// None, if there is nothing to compare with.
    pub linux: Option<f64>,
    pub dune: f64,
    /// dune / linux
    pub ratio: Option<f64>,
    pub exits: Option<f64>,
    /// Added to what the target permits.
    pub allowance: f64,
    /// None: the figure has no target and is only for information.
    pub judgement: Option<Judgement>,
    /// Not measured but modelled: instructions + 750 for each exit.
    pub modelled_cycles: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<OfFunction>,
}

/// A figure's target, and whether the figure meets it.
#[derive(Debug, Clone, Serialize)]
pub struct Judgement {
    /// The target, as the page has it.
    pub target: String,
    pub outcome: Outcome,
    /// Whether the target is this machine's own, and not the other machine's, which is
    /// shown for comparison.
    pub binding: bool,
}

impl Figure {
    /// A measurement, which is judged by its target.
    pub fn new(measured: Measured, machine_type: &MachineType, series: Series) -> Self {
        let judgement = Subject::of(&measured.id).and_then(|subject| {
            let target = subject.target(machine_type)?;
            Some(Judgement {
                target: target.text(subject),
                outcome: target.judge(&measured, series),
                binding: target.binds(machine_type),
            })
        });
        let counts = measured.unit == "instructions";
        let model = |exits: f64| measured.dune + MODEL_EXIT_CYCLES * exits;
        Figure {
            machine: machine_type.name.to_owned(),
            kernel: series.name().to_owned(),
            ratio: measured.linux.map(|linux| measured.dune / linux),
            judgement,
            modelled_cycles: measured.exits.filter(|_| counts).map(model),
            id: measured.id,
            unit: measured.unit,
            linux: measured.linux,
            dune: measured.dune,
            exits: measured.exits,
            allowance: measured.allowance,
            detail: measured.detail,
            functions: measured.functions,
        }
    }

    pub fn is_of(&self, machine: &str, kernel: &str) -> bool {
        self.machine == machine && self.kernel == kernel
    }

    /// How it compares with the target of this machine's own, if it has one.
    pub fn outcome(&self) -> Option<Outcome> {
        let judgement = self.judgement.as_ref()?;
        judgement.binding.then_some(judgement.outcome)
    }

    #[cfg(test)]
    pub fn example(id: &str, linux: f64, dune: f64) -> Self {
        let target = "≤ 1.1".to_owned();
        Figure {
            id: id.to_owned(),
            machine: "svm".to_owned(),
            kernel: "6.1".to_owned(),
            unit: "instructions".to_owned(),
            linux: Some(linux),
            dune,
            ratio: Some(dune / linux),
            exits: Some(1.0),
            allowance: 0.0,
            judgement: Some(Judgement { target, outcome: Outcome::Met, binding: true }),
            modelled_cycles: None,
            detail: None,
            functions: Vec::new(),
        }
    }

    #[cfg(test)]
    pub fn with(mut self, outcome: Outcome) -> Self {
        self.judgement.as_mut().expect("an example has a target").outcome = outcome;
        self
    }
}

/// The fields of an object in build/bench.json that are read. The others are computed from them and
/// from today's targets.
#[derive(Deserialize)]
struct Saved {
    machine: String,
    kernel: String,
    #[serde(flatten)]
    measured: Measured,
}

impl TryFrom<Saved> for Figure {
    type Error = dune_machine::Error;

    fn try_from(saved: Saved) -> Result<Self, Self::Error> {
        Ok(Figure::new(saved.measured, saved.machine.parse()?, saved.kernel.parse()?))
    }
}

#[cfg(test)]
mod tests {
    use dune_machine::SVM;

    use super::super::targets::SUBJECTS;
    use super::*;

    #[test]
    fn a_figure_is_read_as_it_was_saved() {
        let ids = SUBJECTS.iter().map(|subject| subject.id).chain(["of no subject"]);
        for id in ids {
            let measured = Measured {
                id: id.to_owned(),
                unit: "instructions".to_owned(),
                linux: Some(100.0),
                dune: 126.0,
                exits: None,
                allowance: 25.0,
                detail: None,
                functions: Vec::new(),
            };
            let figure = Figure::new(measured, &SVM, Series::V6_1);
            let text = serde_json::to_string(&figure).expect("it can be saved");
            let again: Figure = serde_json::from_str(&text).expect("it can be read");
            assert_eq!(serde_json::to_string(&again).expect("it can be saved"), text);
        }
    }
}
