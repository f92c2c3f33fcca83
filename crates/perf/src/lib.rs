//! One model on one layout on one node: memory and step time.
