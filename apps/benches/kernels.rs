//! Speed of the block kernels on one core: `cargo bench -p metachare-apps`. An "element" is one floating-point
//! operation, so Gelem/s reads as GFLOP/s.

use apps::kernels::gemm::{Kernel, gemm};
use apps::matrix::{Element, generate};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

fn products<T: Element>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("gemm {}", T::DTYPE));
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for n in [64, 128, 256, 512, 1024] {
        let (a, b) = (generate::block::<T>(1, 0..n, 0..n), generate::block::<T>(2, 0..n, 0..n));
        let mut c = generate::block::<T>(3, 0..n, 0..n);
        group.throughput(Throughput::Elements(2 * (n as u64).pow(3)));
        for kernel in [Kernel::Fast, Kernel::Deterministic, Kernel::Plain] {
            if kernel == Kernel::Plain && n > 512 {
                continue; // seconds each, and nothing to learn
            }
            group.bench_function(BenchmarkId::new(kernel.to_string(), n), |bench| {
                bench.iter(|| gemm(kernel, n, n, n, &a, &b, &mut c));
            });
        }
    }
    group.finish();
}

criterion_group!(kernels, products::<f64>, products::<f32>);
criterion_main!(kernels);
