"""How the peers that use Open MPI are started."""

import os


def mpirun(processes):
    """The words before a program that is to run in so many processes, each on a core of its own, or on a hardware thread of
    its own where there are not enough cores."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
            cores.add(file.read())
    places = ["--bind-to", "core"] if len(cores) >= processes else ["--use-hwthread-cpus", "--bind-to", "hwthread"]
    return ["mpirun", "--allow-run-as-root", *places, "-np", str(processes)]
