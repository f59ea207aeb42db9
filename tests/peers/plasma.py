"""How long a step of a particle takes, with Numba and in `run pic` in turn; `tests/against_numba` prepares what this needs."""

import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

METACHARE = os.environ["METACHARE"]
BRIEF = "--brief" in sys.argv
TURNS = 1 if BRIEF else 5
STEPS = 20
CORES = len(os.sched_getaffinity(0))
DT, BEAM, THERMAL = 0.1, 0.02, 0.02


@numba.njit(nogil=True)
def advance(x, y, u, v, field_x, field_y, density, nx, ny, until_middle, whole):
    """Moves particles and adds up their charge (leapfrog, cloud in cell), in cells and steps; their squared velocities."""
    squares = 0.0
    for p in range(x.size):
        i, j = int(x[p]), int(y[p])
        fx, fy = x[p] - i, y[p] - j
        w00, w01, w10, w11 = (1 - fx) * (1 - fy), (1 - fx) * fy, fx * (1 - fy), fx * fy
        ax = w00 * field_x[i, j] + w01 * field_x[i, j + 1] + w10 * field_x[i + 1, j] + w11 * field_x[i + 1, j + 1]
        ay = w00 * field_y[i, j] + w01 * field_y[i, j + 1] + w10 * field_y[i + 1, j] + w11 * field_y[i + 1, j + 1]
        mid_u, mid_v = u[p] + until_middle * ax, v[p] + until_middle * ay
        squares += mid_u * mid_u + mid_v * mid_v
        u[p] += whole * ax
        v[p] += whole * ay
        a, b = x[p] + u[p], y[p] + v[p]
        if a < 0:
            a += nx
        if a >= nx:
            a -= nx
        if b < 0:
            b += ny
        if b >= ny:
            b -= ny
        x[p], y[p] = a, b
        i, j = int(a), int(b)
        fx, fy = a - i, b - j
        density[i, j] += (1 - fx) * (1 - fy)
        density[i, j + 1] += (1 - fx) * fy
        density[i + 1, j] += fx * (1 - fy)
        density[i + 1, j + 1] += fx * fy
    return squares


