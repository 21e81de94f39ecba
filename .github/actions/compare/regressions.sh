#!/usr/bin/env bash
# Tests for regressions, where there is a baseline; the table goes into the step summary, the exit code into `code`.
set -uo pipefail
work="$PWD/.multilab-compare"
arguments=("$work/now/leaderboard.json" --metric "$METRIC" --level "$ALPHA" --tolerance "$TOLERANCE")
if [ -f "$work/old/leaderboard.json" ]; then arguments+=(--baseline "$work/old/leaderboard.json"); fi
multilab regressions "${arguments[@]}" --markdown "$work/comment.md"
code=$?
if [ -f "$work/comment.md" ]; then cat "$work/comment.md" >> "$GITHUB_STEP_SUMMARY"; fi
echo "code=$code" >> "$GITHUB_OUTPUT"
