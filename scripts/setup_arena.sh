#!/usr/bin/env bash
# Add the entrants of the arena to the virtual environment that setup.sh made: setup_arena.sh VENV
# Without dependencies: BOOMER declares older versions than those of requirements.lock, see scripts/arena-overrides.txt.
set -euo pipefail
export UV_NO_CONFIG=1 # [tool.uv] has constraints for `make lock`, which an installation by hashes refuses
options=(install --quiet --no-deps --require-hashes -r requirements-arena.lock)
if command -v uv >/dev/null 2>&1; then
  uv pip "${options[@]}" --python "$1/bin/python" # an environment that uv made has no pip
else
  "$1/bin/python" -m pip --disable-pip-version-check "${options[@]}"
fi
