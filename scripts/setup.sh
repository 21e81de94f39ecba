#!/usr/bin/env bash
# Make the virtual environment from the hashed lock: setup.sh PYTHON VENV
set -euo pipefail
python=$1 venv=$2
lock=requirements.lock

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
  echo "multilab needs Python 3.11, 3.12 or 3.13; $python is $("$python" -V 2>&1). Try: make setup PYTHON=python3.12" >&2
  exit 2
fi
echo "setting up $venv (about a minute) ..."
if command -v uv >/dev/null 2>&1; then
  [ -x "$venv/bin/python" ] || uv venv --quiet --python "$python" "$venv"
  uv pip install --quiet --python "$venv/bin/python" --require-hashes --compile-bytecode -r "$lock"
  uv pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
else
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
if [ ! -d .dvc ] && git rev-parse --git-dir >/dev/null 2>&1; then
  "$venv/bin/dvc" init --quiet
fi
echo "ready: $("$venv/bin/python" -V), $("$venv/bin/multilab" --version) in $venv"
