//! Providers, offers, quotes and token prices.
