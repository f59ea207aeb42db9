/* One product of two n x n matrices by OpenBLAS, on as many threads as OPENBLAS_NUM_THREADS says: prints the library's
 * version and kernel, then the seconds of each of several products, after one that is not timed (it starts the threads and
 * touches the memory).
 * usage: gemm f32|f64 N REPEATS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Version and kernel, which only the running library knows: it chooses the kernel for the CPU that it finds. */
char *openblas_get_config(void), *openblas_get_corename(void);
void dgemm_(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a, int *lda, double *b, int *ldb,
            double *beta, double *c, int *ldc);
void sgemm_(char *ta, char *tb, int *m, int *n, int *k, float *alpha, float *a, int *lda, float *b, int *ldb,
            float *beta, float *c, int *ldc);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 4) return 64;
  int is_double = strcmp(argv[1], "f64") == 0, n = atoi(argv[2]), repeats = atoi(argv[3]);
  size_t count = (size_t)n * n, size = is_double ? sizeof(double) : sizeof(float);
  void *a = malloc(count * size), *b = malloc(count * size), *c = malloc(count * size);
  if (!a || !b || !c) return 71;
  for (size_t i = 0; i < count; i++) {
    double x = drand48() - 0.5, y = drand48() - 0.5;
    if (is_double) {
      ((double *)a)[i] = x, ((double *)b)[i] = y;
    } else {
      ((float *)a)[i] = x, ((float *)b)[i] = y;
    }
  }
  memset(c, 0, count * size);
  double one = 1, zero = 0;
  float one_f32 = 1, zero_f32 = 0;
  printf("%s\n%s\n", openblas_get_config(), openblas_get_corename());
  for (int turn = 0; turn <= repeats; turn++) {
    double start = now();
    if (is_double)
      dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    else
      sgemm_("N", "N", &n, &n, &n, &one_f32, a, &n, b, &n, &zero_f32, c, &n);
    if (turn > 0) printf("%.6f\n", now() - start);
  }
  /* Uses the result, so that no compiler may leave the work out. */
  double first = is_double ? ((double *)c)[0] : ((float *)c)[0];
  return first == first ? 0 : 70;
}
