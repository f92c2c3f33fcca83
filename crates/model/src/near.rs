//! Suggestions for names that were mistyped.

/// Edits (insert, delete, replace) between two short texts; texts are cut at 80 characters.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(80).collect();
    let b: Vec<char> = b.chars().take(80).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = i + 1;
        next.push(left);
        for (pair, cb) in row.windows(2).zip(&b) {
            if let [diagonal, above] = *pair {
                left = (diagonal + usize::from(ca != cb)).min(above + 1).min(left + 1);
                next.push(left);
            }
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// Up to `most` names within a third of the query's length, nearest first.
pub(crate) fn nearest<'a>(query: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let query = query.to_ascii_lowercase();
    let limit = (query.chars().count() / 3).max(1);
    let mut scored: Vec<(usize, &str)> = names.map(|n| (distance(&query, n), n)).filter(|(d, _)| *d <= limit).collect();
    scored.sort();
    scored.into_iter().take(most).map(|(_, n)| n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(nearest("fp9", ["fp8", "bf16"].into_iter(), 3), ["fp8"]);
    }
}
