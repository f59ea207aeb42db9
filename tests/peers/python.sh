# Read by the comparisons that need packages of Python, and that say in `here` where the repository is.
#
# python_with IMPORTS PACKAGE…: sets `python` to an interpreter that can import IMPORTS. That is PYTHON if it is given, else
# python3, else one in the target folder, into which the packages are installed where that can be done. Ends with a reason
# where it cannot.
python_with() {
  local imports=$1 own=${CARGO_TARGET_DIR:-$here/target}/python said
  shift
  python=${PYTHON:-python3}
  if "$python" -c "import $imports" 2>/dev/null; then return; fi
  if [ -n "${PYTHON:-}" ]; then
    echo "skipped: $PYTHON cannot import $imports"
    exit 0
  fi
  python=$own/bin/python
  if "$python" -c "import $imports" 2>/dev/null; then return; fi
  echo "installing $* into $own"
  if ! said=$({ python3 -m venv "$own" && timeout 300 "$own/bin/pip" install --quiet --disable-pip-version-check "$@"; } 2>&1); then
    echo "skipped: $* cannot be installed (Debian: apt install python3-venv, or PYTHON=/a/venv/bin/python $0): ${said##*$'\n'}"
    exit 0
  fi
}
