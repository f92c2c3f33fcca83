//! The newtypes and the arithmetic between them.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// Hours in the month that prices are converted with: 365 × 24 / 12.
pub const HOURS_PER_MONTH: f64 = 730.0;

macro_rules! count {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// Zero of this quantity.
            pub const ZERO: Self = Self(0);

            /// The value as a float, for rates and ratios.
            pub fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// `self - other`, or zero where that would be negative.
            pub fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// Rounds a float up to a whole count; negative and not-a-number become zero, too large the maximum.
            pub fn ceil(value: f64) -> Self {
                Self(value.ceil() as u64)
            }

            /// Rounds a float down to a whole count; negative and not-a-number become zero, too large the maximum.
            pub fn floor(value: f64) -> Self {
                Self(value.floor() as u64)
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, Add::add)
            }
        }
    };
}

macro_rules! rate {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl $name {
            /// Zero of this quantity.
            pub const ZERO: Self = Self(0.0);

            /// The larger of two.
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// The smaller of two.
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, times: f64) -> Self {
                Self(self.0 * times)
            }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, by: f64) -> Self {
                Self(self.0 / by)
            }
        }

        /// A ratio of two equal quantities is a bare number.
        impl Div<$name> for $name {
            type Output = f64;
            fn div(self, by: Self) -> f64 {
                self.0 / by.0
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, Add::add)
            }
        }
    };
}

count!(
    /// An amount of memory or data, in bytes.
    Bytes
);
count!(
    /// A number of tokens.
    Tokens
);
count!(
    /// A number of model parameters (elements, not bytes).
    Params
);
rate!(
    /// Data per time in bytes per second; for links, in one direction.
    BytesPerSec
);
rate!(
    /// An amount of floating point work.
    Flop
);
rate!(
    /// Floating point (or integer) operations per second, dense.
    FlopPerSec
);
rate!(
    /// A duration in seconds.
    Seconds
);
rate!(
    /// Tokens per second; what is counted and per what stands in the name that holds it.
    TokensPerSec
);
rate!(
    /// United States dollars per hour.
    UsdPerHour
);
rate!(
    /// Electrical power in watts.
    Watts
);

impl Bytes {
    /// Binary gigabytes (2^30 bytes).
    pub fn gib(self) -> f64 {
        self.as_f64() / (1u64 << 30) as f64
    }

    /// Decimal gigabytes (10^9 bytes).
    pub fn gb(self) -> f64 {
        self.as_f64() / 1e9
    }

    /// From binary gigabytes (2^30 bytes), rounded to the byte.
    pub fn from_gib(gib: f64) -> Self {
        Self((gib * (1u64 << 30) as f64).round() as u64)
    }

    /// From decimal gigabytes (10^9 bytes), rounded to the byte.
    pub fn from_gb(gb: f64) -> Self {
        Self((gb * 1e9).round() as u64)
    }
}

impl Seconds {
    /// The duration in milliseconds.
    pub fn ms(self) -> f64 {
        self.0 * 1e3
    }

    /// From milliseconds.
    pub fn from_ms(ms: f64) -> Self {
        Self(ms / 1e3)
    }

    /// From microseconds.
    pub fn from_us(us: f64) -> Self {
        Self(us / 1e6)
    }
}

impl UsdPerHour {
    /// The same rate for a month of [`HOURS_PER_MONTH`] hours, in dollars.
    pub fn per_month(self) -> f64 {
        self.0 * HOURS_PER_MONTH
    }
}

/// Time to move data at a rate.
impl Div<BytesPerSec> for Bytes {
    type Output = Seconds;
    fn div(self, rate: BytesPerSec) -> Seconds {
        Seconds(self.as_f64() / rate.0)
    }
}

/// Time to do work at a rate.
impl Div<FlopPerSec> for Flop {
    type Output = Seconds;
    fn div(self, rate: FlopPerSec) -> Seconds {
        Seconds(self.0 / rate.0)
    }
}

/// Tokens made in a time.
impl Div<Seconds> for Tokens {
    type Output = TokensPerSec;
    fn div(self, time: Seconds) -> TokensPerSec {
        TokensPerSec(self.as_f64() / time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_products_that_mean_something() {
        let read: Seconds = Bytes::from_gb(140.0) / BytesPerSec(3.35e12);
        assert!((read.ms() - 41.791).abs() < 1e-3);
        let work: Seconds = Flop(989.4e12) / FlopPerSec(989.4e12);
        assert_eq!(work, Seconds(1.0));
        assert_eq!(Tokens(500) / Seconds(2.0), TokensPerSec(250.0));
    }

    #[test]
    fn counts_saturate_instead_of_wrapping() {
        assert_eq!(Bytes(u64::MAX) + Bytes(1), Bytes(u64::MAX));
        assert_eq!(Bytes(u64::MAX) * 2, Bytes(u64::MAX));
        assert_eq!(Bytes(1).saturating_sub(Bytes(2)), Bytes::ZERO);
        assert_eq!(Tokens::ceil(f64::NAN), Tokens::ZERO);
        assert_eq!(Tokens::ceil(-3.0), Tokens::ZERO);
    }

    #[test]
    fn gib_and_gb_differ() {
        assert_eq!(Bytes::from_gib(80.0).0, 85_899_345_920);
        assert_eq!(Bytes::from_gb(80.0).0, 80_000_000_000);
        assert!((Bytes::from_gb(80.0).gib() - 74.505_806).abs() < 1e-6);
    }
}
