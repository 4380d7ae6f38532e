#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Planted test files, each with the verdict that run.sh must give. The program under test is `echo`.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0

# verdict pass|fail NAME, the test file on standard input.
verdict() {
  local expected=$1 name=$2 got=pass
  cat >"$work/$name.test"
  "$here/run.sh" /bin/echo "$work/$name.test" >"$work/log" 2>&1 || got=fail
  if [[ $got != "$expected" ]]; then
    wrong=$((wrong + 1))
    echo "$name: $got, expected $expected"
    cat "$work/log"
  fi
}

verdict pass plain <<<$'cmd: shardwright a b\nstdout: a b\nstdout!: c\nstderr=:'
verdict pass several <<<$'# twice\ncmd: shardwright a > f\nstdout=:\n\ncmd: cat f\nstdout: a'
verdict pass status <<<$'cmd: exit 3\nexit: 3'
verdict pass golden <<<$'cmd: test -d "$GOLDEN"'
verdict fail wrong_status <<<$'cmd: exit 3\nexit: 2'
verdict fail unexpected_status <<<'cmd: false'
verdict fail first_of_two <<<$'cmd: false\ncmd: true'
verdict fail missing_text <<<$'cmd: shardwright a\nstdout: b'
verdict fail wrong_stream <<<$'cmd: shardwright a\nstderr: a'
verdict fail forbidden_text <<<$'cmd: shardwright a\nstdout!: a'
verdict fail not_empty <<<$'cmd: shardwright a\nstdout=:'
verdict fail empty_text <<<$'cmd: shardwright a\nstdout:'
verdict fail unknown_key <<<$'cmd: true\nstdrr: a'
verdict fail no_command <<<'# nothing'
verdict fail text_before_command <<<'stdout: a'
((wrong == 0)) && echo "the runner tells good from bad"
