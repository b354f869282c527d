//! The word that was probably meant.

/// The candidate that is nearest to a mistyped word, if one is near enough: at
/// most one letter in three is wrong, missing or too many.
#[must_use]
pub fn nearest<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let wrong = distance(&word, &candidate.as_ref().to_ascii_lowercase());
            (wrong, candidate)
        })
        .min_by_key(|(wrong, _)| *wrong)
        .filter(|(wrong, candidate)| {
            wrong * 3 <= word.chars().count().max(candidate.as_ref().chars().count())
        })
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out, changed or swapped with the
/// next (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("--lokc-name", "--lock-name", 1),
            ("ttl", "tll", 1),
            ("hepl", "help", 1),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        assert_eq!(nearest("quue", ["skip", "queue"]), Some("queue"));
        assert_eq!(nearest("QUEUE", ["skip", "queue"]), Some("queue"));
        assert_eq!(nearest("later", ["skip", "queue"]), None);
        assert_eq!(nearest("x", [] as [&str; 0]), None);
    }
}
