#!/usr/bin/env bash
# Runs `multilab compare` on the checkout and on the baseline, over the same rows; fits of unchanged code are found in
# the store. Writes .multilab-compare/{now,old}/leaderboard.json.
set -euo pipefail
work="$PWD/.multilab-compare"
mkdir -p "$work/cache"
export MULTILAB_CELLS="$work/cache/cells" MULTILAB_CACHE="$work/cache/data"

source=(--dataset "$DATASET")
if [ -f "$DATASET" ]; then # a file: that of the checkout for both runs, so that the rows are the same
  source=(--dataset "$PWD/$DATASET" --labels "$LABELS")
fi

compare() { # compare FOLDER OUT
  local arguments=("${source[@]}" --budget "$BUDGET" --metric "$METRIC" --cv "$FOLDS" --output "$2")
  if [ -n "$METHODS" ]; then arguments+=(--method "$METHODS"); fi
  (cd "$1" && PYTHONPATH="$1/$PYTHON_FOLDER${PYTHONPATH:+:$PYTHONPATH}" multilab compare "${arguments[@]}")
}

compare "$PWD" "$work/now"
echo "leaderboard=$work/now/leaderboard.json" >> "$GITHUB_OUTPUT"
case "$BASELINE" in
  "") ;;
  *.json) mkdir -p "$work/old" && cp -- "$BASELINE" "$work/old/leaderboard.json" ;;
  *)
    compare "$work/baseline" "$work/old" ||
      echo "::warning::the baseline cannot run this comparison (a method that is new, for example); nothing is tested"
    ;;
esac
