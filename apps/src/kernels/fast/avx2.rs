//! A kernel for processors with vectors of 256 bits, by the scheme of K. Goto, R. A. van de Geijn (ACM Transactions on Mathematical
//! Software 34, 2008) with the roles of A and B as OpenBLAS has them on these processors: a strip of A stays in the first cache
//! while strips of B pass by, from the second one, of which a tile takes a third of the bytes at most. What comes next of B is asked for
//! ahead, so that a busy neighbour on the same core costs little.

use super::{Operand, Product, by_crate_f32, by_crate_f64};
use gemm_common::cache::CACHE_INFO;
use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::cell::RefCell;
use std::ops::{AddAssign, Mul};

/// Bytes of a column of a tile: three vectors, so that the twelve of four columns and what they are made of fill the registers.
const TILE_BYTES: usize = 96;
/// Columns of a tile.
const WIDTH: usize = 4;
/// Steps of a strip of A: what the first cache holds decides, between these.
const DEPTH: [usize; 2] = [128, 384];
/// Columns of B at once: what the second cache holds decides, between these.
const COLUMNS: [usize; 2] = [32, 256];
/// Rows of A at once: what the second cache holds decides, up to this.
const ROWS_MAX: usize = 1024;

/// Whether this kernel is the fastest on this processor.
pub(super) fn is_best() -> bool {
    is_possible() && !is_x86_feature_detected!("avx512f")
}

/// Whether it can run on this processor.
fn is_possible() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// A number that tiles are computed of.
pub(super) trait Number: Copy + Default + AddAssign + Mul<Output = Self> + 'static {
    /// The product where a side is too short for a tile.
    const OF_SHORT_SIDES: Product<Self>;

    /// Computes a tile.
    const TILE: Tile<Self>;

    /// The product by tiles, whose height follows from the size of a number.
    const BY_TILES: ByTiles<Self>;

    /// Has memory of this thread that stays with it.
    fn with_strips<R>(run: impl FnOnce(&mut Strips<Self>) -> R) -> R;
}

/// Writes the sums of a tile, column by column, of so many steps of a strip of A and one of B.
///
/// # Safety
/// The processor has AVX2 and FMA, and there are as many steps of both strips, and room for a tile.
type Tile<T> = unsafe fn(usize, *const T, *const T, *mut T);

/// [`by_tiles`] with the height of a type's tiles.
type ByTiles<T> = unsafe fn(AtOnce, &mut Strips<T>, [usize; 3], Operand<T>, Operand<T>, (*mut T, isize), T);

/// Strips of A and of B as tiles read them.
#[derive(Default)]
pub(super) struct Strips<T> {
    a: Vec<T>,
    b: Vec<T>,
}

/// A step of the sums of a tile: three vectors of A times four numbers of B.
#[rustfmt::skip]
macro_rules! step {
    ($at:literal, $size:literal, $spread:literal, $add:literal) => {
        concat!(
            "vmovups ymm0, [{a} + 96 * ", $at, "]\n",
            "vmovups ymm1, [{a} + 96 * ", $at, " + 32]\n",
            "vmovups ymm2, [{a} + 96 * ", $at, " + 64]\n",
            step!($at, $size, $spread, $add, "0", "ymm4", "ymm5", "ymm6"),
            step!($at, $size, $spread, $add, "1", "ymm7", "ymm8", "ymm9"),
            step!($at, $size, $spread, $add, "2", "ymm10", "ymm11", "ymm12"),
            step!($at, $size, $spread, $add, "3", "ymm13", "ymm14", "ymm15"),
        )
    };
    ($at:literal, $size:literal, $spread:literal, $add:literal, $column:literal, $s0:literal, $s1:literal, $s2:literal) => {
        concat!(
            $spread, " ymm3, [{b} + ", $size, " * (4 * ", $at, " + ", $column, ")]\n",
            $add, " ", $s0, ", ymm0, ymm3\n",
            $add, " ", $s1, ", ymm1, ymm3\n",
            $add, " ", $s2, ", ymm2, ymm3\n",
        )
    };
}

/// A column of sums goes to memory.
#[rustfmt::skip]
macro_rules! store {
    ($column:literal, $s0:literal, $s1:literal, $s2:literal) => {
        concat!(
            "vmovups [{sums} + 96 * ", $column, "], ", $s0, "\n",
            "vmovups [{sums} + 96 * ", $column, " + 32], ", $s1, "\n",
            "vmovups [{sums} + 96 * ", $column, " + 64], ", $s2, "\n",
        )
    };
}

