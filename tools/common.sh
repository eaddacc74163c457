# shellcheck shell=bash
# What the scripts here share. They run in the root of the source tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Runs something as a step with a name, and says how long it took.
step() {
  local name=$1 begin=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - begin))
}

# Installs the Debian packages of a list in tools/needs. A machine that has them is left alone.
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
