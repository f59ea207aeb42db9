/* What messages cost between two MPI processes. Prints one line for each operation: name, size in bytes, value.
 * rtt: microseconds there and back. bandwidth: bytes a second one way, 16 messages under way. rate: messages a second
 * one way, the better of plain sends and of 64 under way.
 * usage: mpirun -np 2 messages SECONDS_FOR_EACH */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_MAX = 64 };
static int rank;
static char *in, *out;

static double ping_pong(int size, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < count; i++) {
    if (rank == 0) MPI_Send(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(in, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - start;
}

/* Rank 0 sends, rank 1 receives and answers when it has the last; a window of 0 means plain sends. */
static double stream(int size, int count, int window) {
  MPI_Request under_way[WINDOW_MAX];
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < count; i += window ? window : 1) {
    if (window) {
      for (int at = 0; at < window; at++) {
        if (rank == 0)
          MPI_Isend(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &under_way[at]);
        else
          MPI_Irecv(in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &under_way[at]);
      }
      MPI_Waitall(window, under_way, MPI_STATUSES_IGNORE);
    } else if (rank == 0) {
      MPI_Send(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 1)
    MPI_Send(out, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  else
    MPI_Recv(in, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_Wtime() - start;
}

static double run(int size, int count, int window) {
  return window < 0 ? ping_pong(size, count) : stream(size, count, window);
}

/* Seconds of one message, from a stretch of about so many seconds. How long it is to be is for rank 0 to say. */
static double each(int size, int window, double seconds) {
  int unit = window > 0 ? window : 2, count = unit;
  for (int is_long_enough = 0; !is_long_enough;) {
    double took = run(size, count, window);
    is_long_enough = took > seconds / 4 || count > 1 << 24;
    double factor = is_long_enough ? seconds / took : 2;
    if (factor > 1) count = ((int)(count * factor) / unit + 1) * unit;
    MPI_Bcast(&is_long_enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  return run(size, count, window) / count;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 2) return 64;
  double seconds = atof(argv[1]);
  int sizes[] = {8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20};
  int wide[] = {64 << 10, 1 << 20, 4 << 20, 16 << 20};
  in = malloc(16 << 20), out = malloc(16 << 20);
  if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 71);
  memset(in, 1, 16 << 20), memset(out, 2, 16 << 20);
  for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    double took = each(sizes[at], -1, seconds);
    if (rank == 0) printf("rtt %d %.4f\n", sizes[at], 1e6 * took);
  }
  for (size_t at = 0; at < sizeof wide / sizeof *wide; at++) {
    double took = each(wide[at], 16, seconds);
    if (rank == 0) printf("bandwidth %d %.0f\n", wide[at], wide[at] / took);
  }
  double plain = each(64, 0, seconds), windowed = each(64, WINDOW_MAX, seconds);
  if (rank == 0) printf("rate 64 %.0f\n", 1 / (plain < windowed ? plain : windowed));
  MPI_Finalize();
  return 0;
}