/// Compilers keep one of the sums in memory, which makes a tile take twice as long: so it is written out.
macro_rules! number {
    ($number:ty, $size:literal, $spread:literal, $add:literal, $tile:ident, $of_short_sides:ident) => {
        #[expect(unsafe_code, reason = "no compiler keeps all sums of a tile in registers")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $tile(depth: usize, a: *const $number, b: *const $number, sums: *mut $number) {
            // SAFETY: reads `depth` steps of A and B, 96 bytes and four numbers each, and writes 384 bytes, all of which the
            // caller answers for; what is asked for ahead may lie anywhere.
            unsafe {
                asm!(
                    "vxorps ymm4, ymm4, ymm4", "vxorps ymm5, ymm5, ymm5", "vxorps ymm6, ymm6, ymm6",
                    "vxorps ymm7, ymm7, ymm7", "vxorps ymm8, ymm8, ymm8", "vxorps ymm9, ymm9, ymm9",
                    "vxorps ymm10, ymm10, ymm10", "vxorps ymm11, ymm11, ymm11", "vxorps ymm12, ymm12, ymm12",
                    "vxorps ymm13, ymm13, ymm13", "vxorps ymm14, ymm14, ymm14", "vxorps ymm15, ymm15, ymm15",
                    "test {fours}, {fours}",
                    "jz 3f",
                    "2:",
                    "prefetcht0 [{b} + 1024]",
                    "prefetcht0 [{b} + 1088]",
                    step!("0", $size, $spread, $add),
                    step!("1", $size, $spread, $add),
                    step!("2", $size, $spread, $add),
                    step!("3", $size, $spread, $add),
                    "add {a}, 384",
                    concat!("add {b}, 16 * ", $size),
                    "dec {fours}",
                    "jnz 2b",
                    "3:",
                    "test {ones}, {ones}",
                    "jz 5f",
                    "4:",
                    step!("0", $size, $spread, $add),
                    "add {a}, 96",
                    concat!("add {b}, 4 * ", $size),
                    "dec {ones}",
                    "jnz 4b",
                    "5:",
                    store!("0", "ymm4", "ymm5", "ymm6"),
                    store!("1", "ymm7", "ymm8", "ymm9"),
                    store!("2", "ymm10", "ymm11", "ymm12"),
                    store!("3", "ymm13", "ymm14", "ymm15"),
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    sums = in(reg) sums,
                    fours = inout(reg) depth / 4 => _,
                    ones = inout(reg) depth % 4 => _,
                    out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                    out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                    out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack),
                );
            }
        }

        impl Number for $number {
            const OF_SHORT_SIDES: Product<Self> = $of_short_sides;
            const TILE: Tile<Self> = $tile;
            const BY_TILES: ByTiles<Self> = by_tiles::<$number, { TILE_BYTES / size_of::<$number>() }>;

            fn with_strips<R>(run: impl FnOnce(&mut Strips<Self>) -> R) -> R {
                thread_local! {
                    static STRIPS: RefCell<Strips<$number>> = RefCell::default();
                }
                STRIPS.with_borrow_mut(run)
            }
        }
    };
}

number!(f32, "4", "vbroadcastss", "vfmadd231ps", tile_f32, by_crate_f32);
number!(f64, "8", "vbroadcastsd", "vfmadd231pd", tile_f64, by_crate_f64);

/// How much of the matrices is taken up at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AtOnce {
    rows: usize,
    depth: usize,
    columns: usize,
}

impl AtOnce {
    /// As the caches of this processor want it for elements of so many bytes.
    fn here(size: usize) -> Self {
        Self::of([CACHE_INFO[0].cache_bytes, CACHE_INFO[1].cache_bytes], size)
    }

    /// Three quarters of the first cache for a strip of A, half of the second for strips of B, and of all of A four times as much as
    /// the second holds, which is in the third or not far away.
    fn of([first, second]: [usize; 2], size: usize) -> Self {
        let strip = TILE_BYTES / size;
        let depth = (first / 4 * 3 / TILE_BYTES).clamp(DEPTH[0], DEPTH[1]) / 8 * 8;
        let columns = (second / 2 / (depth * size)).clamp(COLUMNS[0], COLUMNS[1]) / WIDTH * WIDTH;
        let rows = (4 * second / (depth * size)).min(ROWS_MAX) / strip * strip;
        Self { rows: rows.max(strip), depth, columns }
    }
}

