//! Can several of these nodes serve one replica together?

use hardware::Fabric;

use crate::rejection::Rejection;

/// Rejects gangs of nodes whose network is unknown, unless the user named the node: a guess about the one thing that
/// bounds a gang is no plan.
pub(crate) fn gang_fabric(fabric: Option<&Fabric>, named: bool) -> Result<(), Rejection> {
    if named || fabric.is_some_and(|f| f.node_rate.is_some()) {
        return Ok(());
    }
    Err(Rejection::NoFabric { why: "the model needs several of these nodes, and their network is unknown".into() })
}
