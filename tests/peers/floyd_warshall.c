/* All shortest paths of a dense graph by the blocked algorithm of Floyd and Warshall, on OMP_NUM_THREADS threads: prints
 * the seconds of each of several runs, and a sum of the distances.
 * usage: floyd_warshall i32|f32|f64 N BLOCK REPEATS
 *
 * Blocks lie one behind the other; the inner loop runs along rows, so that gcc -O3 makes vector instructions of it. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFINE(T)                                                                                                      \
  /* c = min(c, a + b) for blocks of b x b; a or b may be c. */                                                        \
  static void relax_##T(T *c, const T *a, const T *b, int side) {                                                      \
    for (int k = 0; k < side; k++)                                                                                     \
      for (int i = 0; i < side; i++) {                                                                                 \
        T x = a[(size_t)i * side + k];                                                                                 \
        const T *row = b + (size_t)k * side;                                                                           \
        T *out = c + (size_t)i * side;                                                                                 \
        for (int j = 0; j < side; j++) {                                                                               \
          T sum = x + row[j];                                                                                          \
          out[j] = sum < out[j] ? sum : out[j];                                                                        \
        }                                                                                                              \
      }                                                                                                                \
  }                                                                                                                    \
  /* The same where neither a nor b is c: c may stay in the nearest cache while k runs. */                             \
  static void product_##T(T *restrict c, const T *restrict a, const T *restrict b, int side) {                         \
    for (int i = 0; i < side; i++) {                                                                                   \
      T *out = c + (size_t)i * side;                                                                                   \
      for (int k = 0; k < side; k++) {                                                                                 \
        T x = a[(size_t)i * side + k];                                                                                 \
        const T *row = b + (size_t)k * side;                                                                           \
        for (int j = 0; j < side; j++) {                                                                               \
          T sum = x + row[j];                                                                                          \
          out[j] = sum < out[j] ? sum : out[j];                                                                        \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static double run_##T(int n, int side, double *sum) {                                                                \
    int q = n / side;                                                                                                  \
    size_t block = (size_t)side * side;                                                                                \
    T *d = aligned_alloc(64, (size_t)n * n * sizeof(T));                                                               \
    if (!d) exit(71);                                                                                                  \
    srand48(1);                                                                                                        \
    for (size_t at = 0; at < (size_t)n * n; at++) d[at] = (T)(1 + lrand48() % 1000);                                   \
    for (int v = 0; v < n; v++) d[((size_t)(v / side) * q + v / side) * block + (size_t)(v % side) * (side + 1)] = 0;  \
    double start = omp_get_wtime();                                                                                    \
    _Pragma("omp parallel") for (int k = 0; k < q; k++) {                                                              \
      T *pivot = d + ((size_t)k * q + k) * block;                                                                      \
      _Pragma("omp single") relax_##T(pivot, pivot, pivot, side);                                                      \
      _Pragma("omp for schedule(dynamic)") for (int at = 0; at < 2 * q; at++) {                                        \
        int other = at / 2;                                                                                            \
        if (other == k) continue;                                                                                      \
        T *row = d + ((size_t)k * q + other) * block, *column = d + ((size_t)other * q + k) * block;                   \
        if (at % 2) relax_##T(row, pivot, row, side);                                                                  \
        else relax_##T(column, column, pivot, side);                                                                   \
      }                                                                                                                \
      _Pragma("omp for schedule(dynamic) collapse(2)") for (int i = 0; i < q; i++) for (int j = 0; j < q; j++) {       \
        if (i == k || j == k) continue;                                                                                \
        product_##T(d + ((size_t)i * q + j) * block, d + ((size_t)i * q + k) * block, d + ((size_t)k * q + j) * block, \
                    side);                                                                                             \
      }                                                                                                                \
    }                                                                                                                  \
    double seconds = omp_get_wtime() - start;                                                                          \
    *sum = 0;                                                                                                          \
    for (size_t at = 0; at < (size_t)n * n; at++) *sum += (double)d[at];                                               \
    free(d);                                                                                                           \
    return seconds;                                                                                                    \
  }

typedef int i32;
typedef float f32;
typedef double f64;
DEFINE(i32)
DEFINE(f32)
DEFINE(f64)

int main(int argc, char **argv) {
  if (argc != 5) return 64;
  int n = atoi(argv[2]), side = atoi(argv[3]), repeats = atoi(argv[4]);
  if (n < 1 || side < 1 || n % side) return 64;
  for (int turn = 0; turn < repeats; turn++) {
    double sum, seconds;
    if (!strcmp(argv[1], "i32")) seconds = run_i32(n, side, &sum);
    else if (!strcmp(argv[1], "f32")) seconds = run_f32(n, side, &sum);
    else seconds = run_f64(n, side, &sum);
    printf("%.6f %.0f\n", seconds, sum);
  }
  return 0;
}
