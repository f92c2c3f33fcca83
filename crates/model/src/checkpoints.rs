//! What is known of single checkpoints beyond their configs: elements that their headers count and that are no
//! parameters of the served model (buffers, block scales, second copies of a tied head).

use crate::spec::ModelSpec;

/// Rows of `name,reason,elements,source`.
const ROWS: &str = include_str!("../data/checkpoints.csv");

/// Adds what is known of the checkpoint of that name (`org/model`, or `org__model` as a file).
pub(crate) fn apply(spec: &mut ModelSpec) {
    let name = spec.name.strip_suffix(".json").unwrap_or(&spec.name);
    let name = name
        .rsplit_once("__")
        .map_or_else(|| name.to_owned(), |(org, model)| format!("{}/{model}", org.rsplit('/').next().unwrap_or(org)));
    for row in ROWS.lines().skip(1) {
        let mut cells = row.splitn(4, ',');
        if let (Some(model), Some(reason), Some(elements)) = (cells.next(), cells.next(), cells.next())
            && model == name
            && let Ok(elements) = elements.parse::<i64>()
        {
            spec.stored_extra.push((reason.to_owned(), elements));
        }
    }
}
