#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_page.sh PAGE.md: does what a document shows, in the current folder.
#
#   ```json NAME   the block becomes the file NAME
#   ```console     each line after `$ ` is run; the lines below it are what it prints. A command
#                  without any is run for its effect: its exit status must be 0
set -euo pipefail

block='' command='' expected='' ran=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT

run_command() {
  [[ -n $command ]] || return 0
  local status=0
  bash -euo pipefail -c "$command" >"$output" 2>&1 || status=$?
  ran=$((ran + 1))
  if [[ -z $expected ]]; then
    ((status == 0)) || { echo "exit status $status: $command"; cat "$output"; exit 1; }
  else
    diff <(printf '%s' "$expected") "$output" || { echo "printed something else: $command"; exit 1; }
  fi
  command='' expected=''
}

while IFS= read -r line || [[ -n $line ]]; do
  case $block:$line in
    ':```json '*) block=${line#*json } && : >"$block" ;;
    ':```console') block=console ;;
    *':```') run_command && block='' ;;
    'console:$ '*) run_command && command=${line#'$ '} ;;
    console:*) expected+=$line$'\n' ;;
    :*) ;;
    *) printf '%s\n' "$line" >>"$block" ;;
  esac
done <"$1"
((ran)) || { echo "$1: shows no command"; exit 1; }
