#!/usr/bin/env bash
# Verifies what a pull request adds or changes in submissions/, with the code of the target branch. The change is in
# `change`; nothing of it is executed but by `multilab arena verify`. Writes .multilab-arena/{comment.md,number}.
set -uo pipefail
work="$PWD/.multilab-arena"
rm -rf "$work" && mkdir -p "$work"
printf '%s\n' "$PULL_REQUEST" > "$work/number"
code=0 count=0
shopt -s nullglob
for entry in change/submissions/*; do
  name=$(basename -- "$entry")
  if [ "$name" = README.md ]; then continue; fi
  if [ -e "submissions/$name" ] && diff -rq -- "submissions/$name" "$entry" > /dev/null; then continue; fi
  count=$((count + 1))
  rm -f "$work/part.md"
  if [ -L "$entry" ]; then
    line="a link is no submission"
    status=2
  elif [[ "$name" == *.verified.json ]] || [ -e "$entry/verified.json" ] || [ -L "$entry/verified.json" ]; then
    line="a stamp is written by a verification, not submitted"
    status=2
  else
    multilab arena verify "$entry" "sample=$SAMPLE" "seed=$SEED" "markdown=$work/part.md" \
      "stamp=$work/$count.verified.json" > "$work/log.txt" 2>&1
    status=$?
    cat "$work/log.txt"
    line=$(tail -n 1 "$work/log.txt" | tr -cd '[:print:]' | tr -d '`' | cut -c 1-300)
  fi
  if [ "$status" -gt "$code" ]; then code=$status; fi
  if [ "$status" -le 1 ] && [ -f "$work/part.md" ]; then
    cat "$work/part.md" >> "$work/comment.md"
  else
    # shellcheck disable=SC2016 # the backticks are Markdown
    printf '### Arena: **not a valid submission**\n\n`%s`\n\n' "$line" >> "$work/comment.md"
  fi
done
if [ "$count" -eq 0 ]; then echo "nothing in submissions/ is new" | tee "$work/comment.md"; fi
cat "$work/comment.md" >> "$GITHUB_STEP_SUMMARY"
exit "$code"
