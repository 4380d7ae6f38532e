#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM FILE.test: runs the commands of a test file in a fresh folder and compares.
#
# A test file is lines of `key: value`; blank lines and lines that start with # are skipped.
#   cmd: COMMAND           a shell command, in which `shardwright` is the program under test and
#                          $GOLDEN the folder of checkpoints; later lines are about its result
#   exit: N                its exit status, 0 where not said
#   stdout: TEXT           TEXT is a part of standard output (also stderr:)
#   stdout!: TEXT          TEXT is not (also stderr!:)
#   stdout=:               standard output is empty (also stderr=:)
set -euo pipefail

program=$(realpath "$1")
script=$(realpath "$2")
GOLDEN=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../golden")
export GOLDEN
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/cwd"
ln -s "$program" "$work/bin/shardwright"
export PATH="$work/bin:$PATH" LC_ALL=C.UTF-8 LANG=C.UTF-8 NO_COLOR=1

failures=0 commands=0 command='' expected=0 status=0 line_number=0

complain() {
  failures=$((failures + 1))
  printf '%s:%d: %s\n' "$script" "$line_number" "$1"
}

run_command() {
  status=0
  (cd "$work/cwd" && exec bash -euo pipefail -c "$command") \
    >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
  commands=$((commands + 1))
}

# The exit status is judged once all lines about the command are read.
close_command() {
  [[ -n $command ]] || return 0
  ((status == expected)) || complain "exit status $status, expected $expected: $command"
  if ((failures)); then
    printf -- '--- stdout of: %s\n' "$command"
    cat "$work/stdout"
    printf -- '--- stderr\n'
    cat "$work/stderr"
  fi
}

check_text() {
  local key=$1 text=$2 stream=${1%[=\!]}
  case $key in
    *!) ! grep -qF -- "$text" "$work/$stream" || complain "$stream has: $text" ;;
    *=) [[ -z $text && ! -s $work/$stream ]] || complain "$stream is not empty" ;;
    *) grep -qF -- "$text" "$work/$stream" || complain "$stream lacks: $text" ;;
  esac
}

while IFS= read -r line || [[ -n $line ]]; do
  line_number=$((line_number + 1))
  [[ -z $line || $line == '#'* ]] && continue
  key=${line%%:*} value=${line#*:}
  value=${value# }
  if [[ $key != cmd && -z $command ]]; then
    complain "'$key' before any 'cmd'"
    break
  fi
  case $key in
    cmd)
      close_command
      ((failures)) && break
      command=$value expected=0
      run_command
      ;;
    exit) expected=$value ;;
    stdout | stderr | stdout! | stderr!)
      [[ -n $value ]] || complain "'$key' without a text"
      check_text "$key" "$value"
      ;;
    stdout= | stderr=) check_text "$key" "$value" ;;
    *) complain "unknown key '$key'" ;;
  esac
done <"$script"
close_command
((commands)) || complain "no 'cmd' in the file"
((failures == 0))
