# shellcheck shell=bash
# Shared functions of the scripts in tools/. The scripts run in the root of the source tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Sets 'cpu': seconds that the ended children of this shell have used, user and system.
count_cpu() {
  local fields
  # Behind the name in parentheses: the 14th and 15th, in ticks.
  fields=$(<"/proc/$$/stat")
  read -ra fields <<<"${fields##*) }"
  cpu=$(((fields[13] + fields[14]) / $(getconf CLK_TCK)))
}
# Runs a command as a named step and prints its duration, and the CPU time that it and its children have used.
step() {
  local name=$1 begin=$SECONDS cpu before
  shift
  count_cpu
  before=$cpu
  printf '\n== %s\n' "$name"
  "$@"
  count_cpu
  printf '== %s: %d s, %d s of CPU\n' "$name" $((SECONDS - begin)) $((cpu - before))
}

# Checks and compiles handlers and types of the operator API with utoipa, and runs the tests of its description.
described() {
  local plain=() package tests listed
  for package in notbefore-service notbefore-wire; do plain+=(--config "profile.dev.package.$package.opt-level=0"); done
  cargo clippy --locked "${plain[@]}" -p notbefore-service --features describe --all-targets --quiet -- -D warnings
  tests=(cargo test --locked "${plain[@]}" -p notbefore-service --features describe --lib --quiet -- openapi::describe)
  # cargo is content with a name that no test has.
  listed=$("${tests[@]}" --list)
  if [[ "$listed" != *': test'* ]]; then
    echo "dev: no test of notbefore-service has openapi::describe in its path; correct 'described' in tools/common.sh" >&2
    return 1
  fi
  "${tests[@]}"
}

# Installs the missing Debian packages of a list in tools/needs.
packages() {
  local missing=() package as_root=()
  while read -r package _; do
    case "$package" in '' | '#'*) continue ;; esac
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done <"tools/needs/$1.txt"
  [ ${#missing[@]} -eq 0 ] && return
  echo "installing: ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs the packages that check and test the console, if they do not match the list.
node_packages() {
  local list=tools/console/package-lock.json place=target/tests-node
  packages console
  # Debian has npm apart from nodejs, other packages of nodejs contain it.
  command -v npm >/dev/null || packages npm
  cmp -s "$list" "$place/installed.json" && return
  mkdir -p "$place"
  cp tools/console/package.json "$list" "$place/"
  npm --prefix "$place" ci --silent --ignore-scripts --no-audit --no-fund
  cp "$list" "$place/installed.json"
}
