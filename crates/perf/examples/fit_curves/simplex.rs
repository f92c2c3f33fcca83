//! Nelder–Mead over bounded parameters, and the error figures of a fit.

/// One parameter: start, least, most.
pub(crate) type Bound = (f64, f64, f64);

/// Minimises `cost` from the starts, inside the bounds; restarts once from the best point.
pub(crate) fn minimise(bounds: &[Bound], cost: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let clamped = |x: &[f64]| -> Vec<f64> { x.iter().zip(bounds).map(|(v, b)| v.clamp(b.1, b.2)).collect() };
    let outside = |x: &[f64]| -> f64 {
        x.iter().zip(bounds).map(|(v, b)| ((v - v.clamp(b.1, b.2)) / (b.2 - b.1).max(1e-12)).abs()).sum()
    };
    let full = |x: &[f64]| cost(&clamped(x)) + outside(x);
    let mut best: Vec<f64> = bounds.iter().map(|b| b.0).collect();
    for spread in [0.25, 0.1, 0.03] {
        best = run(&best, bounds, spread, &full);
    }
    clamped(&best)
}

fn run(start: &[f64], bounds: &[Bound], spread: f64, cost: &dyn Fn(&[f64]) -> f64) -> Vec<f64> {
    let n = start.len();
    let mut simplex: Vec<(Vec<f64>, f64)> = (0..=n)
        .map(|i| {
            let mut point = start.to_vec();
            if i > 0 {
                let b = bounds[i - 1];
                let step = spread * (b.2 - b.1);
                let up = point[i - 1] + step;
                point[i - 1] = if up <= b.2 { up } else { point[i - 1] - step };
            }
            let value = cost(&point);
            (point, value)
        })
        .collect();
    for _ in 0..400 * n {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        if simplex[n].1 - simplex[0].1 < 1e-9 {
            break;
        }
        let centre: Vec<f64> = (0..n).map(|d| simplex[..n].iter().map(|p| p.0[d]).sum::<f64>() / n as f64).collect();
        let toward = |factor: f64| -> (Vec<f64>, f64) {
            let point: Vec<f64> = (0..n).map(|d| centre[d] + factor * (simplex[n].0[d] - centre[d])).collect();
            let value = cost(&point);
            (point, value)
        };
        let reflected = toward(-1.0);
        if reflected.1 < simplex[0].1 {
            let expanded = toward(-2.0);
            simplex[n] = if expanded.1 < reflected.1 { expanded } else { reflected };
        } else if reflected.1 < simplex[n - 1].1 {
            simplex[n] = reflected;
        } else {
            let contracted = toward(if reflected.1 < simplex[n].1 { -0.5 } else { 0.5 });
            if contracted.1 < simplex[n].1 {
                simplex[n] = contracted;
            } else {
                let best = simplex[0].0.clone();
                for (point, value) in simplex.iter_mut().skip(1) {
                    for (v, b) in point.iter_mut().zip(&best) {
                        *v = b + 0.5 * (*v - b);
                    }
                    *value = cost(point);
                }
            }
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    simplex.swap_remove(0).0
}

/// Mean absolute logarithm of predicted over measured: robust against outliers.
pub(crate) fn cost(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (predicted, measured) in pairs {
        sum += (predicted / measured).ln().abs();
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Median and 90th percentile of |predicted / measured − 1|.
pub(crate) fn errors(pairs: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let mut all: Vec<f64> = pairs.map(|(p, m)| (p / m - 1.0).abs()).collect();
    all.sort_by(f64::total_cmp);
    let at = |q: f64| all.get(((all.len().max(1) - 1) as f64 * q).round() as usize).copied().unwrap_or(0.0);
    (at(0.5), at(0.9))
}
