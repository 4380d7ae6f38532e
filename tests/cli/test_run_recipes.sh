#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_recipes.py must be able to fail: test_run_recipes.sh SHARDWRIGHT GOLDEN
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect STATUS TEXT: the page on standard input ends so, and says so.
expect() {
  local status=0 output
  cat >"$folder/page.md"
  output=$(python3 "$(dirname "$0")/run_recipes.py" "$shardwright" "$golden" "$folder/page.md") || status=$?
  [[ $status == "$1" && $output == *"$2"* ]] ||
    { echo "exit status $status, expected $1 and '$2' in: $output"; exit 1; }
}
shardwright=$1 golden=$2

expect 0 '1 pages, 0 failed' <<'PAGE'
```sh
shardwright inspect Llama-3.1-8B/ >/dev/null
touch made
```
```text
false
```
```sh
test -e made
```
PAGE
expect 1 'exit status 2' <<'PAGE'
```sh
shardwright inspect No-Such-Model/
true
```
PAGE
expect 1 'exit status 1' <<'PAGE'
```sh
false | true
```
PAGE
expect 1 'shows no command' <<'PAGE'
```text
true
```
PAGE

expect 0 '1 pages, 0 failed' <<'PAGE'
```sh
printf '%s\n' 'first' 'note: a' 'note: b' 'second  1 of 12.5 MiB' \
  'copying   7 %  1.20 GB of 2.40 GB  0.60 GB/s' 'third'
```
```output
first
…
second 1 of 13 MiB
th…
```
```output
$ echo one; echo two
two
```
PAGE
expect 1 'was not printed so' <<'PAGE'
```sh
printf '%s\n' 'first' 'note: a' 'second 1'
```
```output
first
second 1
```
PAGE
expect 1 'was not printed so' <<'PAGE'
```sh
printf '%s\n' 'first 1'
```
```output
first 2
```
PAGE