/// C += factor A B.
///
/// # Safety
/// That of [`Product`], and the processor has AVX2 and FMA.
#[expect(unsafe_code, reason = "matrices in memory are told by pointers")]
pub(super) unsafe fn product<T: Number>(
    sides: [usize; 3],
    a: Operand<T>,
    b: Operand<T>,
    c: (*mut T, isize),
    factor: T,
) {
    let [m, k, n] = sides;
    // SAFETY: the caller answers for both.
    unsafe {
        if m < TILE_BYTES / size_of::<T>() || n < WIDTH || k < WIDTH {
            return T::OF_SHORT_SIDES(sides, a, b, c, factor);
        }
        T::with_strips(|strips| {
            T::BY_TILES(AtOnce::here(size_of::<T>()), strips, sides, a, b, c, factor);
        });
    }
}

/// The same, so much at once, by tiles of this height.
///
/// # Safety
/// That of [`product`].
#[expect(unsafe_code, reason = "matrices in memory are told by pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn by_tiles<T: Number, const HEIGHT: usize>(
    at_once: AtOnce,
    strips: &mut Strips<T>,
    [m, k, n]: [usize; 3],
    a: Operand<T>,
    b: Operand<T>,
    (c, apart): (*mut T, isize),
    factor: T,
) {
    for p in (0..k).step_by(at_once.depth) {
        let depth = at_once.depth.min(k - p);
        for i in (0..m).step_by(at_once.rows) {
            let rows = at_once.rows.min(m - i);
            // SAFETY: rows i.. and columns p.. are within A.
            unsafe { pack::<T, HEIGHT>(&mut strips.a, [rows, depth], a.at(i, p)) };
            for j in (0..n).step_by(at_once.columns) {
                let columns = at_once.columns.min(n - j);
                // SAFETY: rows p.. and columns j.. are within B.
                unsafe { pack::<T, WIDTH>(&mut strips.b, [columns, depth], b.at(p, j).turned()) };
                // SAFETY: rows i.. and columns j.. are within C; `pack` has made all strips of these sides.
                unsafe {
                    let c = c.offset(i as isize + j as isize * apart);
                    add::<T, HEIGHT>(strips, [rows, depth, columns], (c, apart), factor);
                }
            }
        }
    }
}

impl<T> Operand<T> {
    /// From a row and a column on.
    ///
    /// # Safety
    /// They are within it.
    #[expect(unsafe_code, reason = "matrices in memory are told by pointers")]
    unsafe fn at(self, row: usize, column: usize) -> Self {
        let away = row as isize * self.rows_apart + column as isize * self.columns_apart;
        // SAFETY: the caller answers for it.
        Self { first: unsafe { self.first.offset(away) }, ..self }
    }

    /// What its columns are are its rows.
    fn turned(self) -> Self {
        Self { rows_apart: self.columns_apart, columns_apart: self.rows_apart, ..self }
    }
}

/// Copies strips of this height, step by step of the depth; behind the last row there are zeros.
///
/// # Safety
/// There are so many rows and columns.
#[expect(unsafe_code, reason = "matrices in memory are told by pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn pack<T: Number, const HEIGHT: usize>(to: &mut Vec<T>, [rows, depth]: [usize; 2], from: Operand<T>) {
    to.resize(rows.next_multiple_of(HEIGHT) * depth, T::default());
    for (at, strip) in to.chunks_exact_mut(HEIGHT * depth).enumerate() {
        let here = HEIGHT.min(rows - at * HEIGHT);
        // SAFETY: the row is one of them.
        let from = unsafe { from.at(at * HEIGHT, 0) };
        for (p, step) in strip.as_chunks_mut::<HEIGHT>().0.iter_mut().enumerate() {
            let column = from.first.wrapping_offset(p as isize * from.columns_apart);
            if here < HEIGHT {
                *step = [T::default(); HEIGHT];
                for (i, to) in step[..here].iter_mut().enumerate() {
                    // SAFETY: rows before `here` and columns before `depth` are there.
                    *to = unsafe { *column.offset(i as isize * from.rows_apart) };
                }
            } else if from.rows_apart == 1 {
                // SAFETY: so many rows are there, one after the other.
                *step = unsafe { *column.cast::<[T; HEIGHT]>() };
            } else {
                // SAFETY: so many rows are there.
                *step = std::array::from_fn(|i| unsafe { *column.offset(i as isize * from.rows_apart) });
            }
        }
    }
}

