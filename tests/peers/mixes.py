"""Local nodes of unlike fixed speeds, so that shares do not depend on the day."""

SPEEDS = [1.0, 0.55, 0.25, 0.8, 0.37, 0.1, 0.63]


def nodes_file(mix):
    """Writes a nodes file with so many PEs a node; its name."""
    name = "nodes%s.toml" % "".join(map(str, mix))
    with open(name, "w") as out:
        for at, (pes, speed) in enumerate(zip(mix, SPEEDS)):
            out.write(f'[[node]]\nname = "n{at + 1}"\npes = {pes}\nspeed = {speed}\n')
    return name
