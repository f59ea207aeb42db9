# Read by the comparisons with numpy and scipy, which say in `here` where the repository is: sets `python` to an
# interpreter that has both. That is PYTHON if it is given, else python3, else one in the target folder, into which both are
# installed where that can be done. Ends with a reason where it cannot.
python=${PYTHON:-python3}
packages="import numpy, scipy.sparse.csgraph"
if ! "$python" -c "$packages" 2>/dev/null; then
  if [ -n "${PYTHON:-}" ]; then
    echo "skipped: $PYTHON has no numpy and scipy"
    exit 0
  fi
  own=${CARGO_TARGET_DIR:-$here/target}/python
  python=$own/bin/python
  if ! "$python" -c "$packages" 2>/dev/null; then
    echo "installing numpy and scipy into $own"
    if ! said=$({ python3 -m venv "$own" && timeout 300 "$own/bin/pip" install --quiet --disable-pip-version-check numpy scipy; } 2>&1); then
      echo "skipped: numpy and scipy cannot be installed (apt install python3-scipy, or PYTHON=/a/venv/bin/python $0): ${said##*$'\n'}"
      exit 0
    fi
  fi
fi
