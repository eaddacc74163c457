# shellcheck shell=bash
# Shared functions of the scripts in tools/. The scripts run in the root of the source tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Runs a command as a named step and prints its duration.
step() {
  local name=$1 begin=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - begin))
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
