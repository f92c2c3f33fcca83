//! The term tree: every number that Nodewise prints can be opened into named terms, their formula and
//! the basis of their inputs.

use std::fmt;

use crate::{Bytes, Seconds};

/// Where a number comes from, best first; a sum is as weak as its weakest term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Read from a file or measured on the thing itself.
    Measured,
    /// From a curve that was fitted on measurements, inside its range.
    Calibrated,
    /// Computed from measured, calibrated or published figures by a stated formula.
    Derived,
    /// Taken for want of a source; the reason is given beside it.
    Assumed,
}

impl Basis {
    /// The word used in output and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Calibrated => "calibrated",
            Self::Derived => "derived",
            Self::Assumed => "assumed",
        }
    }

    /// The weaker of two.
    pub fn weakest(self, other: Self) -> Self {
        self.max(other)
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The value of a term with its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Memory or data.
    Bytes(Bytes),
    /// Time.
    Time(Seconds),
    /// A bare number with the name of what it counts (`tokens`, `GPUs`, `` for a ratio).
    Number(f64, &'static str),
    /// US dollars per hour.
    UsdPerHour(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(v) => v.fmt(f),
            Self::Time(v) => v.fmt(f),
            Self::Number(v, "") => f.pad(&crate::sig3(*v)),
            Self::Number(v, unit) => f.pad(&format!("{} {unit}", crate::sig3(*v))),
            Self::UsdPerHour(v) => f.pad(&format!("${}/h", crate::sig3(*v))),
        }
    }
}

/// A named part of an estimate with its formula, the basis of its inputs and the terms that it sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Stable snake-case name, unique among its siblings.
    pub name: String,
    /// What it amounts to.
    pub value: Value,
    /// How it was computed, in words and symbols that a reader can redo.
    pub formula: String,
    /// The weakest basis among its inputs.
    pub basis: Basis,
    /// Its parts; empty for a leaf.
    pub parts: Vec<Term>,
}

impl Term {
    /// A leaf with no formula yet, `Derived`.
    pub fn new(name: impl Into<String>, value: Value) -> Self {
        Self { name: name.into(), value, formula: String::new(), basis: Basis::Derived, parts: Vec::new() }
    }

    /// A leaf of memory.
    pub fn bytes(name: impl Into<String>, value: Bytes) -> Self {
        Self::new(name, Value::Bytes(value))
    }

    /// A leaf of time.
    pub fn time(name: impl Into<String>, value: Seconds) -> Self {
        Self::new(name, Value::Time(value))
    }

    /// Sets the formula.
    pub fn formula(mut self, formula: impl Into<String>) -> Self {
        self.formula = formula.into();
        self
    }

    /// Sets the basis.
    pub fn basis(mut self, basis: Basis) -> Self {
        self.basis = basis;
        self
    }

    /// Adds parts; the basis becomes the weakest of them and its own.
    pub fn parts(mut self, parts: impl IntoIterator<Item = Term>) -> Self {
        for part in parts {
            self.basis = self.basis.weakest(part.basis);
            self.parts.push(part);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_as_weak_as_its_weakest_term() {
        let sum = Term::bytes("total", Bytes(3)).basis(Basis::Measured).parts([
            Term::bytes("a", Bytes(1)).basis(Basis::Calibrated),
            Term::bytes("b", Bytes(2)).basis(Basis::Assumed),
        ]);
        assert_eq!(sum.basis, Basis::Assumed);
        assert_eq!(Basis::Measured.weakest(Basis::Derived), Basis::Derived);
    }
}
