/* One product of two n x n matrices of doubles by ScaLAPACK's pdgemm on P x Q processes in blocks of NB: prints
 * version and kernel of the OpenBLAS beneath it, then the seconds of each of several products, data in place, after one that
 * is not timed.
 * usage: mpirun -np P*Q pdgemm P Q N NB REPEATS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version and kernel, which only the running library knows: it chooses the kernel for the CPU that it finds. */
char *openblas_get_config(void), *openblas_get_corename(void);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
int numroc_(int *n, int *nb, int *at, int *first, int *count);
void descinit_(int *desc, int *m, int *n, int *mb, int *nb, int *row, int *col, int *context, int *lead, int *info);
void pdgemm_(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a, int *ia, int *ja, int *da, double *b,
             int *ib, int *jb, int *db, double *beta, double *c, int *ic, int *jc, int *dc);

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 6) return 64;
  int p = atoi(argv[1]), q = atoi(argv[2]), n = atoi(argv[3]), nb = atoi(argv[4]), repeats = atoi(argv[5]);
  int context, row, col, zero = 0, one = 1, info, desc[9];
  Cblacs_get(0, 0, &context);
  Cblacs_gridinit(&context, "Row", p, q);
  Cblacs_gridinfo(context, &p, &q, &row, &col);
  int rows = numroc_(&n, &nb, &row, &zero, &p), cols = numroc_(&n, &nb, &col, &zero, &q), lead = rows;
  descinit_(desc, &n, &n, &nb, &nb, &zero, &zero, &context, &lead, &info);
  size_t count = (size_t)rows * cols;
  double *a = malloc(count * 8), *b = malloc(count * 8), *c = malloc(count * 8), alpha = 1, beta = 0;
  if (info != 0 || !a || !b || !c) MPI_Abort(MPI_COMM_WORLD, 71);
  srand48(row * q + col);
  for (size_t i = 0; i < count; i++) a[i] = drand48() - 0.5, b[i] = drand48() - 0.5;
  memset(c, 0, count * 8);
  if (row == 0 && col == 0) printf("%s\n%s\n", openblas_get_config(), openblas_get_corename());
  for (int turn = 0; turn <= repeats; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds, start = MPI_Wtime();
    pdgemm_("N", "N", &n, &n, &n, &alpha, a, &one, &one, desc, b, &one, &one, desc, &beta, c, &one, &one, desc);
    double own = MPI_Wtime() - start;
    MPI_Reduce(&own, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (row == 0 && col == 0 && turn > 0) printf("%.6f\n", seconds);
  }
  MPI_Finalize();
  return c[0] == c[0] ? 0 : 70;
}
