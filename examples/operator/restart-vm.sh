#!/usr/bin/env bash
# Restarts or redeploys a VM through the operator API, and waits for the end. Needs curl and jq.
#
#   restart-vm.sh restart|redeploy VM
#
# VM is an id, or a unique suffix of the VM's path. The service is at NOTBEFORE_OPERATOR (default
# http://127.0.0.1:9255); NOTBEFORE_TOKEN_FILE names the file with the token; a tenant's token is enough.
set -euo pipefail
case $#:${1-} in 2:restart | 2:redeploy) ;; *) echo 'restart-vm.sh restart|redeploy VM' >&2; exit 2 ;; esac
verb=$1 vm=$2
operator=${NOTBEFORE_OPERATOR:-http://127.0.0.1:9255}
token_file=${NOTBEFORE_TOKEN_FILE:-notbefore-data/operator.token}

# Sends a request and stores the response in $operation. The token goes to curl on standard input, so that no process
# list shows it.
ask() {
  local answer status
  answer=$(curl --silent --show-error --max-time 60 --write-out '\n%{http_code}' --header @- "$@" \
    <<<"Authorization: Bearer $(tr -d '[:space:]' <"$token_file")") || true
  status=${answer##*$'\n'} operation=${answer%$'\n'*}
  case $status in
    2??) ;;
    4??) echo "$verb of $vm: $operation" >&2; exit 1 ;; # A refusal is final.
    *) return 1 ;;                                     # No answer, and "not now" (503), are worth another try.
  esac
}

# The idempotency key makes retries safe: they return the result of the first request.
key=$(cat /proc/sys/kernel/random/uuid)
path=/v1/vms/$(jq --null-input --raw-output --arg vm "$vm" '$vm | @uri')/$verb
tries=5
until ask --request POST --header "Idempotency-Key: $key" "$operator$path"; do
  tries=$((tries - 1))
  if [ $tries -eq 0 ]; then echo "$verb of $vm: ${operation:-no answer}" >&2; exit 1; fi
  sleep 1
done
id=$(jq --raw-output .id <<<"$operation")
jq --raw-output '.targets[0] as $part |
  "\(.cause) of \($part.resources[0].name), event \($part.event), not before \(.not_before // "now")"' <<<"$operation"

# Until the guest approves or NotBefore is reached, and the event has ended.
until [ "$(jq --raw-output .state <<<"$operation" 2>/dev/null)" = closed ]; do
  sleep 1
  ask "$operator/v1/operations/$id" || echo "asking again: ${operation:-no answer}" >&2
done
if [ "$(jq .cancelled <<<"$operation")" = true ]; then echo "the operation was cancelled" >&2; exit 1; fi
echo "done"
