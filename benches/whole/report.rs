//! Figures, and the table and JSON of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// What was measured of one thing, in the order of measuring.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value below which the given part of all lies (nearest rank).
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let rank = (last as f64 * part).round() as usize;
        sorted.get(rank).copied().unwrap_or(f64::NAN)
    }

    /// The middle value.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Each value with the one of another sample at the same place added.
    pub fn plus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a + b).collect())
    }
}

impl From<f64> for Sample {
    fn from(value: f64) -> Self {
        Self(vec![value])
    }
}

/// One line of the table.
struct Row {
    what: String,
    unit: &'static str,
    sample: Sample,
    ratios: Vec<Ratio>,
    aim: String,
    met: Option<bool>,
}

/// How a figure stands to another.
struct Ratio {
    to: String,
    is: f64,
    /// Whether that is more than was aimed at.
    over: bool,
}

/// All that was measured.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a figure that has no aim.
    pub fn note(&mut self, what: impl Into<String>, unit: &'static str, sample: Sample) {
        self.push(what.into(), unit, sample, Vec::new(), String::new(), None);
    }

    /// Adds a figure with the aim for its median.
    pub fn at_most(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        sample: Sample,
        most: f64,
    ) {
        let met = sample.median() <= most;
        let aim = format!("{most} {unit} or less");
        self.push(what.into(), unit, sample, Vec::new(), aim, Some(met));
    }

    /// Adds a figure whose aim is a ratio to others: name, the other figure, and
    /// the ratio it is to keep to, if any.
    pub fn against(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        sample: Sample,
        others: &[(&str, &Sample, Option<f64>)],
    ) {
        let ratio = |other: &Sample| sample.median() / other.median();
        let ratios = others
            .iter()
            .map(|(name, other, most)| Ratio {
                to: (*name).to_owned(),
                is: ratio(other),
                over: most.is_some_and(|most| ratio(other) > most),
            })
            .collect();
        let aims: Vec<(String, bool)> = others
            .iter()
            .filter_map(|(name, other, most)| {
                let most = (*most)?;
                Some((format!("{most} × {name}"), ratio(other) <= most))
            })
            .collect();
        let met = (!aims.is_empty()).then(|| aims.iter().all(|(_, met)| *met));
        let aim: Vec<String> = aims.into_iter().map(|(text, _)| text).collect();
        self.push(what.into(), unit, sample, ratios, aim.join(", "), met);
    }

    fn push(
        &mut self,
        what: String,
        unit: &'static str,
        sample: Sample,
        ratios: Vec<Ratio>,
        aim: String,
        met: Option<bool>,
    ) {
        let row = Row {
            what,
            unit,
            sample,
            ratios,
            aim,
            met,
        };
        eprintln!("{}", row.line());
        self.rows.push(row);
    }

    /// The table, for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<54} {:>10} {:>10} {:<6} {:<7} {:<30} ratios\n",
            "what", "median", "p95", "", "", "aim"
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line());
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "what": row.what,
                "unit": row.unit,
                "median": row.sample.median(),
                "p95": row.sample.quantile(0.95),
                "count": row.sample.0.len(),
                "ratios": row.ratios.iter().map(|ratio| (&ratio.to, ratio.is)).collect::<BTreeMap<_, _>>(),
                "aim": row.aim,
                "met": row.met,
            })
        });
        rows.collect()
    }
}

impl Row {
    fn line(&self) -> String {
        let p95 = if self.sample.0.len() > 1 {
            format!("{:.3}", self.sample.quantile(0.95))
        } else {
            String::new()
        };
        let met = match self.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        let ratios: Vec<String> = self
            .ratios
            .iter()
            .map(|Ratio { to, is, over }| {
                format!("{is:.2} × {to}{}", if *over { " (over)" } else { "" })
            })
            .collect();
        let line = format!(
            "{:<54} {:>10.3} {:>10} {:<6} {:<7} {:<30} {}",
            self.what,
            self.sample.median(),
            p95,
            self.unit,
            met,
            self.aim,
            ratios.join(", ")
        );
        line.trim_end().to_owned()
    }
}
