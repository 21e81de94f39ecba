#!/usr/bin/env bash
# Try the wheel and the sdist in dist/ outside the clone: try_package.sh PYTHON highest|lowest-direct (needs uv)
# Installs the newest, or the oldest, versions that pyproject.toml allows, runs the tests of the sdist on the installed
# wheel, and then the code of README as a new user would, with the core and with the laboratory.
set -euo pipefail
export UV_NO_CONFIG=1 # [tool.uv] has constraints for `make lock`
python=$1 resolution=$2
scripts=$(cd "$(dirname "$0")" && pwd)
wheel=$(echo "$scripts"/../dist/*.whl) sdist=$(echo "$scripts"/../dist/*.tar.gz)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tar -xzf "$sdist" --strip-components 1
uv venv --quiet --python "$python" .venv
versions() { # the versions of the dependencies that are declared, with these extras
  uv pip compile --quiet --python .venv/bin/python --resolution "$resolution" "$@" pyproject.toml
}
versions >core.txt
versions --extra lab >lab.txt
uv pip install --quiet --python .venv/bin/python -r core.txt "$wheel" "pytest<9.2" pytest-xdist hypothesis
.venv/bin/python -m pytest -n 2 --dist loadgroup -q
for kind in core lab; do
  PIP_CONSTRAINT=$folder/$kind.txt .venv/bin/python "$scripts/readme_blocks.py" $kind "$folder/.venv/bin/python" "$wheel"
done
