#!/usr/bin/env bash
# Writes the table into the comment of this job, which is found by its marker; a first run makes the comment.
# COMMENT_FOLDER and COMMENT_MARKER are those of another table.
# A pull request of a fork has a token that may only read: then the summary has to do.
set -euo pipefail
work="${COMMENT_FOLDER:-$PWD/.multilab-compare}"
if [ ! -f "$work/comment.md" ]; then exit 0; fi
marker="<!-- multilab ${COMMENT_MARKER:-compare: ${JOB:-}} -->"
{ echo "$marker"; cat "$work/comment.md"; } > "$work/body.md"
comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
export marker
if ! mine=$(gh api --paginate "$comments" \
  --jq '.[] | select(.user.type == "Bot" and (.body | startswith(env.marker))) | .id'); then
  echo "::notice::the comments cannot be read; the table is in the summary"
  exit 0
fi
id=$(head -n 1 <<< "$mine")
if [ -n "$id" ]; then
  request=(--method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id")
else
  request=(--method POST "$comments")
fi
gh api "${request[@]}" -F "body=@$work/body.md" > /dev/null ||
  echo "::notice::no permission to write a comment; the table is in the summary"
