/* The solution of a system of n unknowns in doubles with one right-hand side by ScaLAPACK's pdgesv on P x Q processes in
 * blocks of NB: prints version and kernel of the OpenBLAS beneath it, then the seconds of each of several solutions, data in
 * place, after one that is not timed.
 * usage: mpirun -np P*Q pdgesv P Q N NB REPEATS */
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
void pdgesv_(int *n, int *rhs, double *a, int *ia, int *ja, int *da, int *pivots, double *b, int *ib, int *jb, int *db,
             int *info);

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 6) return 64;
  int p = atoi(argv[1]), q = atoi(argv[2]), n = atoi(argv[3]), nb = atoi(argv[4]), repeats = atoi(argv[5]);
  int context, row, col, zero = 0, one = 1, info, desc[9], desc_b[9];
  Cblacs_get(0, 0, &context);
  Cblacs_gridinit(&context, "Row", p, q);
  Cblacs_gridinfo(context, &p, &q, &row, &col);
  int rows = numroc_(&n, &nb, &row, &zero, &p), cols = numroc_(&n, &nb, &col, &zero, &q), lead = rows;
  int right = numroc_(&one, &nb, &col, &zero, &q);
  descinit_(desc, &n, &n, &nb, &nb, &zero, &zero, &context, &lead, &info);
  descinit_(desc_b, &n, &one, &nb, &nb, &zero, &zero, &context, &lead, &info);
  size_t count = (size_t)rows * cols, count_b = (size_t)rows * (right + 1);
  double *given = malloc(count * 8), *a = malloc(count * 8), *b = malloc(count_b * 8);
  int *pivots = malloc((rows + nb) * sizeof(int));
  if (info != 0 || !given || !a || !b || !pivots) MPI_Abort(MPI_COMM_WORLD, 71);
  srand48(row * q + col);
  for (size_t i = 0; i < count; i++) given[i] = 2 * drand48() - 1;
  if (row == 0 && col == 0) printf("%s\n%s\n", openblas_get_config(), openblas_get_corename());
  for (int turn = 0; turn <= repeats; turn++) {
    memcpy(a, given, count * 8);
    for (size_t i = 0; i < count_b; i++) b[i] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds, start = MPI_Wtime();
    pdgesv_(&n, &one, a, &one, &one, desc, pivots, b, &one, &one, desc_b, &info);
    double own = MPI_Wtime() - start;
    if (info != 0) MPI_Abort(MPI_COMM_WORLD, 70);
    MPI_Reduce(&own, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (row == 0 && col == 0 && turn > 0) printf("%.6f\n", seconds);
  }
  MPI_Finalize();
  return 0;
}
