#!/usr/bin/env bash
# Make the virtual environment from the hashed lock: setup.sh PYTHON VENV
set -euo pipefail
export UV_NO_CONFIG=1 # [tool.uv] has constraints for `make lock`, which an installation by hashes refuses
python=$1 venv=$2
lock=requirements.lock
interval=${MULTILAB_SETUP_INTERVAL:-10} # seconds between two lines of progress

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'; then
  echo "the laboratory needs Python 3.11 to 3.14; $python is $("$python" -V 2>&1). Try: make setup PYTHON=python3.12" >&2
  exit 2
fi

log=$(mktemp)
watcher=
finish() {
  if [ -n "$watcher" ]; then kill "$watcher" 2>/dev/null || true; fi
  rm -f "$log"
}
trap finish EXIT

# Print until killed how many packages are there; the installer first finds and downloads all of them.
watch_progress() {
  local total before installed found
  total=$(grep -c '^[A-Za-z0-9].*==' "$lock" || true)
  before=$(count_installed)
  while sleep "$interval" >/dev/null 2>&1; do
    installed=$(count_installed)
    if [ "$installed" -gt "$before" ]; then
      echo "  ${SECONDS} s: $installed of at most $total packages installed"
    else
      found=$(grep -cE '^ *Collecting ' "$log" || true) # a line of pip per package; uv has none
      if [ "$found" -gt 0 ]; then found=", $found of at most $total packages found"; else found=; fi
      echo "  ${SECONDS} s: downloading$found"
    fi
  done
}

count_installed() {
  find "$venv" -maxdepth 4 -name '*.dist-info' 2>/dev/null | wc -l
}

# Run an installer; its output goes to the log, whose end is shown if it fails.
run() {
  if ! "$@" >>"$log" 2>&1; then
    echo "setup failed: $*" >&2
    tail -n 30 "$log" >&2
    exit 1
  fi
}

installer=pip
if command -v uv >/dev/null 2>&1; then installer=uv; fi
echo "[1/3] virtual environment $venv ($("$python" -V 2>&1))"
if [ ! -x "$venv/bin/python" ]; then
  if [ $installer = uv ]; then run uv venv --python "$python" "$venv"; else run "$python" -m venv "$venv"; fi
fi
echo "[2/3] packages of $lock with $installer (one to five minutes)"
watch_progress &
watcher=$!
if [ $installer = uv ]; then
  run uv pip install --python "$venv/bin/python" --require-hashes --compile-bytecode -r "$lock"
  run uv pip install --python "$venv/bin/python" --no-deps --no-build-isolation -e .
else
  pip=("$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off)
  run "${pip[@]}" --require-hashes -r "$lock"
  run "${pip[@]}" --no-deps --no-build-isolation -e .
fi
kill "$watcher" 2>/dev/null || true
watcher=
echo "[3/3] DVC"
if [ ! -d .dvc ] && git rev-parse --git-dir >/dev/null 2>&1; then
  run "$venv/bin/dvc" init --quiet
fi
echo "ready after ${SECONDS} s: $("$venv/bin/python" -V), multilab $("$venv/bin/multilab" --version) in $venv"
echo "next: make reproduce; or activate the environment first (source $venv/bin/activate) to call multilab by name"
