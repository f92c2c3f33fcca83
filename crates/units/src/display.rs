//! Display with three significant digits.

use std::fmt;

use crate::quantity::*;

/// Writes a number with three significant digits and no exponent: `0.352`, `3.40`, `34`, `1240`.
///
/// Whole numbers up to 999 keep no decimals; larger ones are rounded to three digits. Not-a-number and
/// infinity print as `—`, as everything unknown does.
pub fn sig3(value: f64) -> String {
    if !value.is_finite() {
        return "—".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = 2 - magnitude;
    if decimals > 0 {
        // rounding may carry into the next magnitude (9.999 -> 10.0): format once more from the rounded value
        let text = format!("{value:.*}", decimals.min(12) as usize);
        let rounded: f64 = text.parse().unwrap_or(value);
        if rounded != 0.0 && rounded.abs().log10().floor() as i32 > magnitude {
            return format!("{rounded:.*}", (decimals - 1).clamp(0, 12) as usize);
        }
        text
    } else {
        let step = 10f64.powi(-decimals);
        format!("{:.0}", (value / step).round() * step)
    }
}

/// Writes a whole number with a comma between thousands: `671,026,419,200`.
pub fn group_thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut index = 0;
    // 999.5 would round to 1000: move on to the next unit before it does
    while scaled.abs() >= 999.5 && index + 1 < units.len() {
        scaled /= base;
        index += 1;
    }
    format!("{}{}", sig3(scaled), units[index])
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.as_f64(), 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB"]))
    }
}

impl Bytes {
    /// The amount in decimal units (`80.0 GB`), as datasheets print it.
    pub fn decimal(self) -> String {
        scaled(self.as_f64(), 1000.0, &[" B", " kB", " MB", " GB", " TB", " PB"])
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&group_thousands(self.0))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.as_f64(), 1000.0, &["", "k", "M", "B", "T"]))
    }
}

impl fmt::Display for BytesPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, 1000.0, &[" B/s", " kB/s", " MB/s", " GB/s", " TB/s"]))
    }
}

impl fmt::Display for Flop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, 1000.0, &[" FLOP", " kFLOP", " MFLOP", " GFLOP", " TFLOP", " PFLOP", " EFLOP"]))
    }
}

impl fmt::Display for FlopPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(
            self.0,
            1000.0,
            &[" FLOP/s", " kFLOP/s", " MFLOP/s", " GFLOP/s", " TFLOP/s", " PFLOP/s", " EFLOP/s"],
        ))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0;
        let text = if !s.is_finite() {
            "—".to_owned()
        } else if s.abs() < 0.9995e-3 && s != 0.0 {
            format!("{} us", sig3(s * 1e6))
        } else if s.abs() < 0.9995 {
            format!("{} ms", sig3(s * 1e3))
        } else if s.abs() < 120.0 {
            format!("{} s", sig3(s))
        } else if s.abs() < 7200.0 {
            format!("{} min", sig3(s / 60.0))
        } else if s.abs() < 48.0 * 3600.0 {
            format!("{} h", sig3(s / 3600.0))
        } else {
            format!("{} days", sig3(s / 86400.0))
        };
        f.pad(&text)
    }
}

impl fmt::Display for TokensPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} tok/s", sig3(self.0)))
    }
}

impl fmt::Display for UsdPerHour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}/h", sig3(self.0)))
    }
}

impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, 1000.0, &[" W", " kW", " MW"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, want) in [
            (0.0, "0"),
            (0.352_4, "0.352"),
            (0.012_345, "0.0123"),
            (3.4, "3.40"),
            (9.999, "10.0"),
            (34.04, "34.0"),
            (99.96, "100"),
            (999.4, "999"),
            (1239.0, "1240"),
            (123_456.0, "123000"),
            (-2.5, "-2.50"),
            (f64::NAN, "—"),
            (f64::INFINITY, "—"),
        ] {
            assert_eq!(sig3(value), want, "{value}");
        }
    }

    #[test]
    fn quantities_choose_a_unit() {
        assert_eq!(Bytes::from_gib(79.18).to_string(), "79.2 GiB");
        assert_eq!(Bytes::from_gb(1440.0).decimal(), "1.44 TB");
        assert_eq!(Bytes(1023).to_string(), "0.999 KiB");
        assert_eq!(Params(744_000_000_000).to_string(), "744B");
        assert_eq!(BytesPerSec(450e9).to_string(), "450 GB/s");
        assert_eq!(Seconds(0.0123).to_string(), "12.3 ms");
        assert_eq!(Seconds(0.000_012).to_string(), "12.0 us");
        assert_eq!(UsdPerHour(2.1).to_string(), "$2.10/h");
        assert_eq!(group_thousands(671_026_419_200), "671,026,419,200");
        assert_eq!(group_thousands(999), "999");
    }
}
