/* One LU factorisation of an n x n matrix by OpenBLAS and the solution for one right-hand side (getrf and getrs), on as many
 * threads as OPENBLAS_NUM_THREADS says: prints the library's version and kernel, then the seconds of each of several,
 * after one that is not timed.
 * usage: getrf f32|f64 N REPEATS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Version and kernel, which only the running library knows: it chooses the kernel for the CPU that it finds. */
char *openblas_get_config(void), *openblas_get_corename(void);
void dgetrf_(int *m, int *n, double *a, int *lda, int *pivots, int *info);
void sgetrf_(int *m, int *n, float *a, int *lda, int *pivots, int *info);
void dgetrs_(char *trans, int *n, int *rhs, double *a, int *lda, int *pivots, double *b, int *ldb, int *info);
void sgetrs_(char *trans, int *n, int *rhs, float *a, int *lda, int *pivots, float *b, int *ldb, int *info);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 4) return 64;
  int is_double = strcmp(argv[1], "f64") == 0, n = atoi(argv[2]), repeats = atoi(argv[3]), info = 0, one = 1;
  size_t count = (size_t)n * n, size = is_double ? sizeof(double) : sizeof(float);
  void *given = malloc(count * size), *a = malloc(count * size), *b = malloc(n * size);
  int *pivots = malloc(n * sizeof(int));
  if (!given || !a || !b || !pivots) return 71;
  for (size_t i = 0; i < count; i++) {
    double x = 2 * drand48() - 1;
    if (is_double) ((double *)given)[i] = x;
    else ((float *)given)[i] = x;
  }
  printf("%s\n%s\n", openblas_get_config(), openblas_get_corename());
  for (int turn = 0; turn <= repeats; turn++) {
    memcpy(a, given, count * size);
    memcpy(b, given, n * size);
    double start = now();
    if (is_double) {
      dgetrf_(&n, &n, a, &n, pivots, &info);
      if (info == 0) dgetrs_("N", &n, &one, a, &n, pivots, b, &n, &info);
    } else {
      sgetrf_(&n, &n, a, &n, pivots, &info);
      if (info == 0) sgetrs_("N", &n, &one, a, &n, pivots, b, &n, &info);
    }
    if (info != 0) return 70;
    if (turn > 0) printf("%.6f\n", now() - start);
  }
  return 0;
}
