// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure: what was measured, and how it compares with its target. build/bench.json has one
//! object for each.

use dune_machine::{MachineType, Series};
use serde::{Deserialize, Serialize};

use super::targets::Subject;
use super::Measured;

/// Cycles of a world switch there and back, with which instructions and exits
/// make a modelled number of cycles. This is the Dune paper's figure on Ivy Bridge.
const MODEL_EXIT_CYCLES: f64 = 750.0;

/// A figure of one machine and kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
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
    /// None: the figure has no target and is only for information.
    pub judgement: Option<Judgement>,
    /// Not measured but modelled: instructions + 750 for each exit.
    pub modelled_cycles: Option<f64>,
    pub detail: Option<String>,
}

/// A figure's target, and whether the figure meets it.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The target, as the page has it.
    pub target: String,
    pub met: bool,
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
                met: target.is_met(&measured),
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
            detail: measured.detail,
        }
    }

    pub fn is_of(&self, machine: &str, kernel: &str) -> bool {
        self.machine == machine && self.kernel == kernel
    }

    /// Whether it has a target that is this machine's own.
    pub fn is_bound(&self) -> bool {
        self.judgement.as_ref().is_some_and(|judgement| judgement.binding)
    }

    /// The target of this machine's own that it misses.
    pub fn missed(&self) -> Option<&str> {
        let judgement = self.judgement.as_ref()?;
        (judgement.binding && !judgement.met).then_some(&judgement.target)
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
            judgement: Some(Judgement { target, met: true, binding: true }),
            modelled_cycles: None,
            detail: None,
        }
    }

    #[cfg(test)]
    pub fn with_met(mut self, met: bool) -> Self {
        self.judgement.as_mut().expect("an example has a target").met = met;
        self
    }
}

/// An object of build/bench.json. A figure without a target counts as met there.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    id: String,
    machine: String,
    kernel: String,
    unit: String,
    linux: Option<f64>,
    dune: f64,
    ratio: Option<f64>,
    exits: Option<f64>,
    target: Option<String>,
    met: bool,
    binding: bool,
    modelled_cycles: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    detail: Option<String>,
}

impl From<Row> for Figure {
    fn from(row: Row) -> Self {
        let Row { met, binding, .. } = row;
        Figure {
            id: row.id,
            machine: row.machine,
            kernel: row.kernel,
            unit: row.unit,
            linux: row.linux,
            dune: row.dune,
            ratio: row.ratio,
            exits: row.exits,
            judgement: row.target.map(|target| Judgement { target, met, binding }),
            modelled_cycles: row.modelled_cycles,
            detail: row.detail,
        }
    }
}

impl From<Figure> for Row {
    fn from(figure: Figure) -> Self {
        let (target, met, binding) = match figure.judgement {
            Some(Judgement { target, met, binding }) => (Some(target), met, binding),
            None => (None, true, false),
        };
        Row {
            id: figure.id,
            machine: figure.machine,
            kernel: figure.kernel,
            unit: figure.unit,
            linux: figure.linux,
            dune: figure.dune,
            ratio: figure.ratio,
            exits: figure.exits,
            target,
            met,
            binding,
            modelled_cycles: figure.modelled_cycles,
            detail: figure.detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_read_as_it_was_saved() {
        let missed = Figure::example("open", 100.0, 150.0).with_met(false);
        let without = Figure { judgement: None, ..missed.clone() };
        for figure in [missed, without] {
            let text = serde_json::to_string(&figure).expect("it can be saved");
            let again: Figure = serde_json::from_str(&text).expect("it can be read");
            assert_eq!(again.missed(), figure.missed());
            assert_eq!(again.is_bound(), figure.is_bound());
            assert_eq!(serde_json::to_string(&again).expect("it can be saved"), text);
        }
    }
}
