#!/usr/bin/env bash
# Polls Scheduled Events once a second, prints every change, and approves events of this VM. Needs curl and jq.
#
#   watch-events.sh [--endpoint URL] [--api-version VERSION] [--name VM] [--once] [--yes]
#
# It asks before it approves; --yes approves without asking, --once polls once and exits (with 1 if the document or
# this VM's name is unavailable).
set -euo pipefail

endpoint=http://169.254.169.254 version=2020-07-01 name='' once=false yes=false
while [ $# -gt 0 ]; do
  case $1 in
    --endpoint) endpoint=${2%/}; shift 2 ;;
    --api-version) version=$2; shift 2 ;;
    --name) name=$2; shift 2 ;;
    --once) once=true; shift ;;
    --yes) yes=true; shift ;;
    *) echo "watch-events.sh: there is no '$1'" >&2; exit 2 ;;
  esac
done
url="$endpoint/metadata/scheduledevents?api-version=$version"

# The endpoint is never behind a proxy, and the first response may take two minutes.
ask() { curl --silent --show-error --noproxy '*' --max-time 120 --header 'Metadata: true' "$@"; }

# A document has a list of events. Anything else, also an empty response, is an error and not "no events". The service
# has been seen to send raw line breaks in texts, which JSON does not allow.
read_document() {
  document=$(ask --fail "$url" | tr '\n\r\t' ' ') &&
    jq --slurp --exit-status 'length == 1 and (.[0].Events | type == "array")' >/dev/null 2>&1 <<<"$document"
}

# One line per event: id, status, type, NotBefore, names; '-' for a missing field. Names are last because 'read' skips
# an empty field elsewhere; at 2017-03-01 they start with a '_'.
list_events() {
  jq --raw-output --arg version "$version" '
    def text: if type == "string" or type == "number" then tostring else "" end;
    def or_dash: text | if . == "" then "-" else . end;
    .Events[] | (objects // {}) | [
      (.EventId, .EventStatus, .EventType, .NotBefore | or_dash),
      (.Resources | if type == "array" then . else [.] end
        | map(text | if $version == "2017-03-01" then ltrimstr("_") else . end) | join(","))
    ] | @tsv' <<<"$document"
}

# "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z"; blank once it has started. The weekday may be wrong.
# Other formats are shown verbatim: nothing depends on them.
utc() { if [ "$1" = - ]; then echo -; else date --utc --date "${1#*, }" +%FT%TZ 2>/dev/null || echo "$1"; fi; }

# One event per request: if one of several is refused, all are.
approve() {
  local status
  status=$(ask --output /dev/null --write-out '%{http_code}' \
    --data "$(jq --null-input --compact-output --arg id "$1" '{StartRequests: [{EventId: $id}]}')" "$url") || return
  case $status in
    200) echo "approved $1" ;;
    400) echo "not approved $1: refused" >&2 ;;
    *) echo "not approved $1: answered $status" >&2; return 1 ;;
  esac
}

# Resources hold the platform's name of the VM. The host name may differ and may be another VM's name. So the name is
# requested until it is known, two seconds at a time, so that polls continue.
learn_name() {
  [ -z "$name" ] || return 0
  name=$(ask --fail --max-time 2 \
    "$endpoint/metadata/instance/compute/name?api-version=2021-02-01&format=text") || name=''
  [ -n "$name" ] && return
  echo "$endpoint does not say what this VM is called; until it does, or --name says it, nothing is approved" >&2
  return 1
}

# Whether an event with these names is for this VM.
whose() {
  if [ -z "$name" ]; then echo unknown; elif [[ ",${1,,}," == *",${name,,},"* ]]; then echo mine; else echo others; fi
}

shown='' settled=' '
while true; do
  failed=false
  learn_name || failed=true
  if read_document; then
    incarnation=$(jq --raw-output .DocumentIncarnation <<<"$document")
    is_new=true
    [ "$name $document" != "$shown" ] || is_new=false
    shown="$name $document"
    if $is_new && [ "$(jq '.Events | length' <<<"$document")" -eq 0 ]; then echo "$incarnation nothing"; fi
    while IFS=$'\t' read -r -u 3 id status type not_before resources; do
      whose=$(whose "$resources")
      if $is_new; then echo "$incarnation $id $status $type $resources $(utc "$not_before") $whose"; fi
      [[ $whose = mine && $status = Scheduled && $id != - && $settled != *" $id "* ]] || continue
      answer=y
      $yes || read -r -p "approve the $type $id? [y/N] " answer || answer=n
      case $answer in
        y | Y) approve "$id" && settled+="$id " ;; # otherwise retried with the next poll
        *) settled+="$id " ;;
      esac
    done 3< <(list_events)
  else
    echo "no document from $url" >&2
    failed=true
  fi
  if $once; then
    if $failed; then exit 1; else exit 0; fi
  fi
  sleep 1
done
