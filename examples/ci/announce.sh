#!/bin/sh
# Announces events to the VM web-0, one after the other, and fails if its handler does not approve one of them.
# Usage: announce.sh COMMAND…, where COMMAND runs notbefore in the container: docker exec ID notbefore
set -eu
for type in freeze reboot redeploy; do
  operation=$("$@" event schedule --type "$type" web-0 --output json | jq -r .id)
  "$@" operation wait "$operation" --timeout 60s >/dev/null
  outcome=$("$@" event history --newest --limit 1 --output json |
    jq -r '.[0] | "\(.type) \(.status) approved=\(.approved)"')
  echo "$outcome"
  case $outcome in *" Completed approved=true") ;; *) exit 1 ;; esac
done
