//! A comparison as a picture: speedup against equivalents, with the ideal line.

use super::model::{Comparison, Mix};
use crate::plot::{Axis, Chart, Scale, Series};

impl Comparison {
    /// The picture.
    pub(crate) fn figure(&self) -> Chart {
        let mut mixes: Vec<&Mix> = self.mixes.iter().collect();
        mixes.sort_by(|a, b| a.equivalents.total_cmp(&b.equivalents));
        let farthest = mixes.last().map_or(1.0, |mix| mix.equivalents);
        let points = |speedup: &dyn Fn(&Mix) -> Option<f64>| -> Vec<(f64, f64)> {
            mixes.iter().filter_map(|mix| Some((mix.equivalents, speedup(mix)?))).collect()
        };
        let mut series = vec![Series::ideal("ideal", vec![(0.0, 0.0), (farthest, farthest)])];
        let reached = points(&|mix| Some(mix.speedup));
        series.push(if self.is_predicted {
            Series::other("predicted", reached)
        } else {
            Series::measured("measured", reached)
        });
        let of_one = self.reference.seconds;
        let predicted = points(&|mix| Some(of_one / mix.predicted.as_ref()?.seconds));
        if !predicted.is_empty() {
            series.push(Series::other("predicted", predicted));
        }
        Chart {
            title: format!("{}: speedup over {} alone", self.app, self.reference.node),
            x: Axis::new(format!("equivalents of {}", self.reference.node), Scale::Linear),
            y: Axis::new("speedup", Scale::Linear),
            series,
        }
    }
}
