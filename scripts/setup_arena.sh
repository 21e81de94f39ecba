#!/usr/bin/env bash
# Add the entrants of the arena to the virtual environment that setup.sh made: setup_arena.sh VENV
# Without dependencies: BOOMER declares older versions than those of requirements.lock, see scripts/arena-overrides.txt.
set -euo pipefail
options=(install --quiet --no-deps --require-hashes -r requirements-arena.lock)
if command -v uv >/dev/null 2>&1; then
  uv --no-config pip "${options[@]}" --python "$1/bin/python" # an environment that uv made has no pip
else
  "$1/bin/python" -m pip --disable-pip-version-check "${options[@]}"
fi
