//! Reading of single values, with what is wrong and what to type instead.

use units::Tokens;

use super::RequestError;

pub(super) fn unreachable_key(name: &str) -> Result<(), RequestError> {
    // a key of the table without an arm in `set`: refused rather than ignored
    Err(RequestError::new(name, "", "it cannot be set here", "report this as a bug"))
}

pub(super) fn positive<T>(key: &str, text: &str, value: T, ok: impl Fn(&T) -> bool) -> Result<T, RequestError> {
    if ok(&value) { Ok(value) } else { Err(RequestError::new(key, text, "it is zero", "give more than zero")) }
}

pub(super) fn number(key: &str, text: &str) -> Result<f64, RequestError> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() => Ok(n),
        _ => Err(RequestError::new(key, text, "it is not a number", "type for example `0.5`")),
    }
}

pub(super) fn bounded(key: &str, text: &str, low: f64, high: f64) -> Result<f64, RequestError> {
    let n = match text.parse::<Tokens>() {
        Ok(n) if text.contains(|c: char| c.is_ascii_alphabetic()) => n.as_f64(),
        _ => number(key, text)?,
    };
    if n < low || n > high {
        let problem = format!("it is not between {low} and {high}");
        return Err(RequestError::new(key, text, problem, "type for example `8`"));
    }
    Ok(n)
}

pub(super) fn count(key: &str, text: &str, low: u64, high: u64) -> Result<u64, RequestError> {
    let n = text.parse::<Tokens>().map_err(|e| RequestError::new(key, text, e.problem, e.hint))?.0;
    if n < low || n > high {
        return Err(RequestError::new(
            key,
            text,
            format!("it is not between {low} and {high}"),
            format!("type for example `{}`", low.max(4)),
        ));
    }
    Ok(n)
}

pub(super) fn choose<T: Copy>(
    key: &str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, RequestError> {
    all.iter().copied().find(|t| name(*t) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|t| format!("`{}`", name(*t))).collect();
        RequestError::new(key, text, "no such choice", format!("use one of {}", names.join(", ")))
    })
}

pub(super) fn choose_ref<'a, T>(key: &str, text: &str, all: &'a [(&'static str, T)]) -> Result<&'a T, RequestError> {
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = all.iter().filter(|(n, _)| !n.is_empty()).map(|(n, _)| format!("`{n}`")).collect();
        RequestError::new(key, text, "no such choice", format!("use one of {}", names.join(", ")))
    })
}

pub(super) fn push_names(key: &str, list: &mut Vec<String>, text: &str) -> Result<(), RequestError> {
    push_list(list, text, |v| {
        if v.is_empty() {
            Err(RequestError::new(key, text, "it is empty", "name one, or leave the key out"))
        } else {
            Ok(v.to_owned())
        }
    })
}

pub(super) fn push_list<T: PartialEq>(
    list: &mut Vec<T>,
    text: &str,
    read: impl Fn(&str) -> Result<T, RequestError>,
) -> Result<(), RequestError> {
    for part in text.split(',') {
        let item = read(part.trim())?;
        if !list.contains(&item) {
            list.push(item);
        }
        if list.len() > 1000 {
            return Err(RequestError::new("", text, "more than 1000 items", "name fewer"));
        }
    }
    Ok(())
}
