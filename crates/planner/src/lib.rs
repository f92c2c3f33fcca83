//! From a request to ranked, explained, priced plans.
