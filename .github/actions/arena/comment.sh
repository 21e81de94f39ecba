#!/usr/bin/env bash
# Writes the result of a verification into a comment of its pull request. The folder comes from a job that ran a
# stranger's code: its number is compared with the commit that GitHub names, its text is cut and only shown.
set -euo pipefail
folder="$PWD/.multilab-arena"
mkdir -p "$folder"
gh run download "$RUN_ID" --repo "$GITHUB_REPOSITORY" --name arena-submission --dir "$folder/artifact"
number=$(head -c 12 "$folder/artifact/number" | tr -cd '0-9')
if [ -z "$number" ] || [ "$(gh api "repos/$GITHUB_REPOSITORY/pulls/$number" --jq .head.sha)" != "$HEAD_SHA" ]; then
  echo "::warning::the artifact is not that of a pull request at this commit; no comment is written"
  exit 0
fi
others=$(gh api --paginate "repos/$GITHUB_REPOSITORY/pulls/$number/files" --jq '.[].filename' | grep -vc '^submissions/' || true)
{
  if [ "$others" != 0 ]; then
    echo "> **Read the change first:** it touches $others files outside \`submissions/\`."
    echo
  fi
  echo "> What follows was written on a machine that ran the submitted code: read that code before you trust it."
  echo
  head -c 60000 "$folder/artifact/comment.md"
} > "$folder/comment.md"
export COMMENT_FOLDER="$folder" COMMENT_MARKER="arena submission" PULL_REQUEST="$number"
exec bash "$(dirname -- "${BASH_SOURCE[0]}")/../compare/comment.sh"
