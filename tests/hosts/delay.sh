# delay_beside CORES: what packets between hosts of the test bed take each way where those compute on so many cores. Needs $testbed.
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
