# What scripts that measure on hosts of the test bed have in common. Needs $testbed.

# delay_beside CORES: what packets between hosts of the test bed take each way where those compute on so many cores.
#
# Where the kernel cannot hold packets back processes of the test bed carry them, and where no core is left for those they
# wait for as long as hosts compute: a network of milliseconds, which no LAN is. So there is no delay then.
delay_beside() {
  if [ "$(nproc)" -gt "$1" ] || "$testbed" check --json | grep -q '"delay_by": "netem"'; then
    echo 0.1ms
  else
    echo "packets have no delay: no core is left for those who would hold them back" >&2
    echo 0ms
  fi
}

# begin_bed DELAY: begins the description of hosts on a LAN of 1 Gbit/s whose packets take so long, bed.toml in $work.
begin_bed() { printf '[defaults]\ndelay = "%s"\nrate = "1gbit"\n' "$1" > "$work/bed.toml"; }

# add_host NAME CPU CORE HOW: a host with that part of that core, and in nodes.toml a node of one PE on it that runs $work/metachare.
add_host() {
  printf '[[host]]\nname = "%s"\ncpu = %s\ncpus = "%s"\nhow = "%s"\n' "$@" >> "$work/bed.toml"
  printf '[[node]]\nname = "%s"\nhost = "%s"\npes = 1\nbinary = "%s"\n' "$1" "$1" "$work/metachare" >> "$work/nodes.toml"
}