class Plasma:
    """A beam through cold electrons, as `run pic` has it but for random velocities, its particles sorted by cell."""

    def __init__(self, particles, nx, ny, thermal, threads=1):
        rng = np.random.default_rng(1)
        self.count, self.nx, self.ny = particles, nx, ny
        self.side = 2 * np.pi / nx
        unit = DT / self.side
        number = np.arange(particles)
        place = (number + 0.5) / particles
        place -= 1e-5 / (2 * np.pi) * np.sin(2 * np.pi * place)
        x, y = place * nx % nx, number * 0.6180339887498949 % 1 * ny
        u, v = rng.normal(size=(2, particles)) * thermal * unit
        u[number % round(1 / BEAM) == 0] += unit
        order = np.lexsort((y.astype(int), x.astype(int)))
        self.x, self.y, self.u, self.v = (np.ascontiguousarray(column[order]) for column in (x, y, u, v))
        # Each thread has a part of the particles, and a grid of its own for their charge.
        bounds = [particles * thread // threads for thread in range(threads + 1)]
        self.parts = [slice(*part) for part in zip(bounds, bounds[1:])]
        self.densities = [np.zeros((nx + 1, ny + 1)) for _ in self.parts]
        self.pool = ThreadPoolExecutor(threads)
        nothing = np.zeros((nx + 1, ny + 1))
        # Also compiles it.
        still = np.zeros(particles)
        self.advance(still, still.copy(), nothing, nothing, 0.5, 1.0)
        self.is_first = True

    def advance(self, u, v, *rest):
        """Moves all particles, by all threads."""

        def move(part, density):
            density[:] = 0
            field_x, field_y, *weights = rest
            advance(self.x[part], self.y[part], u[part], v[part], field_x, field_y, density, self.nx, self.ny, *weights)

        if len(self.parts) == 1:
            move(self.parts[0], self.densities[0])
        else:
            list(self.pool.map(move, self.parts, self.densities))

    def solve(self):
        """The accelerations at the points, and the energy of the first wave along x, of an electron."""
        nx, ny = self.nx, self.ny
        corners = self.densities[0] if len(self.densities) == 1 else sum(self.densities)
        density = corners[:nx, :ny].copy()
        density[0, :] += corners[nx, :ny]
        density[:, 0] += corners[:nx, ny]
        density[0, 0] += corners[nx, ny]
        waves = np.fft.rfft2(density) / self.count
        kx, ky = np.fft.fftfreq(nx)[:, None], np.fft.rfftfreq(ny)[None, :]
        curvature = ((2 * np.sin(np.pi * kx)) ** 2 + (2 * np.sin(np.pi * ky)) ** 2) / self.side**2
        curvature[0, 0] = np.inf
        potential = waves / curvature
        fields = []
        for slope in (kx, ky):
            field = np.zeros((nx + 1, ny + 1))
            spectrum = -1j * np.sin(2 * np.pi * slope) * potential * nx * ny
            field[:nx, :ny] = np.fft.irfft2(spectrum, s=(nx, ny)) * (DT / self.side) ** 2
            field[nx, :], field[:, ny] = field[0, :], field[:, 0]
            fields.append(field)
        return fields, abs(waves[1, 0]) ** 2 / curvature[1, 0]

    def step(self):
        (field_x, field_y), energy = self.solve()
        weights = (0.0, 0.5) if self.is_first else (0.5, 1.0)
        self.advance(self.u, self.v, field_x, field_y, *weights)
        self.is_first = False
        return energy


def run(*words, pes=1):
    """The report of a run on so many PEs of one node."""
    with open("one.toml", "w") as file:
        file.write(f'[[node]]\nname = "one"\npes = {pes}\n')
    command = [METACHARE, "run", "pic", "--nodes", "one.toml", "--speed", "equal", "--quiet", "--report", "run.json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    with open("run.json") as file:
        return json.load(file)


def nanoseconds(particles, nx, ny, pes):
    words = ["--particles", str(particles), "--cells", f"{nx}x{ny}", "--thermal", str(THERMAL), "--steps", str(STEPS)]
    plasma = Plasma(particles, nx, ny, THERMAL, min(pes, CORES))
    peer, own = [], []
    for _ in range(TURNS):
        begun = time.perf_counter()
        for _ in range(STEPS):
            plasma.step()
        peer.append((time.perf_counter() - begun) * 1e9 / STEPS / particles)
        own.append(run(*words, pes=pes)["facts"]["ns_per_particle_and_step"])
    for name, values in (("Numba", peer), ("run pic", own)):
        middle = statistics.median(values)
        print(f"  {name:<10} {middle:6.2f} ns for a particle and step, {min(values):.2f} to {max(values):.2f}", flush=True)
    ratio = statistics.median(own) / statistics.median(peer)
    verdict = "" if BRIEF else f", target 1.0: {'reached' if ratio <= 1.0 else 'MISSED'}"
    print(f"  {ratio:.2f} times the time{verdict}", flush=True)


def growth():
    """Rates by which the beam's wave grows: the mean over a stretch that begins when other waves are past."""
    plasma = Plasma(20_000, 32, 4, 0.0)
    energies = np.array([plasma.step() for _ in range(500)])
    peer = np.log(energies[450] / energies[250]) / (2 * 200 * DT)
    words = ["--particles", "20000", "--cells", "32x4", "--steps", "500", "--perturbation", "1e-5", "--trace", "trace.csv"]
    run(*words)
    waves = np.loadtxt("trace.csv", delimiter=",", skiprows=1, usecols=5)
    own = np.log(waves[450] / waves[250]) / (2 * 200 * DT)
    print(f"growth of the wave: {own:.4f}, with Numba {peer:.4f}")
    if abs(own / peer - 1) > 0.02:
        sys.exit("the rates differ by more than a fiftieth")


growth()
ONE = [(1 << 20, 128, 128, 1), (1 << 22, 256, 256, 1), (10_000_000, 256, 256, 1)]
SEVERAL = [(10_000_000, 256, 256, pes) for pes in sorted({2, 4, CORES} - {1})]
for size in [(20_000, 32, 8, 1), (20_000, 32, 8, 2)] if BRIEF else ONE + SEVERAL:
    print("{} particles on {} x {} cells, PEs: {}".format(*size), flush=True)
    nanoseconds(*size)
