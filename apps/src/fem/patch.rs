//! Functions on a block: values at its nodes, x running fastest, where nothing is known of its neighbours. All of it is done
//! along lines, first those of x and then those of y.

/// Takes each line along both axes to another one.
fn along_both(values: &[f64], nodes: usize, of_line: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let (across, nodes) = along_x(values, nodes, &of_line);
    along_x(&across, nodes, &of_line).0
}

/// Takes each line along x to another one and turns what comes of it, so that y is x; also how many nodes a line had of y.
fn along_x(values: &[f64], nodes: usize, of_line: impl Fn(&[f64]) -> Vec<f64>) -> (Vec<f64>, usize) {
    let lines: Vec<Vec<f64>> = values.chunks_exact(nodes.max(1)).map(of_line).collect();
    let length = lines.first().map_or(0, Vec::len);
    let turned = (0..length).flat_map(|at| lines.iter().map(move |line| line[at])).collect();
    (turned, lines.len())
}

/// Which elements of a line of `from` elements a node of one of `to` lies in, and how far along it.
fn place(node: usize, from: usize, to: usize) -> (usize, f64) {
    let element = (node * from / to).min(from - 1);
    (element, (node * from - element * to) as f64 / to as f64)
}

/// The same function with so many elements along a side as `to` says, where it had `from`: exact where there are more.
#[must_use]
pub fn resampled(values: &[f64], from: usize, to: usize) -> Vec<f64> {
    along_both(values, from + 1, |line| {
        let value = |(at, part): (usize, f64)| (1.0 - part) * line[at] + part * line[at + 1];
        (0..=to).map(|node| value(place(node, from, to))).collect()
    })
}

/// Loads of the functions of `to` elements along a side by those of `from`, which are more: the transpose of the above.
#[must_use]
pub fn restricted(loads: &[f64], from: usize, to: usize) -> Vec<f64> {
    along_both(loads, from + 1, |line| {
        let mut sums = vec![0.0; to + 1];
        for (node, load) in line.iter().enumerate() {
            let (at, part) = place(node, to, from);
            sums[at] += (1.0 - part) * load;
            sums[at + 1] += part * load;
        }
        sums
    })
}

/// Integrals of a function times that of each node; an element has so much area.
#[must_use]
pub fn integrals(values: &[f64], along: usize, area: f64) -> Vec<f64> {
    let integrals = along_both(values, along + 1, |line| {
        let mut sums = vec![0.0; line.len()];
        for at in 0..along {
            sums[at] += line[at] / 3.0 + line[at + 1] / 6.0;
            sums[at + 1] += line[at] / 6.0 + line[at + 1] / 3.0;
        }
        sums
    });
    integrals.into_iter().map(|sum| area * sum).collect()
}

/// About how far a function of bilinear elements is from what it stands for, squared and integrated: by the jumps of its
/// derivatives from element to element (D. W. Kelly, J. P. de S. R. Gago, O. C. Zienkiewicz, I. Babuška, International Journal
/// for Numerical Methods in Engineering 19, 1983), of which the square of the element's length makes an error of the
/// values. Along a line of elements h a parabola with second derivative d is h^2 d / sqrt(120) away from its interpolant.
#[must_use]
pub fn error_squared(values: &[f64], along: usize, area: f64) -> f64 {
    let jumps = |line: &[f64]| {
        let mut jumps = vec![0.0; line.len()];
        for at in 1..along {
            jumps[at] = line[at - 1] - 2.0 * line[at] + line[at + 1];
        }
        // At its ends a block knows one side only.
        (jumps[0], jumps[along]) = (jumps[1], jumps[along - 1]);
        jumps
    };
    let (turned, _) = along_x(values, along + 1, <[f64]>::to_vec);
    let sums = [values, &turned].map(|values| {
        let all = along_x(values, along + 1, jumps).0;
        all.iter().map(|jump| jump * jump).sum::<f64>()
    });
    area / 120.0 * (sums[0] + sums[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(along: usize, of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let at = |k: usize| k as f64 / along as f64;
        (0..=along).flat_map(|y| (0..=along).map(move |x| (x, y))).map(|(x, y)| of(at(x), at(y))).collect()
    }

    #[test]
    fn finer_elements_have_the_same_function_and_coarser_ones_its_integrals() {
        let coarse = sampled(4, |x, y| (3.0 * x).sin() * (1.0 + y * y));
        let fine = resampled(&coarse, 4, 8);
        assert_eq!(resampled(&fine, 8, 4), coarse);
        // The integral of a product is the same on both.
        let product =
            |loads: &[f64], values: &[f64]| loads.iter().zip(values).map(|(a, b)| a * b).sum::<f64>();
        let test = sampled(4, |x, y| x * x - 0.3 * y);
        let on_fine = restricted(&integrals(&fine, 8, 1.0 / 64.0), 8, 4);
        let on_coarse = integrals(&coarse, 4, 1.0 / 16.0);
        assert!((product(&on_fine, &test) - product(&on_coarse, &test)).abs() < 1e-14);
        assert!(on_fine.iter().zip(&on_coarse).all(|(a, b)| (a - b).abs() < 1e-15));
        // Of a bilinear function exactly.
        let bilinear = sampled(8, |x, y| (1.0 + x) * (2.0 - y));
        assert!((integrals(&bilinear, 8, 1.0 / 64.0).iter().sum::<f64>() - 2.25).abs() < 1e-14);
    }

    #[test]
    fn the_error_of_a_parabola_is_known() {
        // 5 h^2 / sqrt(120) * 2 for 5 x^2 + 0 y, on every element alike.
        for along in [4, 16] {
            let h = 1.0 / along as f64;
            let error = error_squared(&sampled(along, |x, y| 5.0 * x * x + y), along, h * h);
            let exact = (10.0 * h * h).powi(2) / 120.0 * ((along + 1) * (along + 1)) as f64 * h * h;
            assert!((error / exact - 1.0).abs() < 1e-10, "{error} {exact}");
        }
    }
}