/// C takes up the products of all strips.
///
/// # Safety
/// There are strips of these sides, C has so many rows and columns, and the processor has AVX2 and FMA.
#[expect(unsafe_code, reason = "matrices in memory are told by pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add<T: Number, const HEIGHT: usize>(
    strips: &Strips<T>,
    [rows, depth, columns]: [usize; 3],
    (c, apart): (*mut T, isize),
    factor: T,
) {
    let mut sums = [[T::default(); HEIGHT]; WIDTH];
    for (i, a) in (0..rows).step_by(HEIGHT).zip(strips.a.chunks_exact(HEIGHT * depth)) {
        for (j, b) in (0..columns).step_by(WIDTH).zip(strips.b.chunks_exact(WIDTH * depth)) {
            let column = |at: usize| c.wrapping_offset(i as isize + (j + at) as isize * apart);
            // What the sums are added to comes from far away while they are computed.
            for at in 0..WIDTH {
                _mm_prefetch::<_MM_HINT_T0>(column(at).cast());
                _mm_prefetch::<_MM_HINT_T0>(column(at).wrapping_add(HEIGHT - 1).cast());
            }
            // SAFETY: both have `depth` steps, and a tile has room in the sums.
            unsafe { (T::TILE)(depth, a.as_ptr(), b.as_ptr(), sums.as_mut_ptr().cast()) };
            let here = HEIGHT.min(rows - i);
            for (at, sums) in sums.iter().enumerate().take(columns - j) {
                if here == HEIGHT {
                    // SAFETY: all rows of the tile are there, and this column is.
                    let c = unsafe { &mut *column(at).cast::<[T; HEIGHT]>() };
                    (0..HEIGHT).for_each(|i| c[i] += factor * sums[i]);
                } else {
                    // SAFETY: so many rows are there, and this column is.
                    let c = unsafe { std::slice::from_raw_parts_mut(column(at), here) };
                    c.iter_mut().zip(sums).for_each(|(c, sum)| *c += factor * *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers of this type, of which small whole ones have exact sums of products.
    trait Tried: Number + From<i8> + std::fmt::Debug {
        /// What lies around matrices: a signalling NaN, of which any arithmetic makes a quiet one, even if it adds nothing.
        const AROUND: Self;

        fn bits(self) -> u64;
    }

    impl Tried for f32 {
        const AROUND: Self = Self::from_bits(0x7f80_0001);

        fn bits(self) -> u64 {
            self.to_bits().into()
        }
    }

    impl Tried for f64 {
        const AROUND: Self = Self::from_bits(0x7ff0_0000_0000_0001);

        fn bits(self) -> u64 {
            self.to_bits()
        }
    }

    /// A matrix in memory, with others' numbers between its own and behind them.
    struct Made<T> {
        values: Vec<T>,
        apart: [usize; 2],
    }

    impl<T: Tried> Made<T> {
        /// By columns or by rows, so many numbers farther apart than they need.
        fn new(sides: [usize; 2], is_by_rows: bool, more: usize, seed: usize) -> Self {
            let apart = if is_by_rows { [sides[1] + more, 1] } else { [1, sides[0] + more] };
            let longer = [sides[0] + TILE_BYTES, sides[1] + WIDTH];
            let size = longer[0] * apart[0] + longer[1] * apart[1];
            let mut made = Self { values: vec![T::AROUND; size], apart };
            for row in 0..sides[0] {
                for column in 0..sides[1] {
                    let at = made.place(row, column);
                    made.values[at] = Self::number(row, column, seed);
                }
            }
            made
        }

        fn number(row: usize, column: usize, seed: usize) -> T {
            T::from(((row * 7 + column * 13 + seed) % 11) as i8 - 5)
        }

        fn place(&self, row: usize, column: usize) -> usize {
            row * self.apart[0] + column * self.apart[1]
        }

        fn operand(&self) -> Operand<T> {
            let [rows_apart, columns_apart] = self.apart.map(|apart| apart as isize);
            Operand { first: self.values.as_ptr(), rows_apart, columns_apart }
        }
    }

    /// The kernel's product and that of three plain loops are the same, and nothing else is touched.
    #[expect(unsafe_code, reason = "the kernel takes pointers")]
    fn assert_right<T: Tried>(
        at_once: Option<AtOnce>,
        [m, k, n]: [usize; 3],
        (are_by_rows, more): ([bool; 2], usize),
    ) {
        let a = Made::<T>::new([m, k], are_by_rows[0], more, 1);
        let b = Made::<T>::new([k, n], are_by_rows[1], more, 2);
        // A tile that is not cut off ends in what lies between columns.
        let mut c = Made::<T>::new([m, n], false, TILE_BYTES, 3);
        let factor = T::from(-1);
        let mut expected = c.values.clone();
        for row in 0..m {
            for column in 0..n {
                for p in 0..k {
                    expected[c.place(row, column)] +=
                        factor * a.values[a.place(row, p)] * b.values[b.place(p, column)];
                }
            }
        }
        let of_c = (c.values.as_mut_ptr(), c.apart[1] as isize);
        let (sides, a, b) = ([m, k, n], a.operand(), b.operand());
        // SAFETY: the operands are those of matrices with these sides, and whoever calls has seen that the kernel can run.
        unsafe {
            match at_once {
                Some(at_once) => {
                    T::BY_TILES(at_once, &mut Strips::default(), sides, a, b, of_c, factor);
                }
                None => product(sides, a, b, of_c, factor),
            }
        }
        let differs = c.values.iter().zip(&expected).position(|(one, other)| one.bits() != other.bits());
        assert_eq!(differs, None, "{sides:?} of {at_once:?}, {are_by_rows:?} {more}, {} apart", c.apart[1]);
    }

    #[test]
    #[expect(unsafe_code, reason = "the kernel takes pointers")]
    fn strips_have_what_is_there_and_zeros_behind_it() {
        if !is_possible() {
            eprintln!("skipped: this processor has no AVX2");
            return;
        }
        for rows in [1, 3, 4, 5, 8, 11] {
            for is_by_rows in [false, true] {
                let (made, depth) = (Made::<f64>::new([rows, 3], is_by_rows, 2, 5), 3);
                // Strips of an earlier call are longer.
                let mut strips = vec![9.0; 1000];
                // SAFETY: it has so many rows and columns, and the processor was asked.
                unsafe { pack::<f64, WIDTH>(&mut strips, [rows, depth], made.operand()) };
                assert_eq!(strips.len(), rows.next_multiple_of(WIDTH) * depth);
                for (at, number) in strips.iter().enumerate() {
                    let row = at / (WIDTH * depth) * WIDTH + at % WIDTH;
                    let column = at % (WIDTH * depth) / WIDTH;
                    let expected = if row < rows { Made::number(row, column, 5) } else { 0.0 };
                    assert_eq!(*number, expected, "row {row} of {rows}, column {column}, {is_by_rows}");
                }
            }
        }
    }

    #[test]
    fn products_are_right_and_touch_nothing_else_at_all_edges_of_tiles() {
        if !is_possible() {
            eprintln!("skipped: this processor has no AVX2");
            return;
        }
        let little = AtOnce { rows: 48, depth: 9, columns: 8 };
        for m in [1, 11, 12, 13, 23, 24, 25, 47, 48, 49, 60, 100] {
            for n in [1, 3, 4, 5, 8, 9, 17] {
                for k in [1, 2, 3, 4, 5, 8, 9, 10, 27, 31] {
                    for are_by_rows in [[false; 2], [false, true], [true, false], [true; 2]] {
                        assert_right::<f32>(Some(little), [m, k, n], (are_by_rows, 3));
                        assert_right::<f64>(Some(little), [m, k, n], (are_by_rows, 0));
                    }
                }
            }
        }
    }

    #[test]
    fn caches_of_any_size_give_what_fits() {
        let of = |first: usize, second: usize, size| AtOnce::of([first << 10, second << 10], size);
        assert_eq!(of(32, 512, 8), AtOnce { rows: 1020, depth: 256, columns: 128 });
        assert_eq!(of(32, 256, 4), AtOnce { rows: 1008, depth: 256, columns: 128 });
        for (first, second) in [(0, 0), (16, 128), (48, 1280), (64, 4096), (1 << 20, 1 << 30)] {
            for size in [4, 8] {
                let AtOnce { rows, depth, columns } = of(first, second, size);
                assert!(rows > 0 && rows % (TILE_BYTES / size) == 0 && columns > 0 && columns % WIDTH == 0);
                let bytes = (rows + columns) * depth * size;
                assert!(
                    bytes as u64 <= crate::kernels::gemm::WORKSPACE_BYTES,
                    "{first} {second} {size}: {bytes}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn products_of_any_sides_are_right(
            m in 1usize..1100, k in 1usize..300, n in 1usize..40,
            are_by_rows in prop::array::uniform2(any::<bool>()), more in 0usize..3,
        ) {
            if is_possible() {
                assert_right::<f64>(None, [m, k, n], (are_by_rows, more));
                assert_right::<f32>(None, [m, k, n], (are_by_rows, more));
            }
        }
    }
}
