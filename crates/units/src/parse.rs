//! Parsing of quantities as people type them, with a hint for what to type instead.

use std::str::FromStr;

use crate::quantity::*;

/// Why a text is not a quantity, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read `{input}` as {what}: {problem}")]
pub struct UnitError {
    /// The text, cut to 60 characters.
    pub input: String,
    /// What was wanted: `a size`, `a duration`, …
    pub what: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// Something to type instead.
    pub hint: String,
}

impl UnitError {
    fn new(input: &str, what: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { input: input.chars().take(60).collect(), what, problem: problem.into(), hint: hint.into() }
    }
}

/// A unit that can follow the number: its spelling and its size in base units.
type Unit = (&'static str, f64);

struct Grammar {
    what: &'static str,
    units: &'static [Unit],
    /// Whether a number may stand alone, and what it then means.
    bare: Option<f64>,
    /// Shown after "type".
    example: &'static str,
}

impl Grammar {
    /// Splits `text` into number and unit and multiplies them out; never negative, always finite.
    fn read(&self, text: &str) -> Result<f64, UnitError> {
        let trimmed = text.trim();
        let fail = |problem: String, hint: String| Err(UnitError::new(text, self.what, problem, hint));
        let split = trimmed
            .char_indices()
            .find(|&(i, c)| !(c.is_ascii_digit() || matches!(c, '.' | '_' | ',') || (i == 0 && matches!(c, '-' | '+'))))
            .map_or(trimmed.len(), |(i, _)| i);
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim();
        let number: String = number.chars().filter(|c| !matches!(c, '_' | ',')).collect();
        if number.is_empty() {
            return fail("it does not start with a number".into(), format!("type for example `{}`", self.example));
        }
        let Ok(value) = number.parse::<f64>() else {
            return fail(format!("`{number}` is not a number"), format!("type for example `{}`", self.example));
        };
        if value < 0.0 {
            return fail("it is negative".into(), format!("type for example `{}`", self.example));
        }
        let factor = if unit.is_empty() {
            match self.bare {
                Some(factor) => factor,
                None => {
                    let first = self.units.iter().take(3).map(|(u, _)| format!("`{number}{u}`"));
                    let hint = format!("did you mean {}?", first.collect::<Vec<_>>().join(" or "));
                    return fail("it has no unit".into(), hint);
                }
            }
        } else if let Some((_, factor)) = self.units.iter().find(|(u, _)| *u == unit) {
            *factor
        } else if let Some((u, _)) = self.units.iter().find(|(u, _)| u.eq_ignore_ascii_case(unit)) {
            // `80gb` could be bytes or bits: case decides, so it is asked for
            return fail(format!("unknown unit `{unit}`"), format!("did you mean `{number}{u}`?"));
        } else {
            let all: Vec<_> = self.units.iter().map(|(u, _)| *u).collect();
            return fail(format!("unknown unit `{unit}`"), format!("use one of {}", all.join(", ")));
        };
        let result = value * factor;
        if !result.is_finite() || result > 1e27 {
            return fail("it is too large".into(), format!("type for example `{}`", self.example));
        }
        Ok(result)
    }
}

const KI: f64 = 1024.0;

const SIZE: Grammar = Grammar {
    what: "a size",
    units: &[
        ("GiB", KI * KI * KI),
        ("GB", 1e9),
        ("TiB", KI * KI * KI * KI),
        ("TB", 1e12),
        ("MiB", KI * KI),
        ("MB", 1e6),
        ("KiB", KI),
        ("kB", 1e3),
        ("B", 1.0),
    ],
    bare: None,
    example: "80GiB",
};

const RATE: Grammar = Grammar {
    what: "a bandwidth",
    units: &[
        ("GB/s", 1e9),
        ("Gb/s", 1e9 / 8.0),
        ("TB/s", 1e12),
        ("Tb/s", 1e12 / 8.0),
        ("GiB/s", KI * KI * KI),
        ("MB/s", 1e6),
        ("Mb/s", 1e6 / 8.0),
        ("B/s", 1.0),
        ("Gbps", 1e9 / 8.0),
        ("Tbps", 1e12 / 8.0),
        ("Mbps", 1e6 / 8.0),
    ],
    bare: None,
    example: "400Gb/s",
};

const COUNT: &[Unit] =
    &[("Ki", KI), ("k", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12), ("K", 1e3), ("Mi", KI * KI), ("Gi", KI * KI * KI)];

const TOKENS: Grammar = Grammar { what: "a number of tokens", units: COUNT, bare: Some(1.0), example: "32Ki" };

const PARAMS: Grammar = Grammar {
    what: "a number of parameters",
    units: &[("B", 1e9), ("M", 1e6), ("T", 1e12), ("k", 1e3)],
    bare: None,
    example: "744B",
};

const TIME: Grammar = Grammar {
    what: "a duration",
    units: &[
        ("s", 1.0),
        ("ms", 1e-3),
        ("min", 60.0),
        ("h", 3600.0),
        ("d", 86400.0),
        ("us", 1e-6),
        ("m", 60.0),
        ("days", 86400.0),
        ("weeks", 7.0 * 86400.0),
    ],
    bare: None,
    example: "1.5h",
};

const POWER: Grammar =
    Grammar { what: "a power", units: &[("W", 1.0), ("kW", 1e3), ("MW", 1e6)], bare: None, example: "10.2kW" };

const PRICE: Grammar = Grammar {
    what: "a price",
    units: &[
        ("/h", 1.0),
        ("/month", 1.0 / HOURS_PER_MONTH),
        ("/s", 3600.0),
        ("/hour", 1.0),
        ("/hr", 1.0),
        ("/min", 60.0),
        ("/day", 1.0 / 24.0),
        ("/year", 1.0 / 8760.0),
    ],
    bare: None,
    example: "$2.10/h",
};

const SPEED: Grammar =
    Grammar { what: "a token rate", units: &[("tok/s", 1.0), ("/s", 1.0)], bare: None, example: "250tok/s" };

fn whole(grammar: &Grammar, text: &str) -> Result<u64, UnitError> {
    let value = grammar.read(text)?;
    if value > u64::MAX as f64 / 4.0 {
        return Err(UnitError::new(
            text,
            grammar.what,
            "it is too large",
            format!("type for example `{}`", grammar.example),
        ));
    }
    let rounded = value.round();
    if (value - rounded).abs() > 1e-6 * value.max(1.0) {
        let hint = format!("type a whole number, for example `{}`", grammar.example);
        return Err(UnitError::new(text, grammar.what, "it is not a whole number", hint));
    }
    Ok(rounded as u64)
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let value = SIZE.read(text)?;
        if value > u64::MAX as f64 / 4.0 {
            return Err(UnitError::new(text, SIZE.what, "it is too large", "type for example `80GiB`"));
        }
        Ok(Self(value.round() as u64))
    }
}

