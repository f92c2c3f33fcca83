//! Limits on how much is bought.

use units::UsdPerHour;

use crate::rejection::Rejection;

/// Rejects plans with more nodes than allowed.
pub(crate) fn max_nodes(nodes: u64, limit: Option<u32>) -> Result<(), Rejection> {
    match limit {
        Some(have) if nodes > u64::from(have) => Err(Rejection::TooManyNodes { need: nodes, have: u64::from(have) }),
        _ => Ok(()),
    }
}

/// Rejects plans dearer than the budget.
pub(crate) fn budget(cost: UsdPerHour, limit: Option<UsdPerHour>) -> Result<(), Rejection> {
    match limit {
        Some(have) if cost.0 > have.0 => Err(Rejection::OverBudget { need: cost, have }),
        _ => Ok(()),
    }
}
