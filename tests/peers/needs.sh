# Read by the comparisons that need other programs, and that say in `here` where the repository is. Those that run beside each
# other install one after the other. Each function ends the script with a reason where what it is asked for cannot be had.

# with_lock COMMAND…: runs it when no other script installs anything.
with_lock() {
  local folder=${CARGO_TARGET_DIR:-$here/target}
  mkdir -p "$folder"
  ( flock 9; "$@" ) 9>"$folder/.installing"
}

# missing_of PACKAGE…: which of these are not installed, a line each.
missing_of() {
  local package
  for package; do
    [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = "ii " ] || echo "$package"
  done
}

install_missing() {
  local missing
  mapfile -t missing < <(missing_of "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# debian_with PACKAGE…: installs those of Debian's packages that are missing.
debian_with() {
  local missing
  mapfile -t missing < <(missing_of "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "skipped: not installed: ${missing[*]} (as root on Debian this script installs them)"
    exit 0
  fi
  echo "installing ${missing[*]}"
  if ! with_lock install_missing "${missing[@]}" >/dev/null 2>&1; then
    echo "skipped: apt-get cannot install ${missing[*]}"
    exit 0
  fi
}

install_into() {
  local own=$1
  shift
  { [ -x "$own/bin/pip" ] || python3 -m venv "$own"; } &&
    timeout 300 "$own/bin/pip" install --quiet --disable-pip-version-check "$@"
}

# python_with IMPORTS PACKAGE…: sets `python` to an interpreter that can import IMPORTS. That is PYTHON if it is given, else
# python3, else one in the target folder, into which the packages are installed where that can be done.
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
  if ! said=$(with_lock install_into "$own" "$@" 2>&1); then
    echo "skipped: $* cannot be installed (Debian: apt install python3-venv, or PYTHON=/a/venv/bin/python $0): ${said##*$'\n'}"
    exit 0
  fi
}