impl FromStr for Tokens {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        whole(&TOKENS, text).map(Self)
    }
}

impl FromStr for Params {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        whole(&PARAMS, text).map(Self)
    }
}

impl FromStr for BytesPerSec {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        RATE.read(text).map(Self)
    }
}

impl FromStr for Seconds {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        TIME.read(text).map(Self)
    }
}

impl FromStr for Watts {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        POWER.read(text).map(Self)
    }
}

impl FromStr for TokensPerSec {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        SPEED.read(text).map(Self)
    }
}

impl FromStr for UsdPerHour {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        for (sign, name) in [("€", "EUR"), ("£", "GBP"), ("¥", "CNY or JPY")] {
            if trimmed.contains(sign) {
                let problem = format!("prices are in US dollars, not {name}");
                return Err(UnitError::new(text, PRICE.what, problem, "convert it and type for example `$2.10/h`"));
            }
        }
        let plain = trimmed.replace("USD", "").replace(' ', "");
        let plain = plain.strip_prefix('$').unwrap_or(&plain);
        PRICE.read(plain).map(Self).map_err(|e| UnitError { input: text.chars().take(60).collect(), ..e })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_type() {
        assert_eq!("80GiB".parse(), Ok(Bytes(85_899_345_920)));
        assert_eq!("80 GB".parse(), Ok(Bytes(80_000_000_000)));
        assert_eq!("400Gb/s".parse(), Ok(BytesPerSec(50e9)));
        assert_eq!("50GB/s".parse(), Ok(BytesPerSec(50e9)));
        assert_eq!("32Ki".parse(), Ok(Tokens(32_768)));
        assert_eq!("4096".parse(), Ok(Tokens(4096)));
        assert_eq!("1_000".parse(), Ok(Tokens(1000)));
        assert_eq!("1.5h".parse(), Ok(Seconds(5400.0)));
        assert_eq!("250ms".parse(), Ok(Seconds(0.25)));
        assert_eq!("$2.10/h".parse(), Ok(UsdPerHour(2.1)));
        assert_eq!("2.10 USD/h".parse(), Ok(UsdPerHour(2.1)));
        assert_eq!("730/month".parse(), Ok(UsdPerHour(1.0)));
        assert_eq!("744B".parse(), Ok(Params(744_000_000_000)));
        assert_eq!("0.6B".parse(), Ok(Params(600_000_000)));
        assert_eq!("10.2kW".parse(), Ok(Watts(10_200.0)));
    }

    #[test]
    fn refusals_say_what_to_type() {
        let fail = |r: Result<(), UnitError>| {
            let e = r.unwrap_err();
            format!("{e} | {}", e.hint)
        };
        assert_eq!(
            fail("80".parse::<Bytes>().map(drop)),
            "cannot read `80` as a size: it has no unit | did you mean `80GiB` or `80GB` or `80TiB`?"
        );
        assert_eq!(
            fail("80gb".parse::<Bytes>().map(drop)),
            "cannot read `80gb` as a size: unknown unit `gb` | did you mean `80GB`?"
        );
        assert_eq!(
            fail("-3GiB".parse::<Bytes>().map(drop)),
            "cannot read `-3GiB` as a size: it is negative | type for example `80GiB`"
        );
        assert_eq!(
            fail("1.5".parse::<Tokens>().map(drop)),
            "cannot read `1.5` as a number of tokens: it is not a whole number | type a whole number, for example `32Ki`"
        );
        assert_eq!(
            fail("€2/h".parse::<UsdPerHour>().map(drop)),
            "cannot read `€2/h` as a price: prices are in US dollars, not EUR | convert it and type for example `$2.10/h`"
        );
        assert_eq!(
            fail("2.10".parse::<UsdPerHour>().map(drop)),
            "cannot read `2.10` as a price: it has no unit | did you mean `2.10/h` or `2.10/month` or `2.10/s`?"
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Tokens>();
            let _ = text.parse::<Params>();
            let _ = text.parse::<UsdPerHour>();
            let _ = text.parse::<Seconds>();
            let _ = text.parse::<BytesPerSec>();
        }

        #[test]
        fn whole_gibibytes_come_back(n in 1u64..100_000) {
            prop_assert_eq!(format!("{n}GiB").parse::<Bytes>(), Ok(Bytes(n << 30)));
        }
    }
}
