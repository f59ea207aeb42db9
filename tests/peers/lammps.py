"""Runs Metachare and LAMMPS in turn and compares them; `tests/against_lammps` prepares what this needs."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

import lammps_physics
from mpi import mpirun

METACHARE, WORK = os.environ["METACHARE"], os.environ["WORK"]
CORES = len(os.sched_getaffinity(0))
POTENTIAL = "/usr/share/lammps/potentials/Cu_mishin1.eam.alloy"
# The lattice constant without pressure.
A = 3.61492506588808

CRYSTAL = """units metal
boundary p p p
lattice fcc {a}
region box block 0 {n} 0 {n} 0 {n}
create_box 1 box
create_atoms 1 box
pair_style eam/alloy
pair_coeff * * {potential} Cu
neighbor 0.5 bin
neigh_modify delay 0 every 1 check yes
"""
# Steps so short that atoms hardly move: each is one evaluation of energy and forces.
STEPS = """displace_atoms all random 0.03 0.03 0.03 12345
fix 1 all nve
timestep 0.0001
thermo 10
run {steps}
"""
VACANCY = """group gone id 1
delete_atoms group gone
thermo_style custom step pe fmax
thermo_modify format float %20.14g
min_style cg
min_modify line quadratic dmax 0.1
minimize 0 1e-8 20000 200000
print "RELAXED $(pe:%.12f)"
"""


def options():
    parser = argparse.ArgumentParser(prog="tests/against_lammps")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--cores", type=int, nargs="+", default=sorted({1, CORES}), help="1 and all, if not given")
    parser.add_argument("--only", choices=["times", "physics"], help="one half of it")
    parser.add_argument("--brief", action="store_true", help="only go through everything once, with small sizes")
    chosen = parser.parse_args()
    chosen.repeats = 1 if chosen.brief else max(chosen.repeats, 1)
    return chosen


def run(command, name):
    """Runs a command to its end; gives what it prints and its peak of resident memory in bytes."""
    with open(os.path.join(WORK, name), "w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=WORK)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}: {text.strip()[-800:]}")
    return text, usage.ru_maxrss * 1024


def script(name, text):
    path = os.path.join(WORK, name)
    with open(path, "w") as out:
        out.write(text)
    return path


def lammps(n, steps, cores):
    """Seconds per atom and evaluation, peak bytes of a process, bytes that it says it has taken, and the pair style that ran:
    the optimised one (`-sf opt`) where this LAMMPS has it."""
    text = CRYSTAL.format(n=n, a=A, potential=POTENTIAL) + STEPS.format(steps=steps)
    command = ["lmp", "-sf", "opt", "-in", script("steps.in", text), "-log", "none"]
    out, peak = run(command if cores == 1 else [*mpirun(cores), *command], "lammps.txt")
    seconds, atoms = re.search(r"Loop time of (\S+) on \d+ procs for \d+ steps with (\d+) atoms", out).groups()
    megabytes = re.search(r"memory allocation .* = \S+ \| \S+ \| (\S+) Mbytes", out)[1]
    style = re.search(r"pair (eam\S+), perpetual", out)[1]
    return float(seconds) / int(atoms) / steps, peak, float(megabytes) * 2**20, style


def lammps_version():
    out, _ = run(["lmp", "-h"], "lammps.txt")
    return re.search(r"Parallel Simulator - (.+)", out)[1]


def metachare(n, more, pes):
    """The report of a run, and the peak bytes of a process."""
    nodes = script("nodes.toml", f'[[node]]\nname = "n1"\npes = {pes}\n')
    report = os.path.join(WORK, "report.json")
    _, peak = run([METACHARE, "run", "statics", "--nodes", nodes, "--speed", "equal", "--potential", POTENTIAL, "--a",
                   str(A), "--size", str(n), "--report", report, *more], "metachare.txt")
    with open(report) as text:
        return json.load(text), peak


def ours(n, evaluations, pes):
    """Seconds per atom and evaluation, the first lists included; peak bytes of a process, bytes of all blocks."""
    more = ["--shake", "0.03", "--max-force", "0", "--evaluations", str(evaluations)]
    report, peak = metachare(n, more, pes)
    done = report["facts"]["evaluations"]
    atoms = report["facts"]["atoms"]
    return report["timed_s"] / atoms / done, peak, report["facts"]["tables"]["bytes_per_atom"] * atoms


def row(name, theirs, mine, unit, scale):
    def spread(values):
        return f"{statistics.median(values) * scale:.3g} ({min(values) * scale:.3g}-{max(values) * scale:.3g})"
    ratio = statistics.median(mine) / statistics.median(theirs)
    print(f"| {name} | {spread(theirs)} | {spread(mine)} | {ratio:.2f} x | {unit}", flush=True)
    return {"name": name, "unit": unit, "lammps": [v * scale for v in theirs], "metachare": [v * scale for v in mine],
            "ratio": ratio}


def times(chosen):
    """Prints the table of times and memory and the energy of a vacancy; gives all figures."""
    # Cells along each edge, evaluations.
    sizes = [(6, 5), (8, 5)] if chosen.brief else [(20, 100), (40, 25)]
    rows, styles = [], set()
    print(f"| {CORES} cores, {chosen.repeats} turns: median (least-most) | LAMMPS | Metachare | |\n|---|--:|--:|--:|")
    for cores in chosen.cores:
        for n, evaluations in sizes:
            turns = [(lammps(n, evaluations, cores), ours(n, evaluations, cores)) for _ in range(chosen.repeats)]
            theirs, mine = zip(*turns)
            styles |= {style for *_, style in theirs}
            atoms = 4 * n**3
            rows.append(row(f"{atoms} atoms, {cores} cores, per atom and evaluation", [t[0] for t in theirs],
                            [m[0] for m in mine], "ns", 1e9))
            if cores == 1:
                for at, what in (1, "peak memory of the process per atom"), (2, "memory per atom as each counts it"):
                    rows.append(row(f"{atoms} atoms, {what}", [t[at] / atoms for t in theirs],
                                    [m[at] / atoms for m in mine], "bytes", 1.0))
    version, styles = lammps_version(), sorted(styles)
    print(f"\nLAMMPS {version} ran the pair style {' and '.join(styles)}", flush=True)
    n = 4 if chosen.brief else 6
    out, _ = run(["lmp", "-in", script("vacancy.in", CRYSTAL.format(n=n, a=A, potential=POTENTIAL) + VACANCY), "-log",
                  "none"], "lammps.txt")
    theirs = float(re.search(r"^RELAXED (\S+)", out, re.M)[1])
    report, _ = metachare(n, ["--vacancy", "0", "--max-force", "1e-8"], CORES)
    mine = report["facts"]["energy_ev"]
    print(f"\nrelaxed vacancy in {4 * n**3} atoms: LAMMPS {theirs:.9f} eV, Metachare {mine:.9f} eV, apart "
          f"{abs(theirs - mine):.1e} eV")
    if abs(theirs - mine) > 1e-6:
        sys.exit("the energies of the vacancy differ by more than 1e-6 eV")
    return {"lammps": {"version": version, "styles": styles}, "rows": rows, "vacancy_ev": {"lammps": theirs, "metachare": mine}}


def main():
    chosen = options()
    figures = {"cores": CORES}
    if chosen.only != "physics":
        figures |= times(chosen)
    if chosen.only != "times":
        figures |= lammps_physics.compare(lammps_physics.Peers(run, METACHARE, WORK), chosen.brief)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
