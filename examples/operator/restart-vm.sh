#!/usr/bin/env bash
# Restarts or redeploys a VM through the operator API, and waits until that is over. Needs curl and jq.
#
#   restart-vm.sh restart|redeploy VM
#
# VM is an id, or as much of the end of the VM's path as tells it from others. The service is at NOTBEFORE_OPERATOR
# (default http://127.0.0.1:9255); a tenant's token will do, and stands in the file that NOTBEFORE_TOKEN_FILE names.
set -euo pipefail
case $#:${1-} in 2:restart | 2:redeploy) ;; *) echo 'restart-vm.sh restart|redeploy VM' >&2; exit 2 ;; esac
verb=$1 vm=$2
operator=${NOTBEFORE_OPERATOR:-http://127.0.0.1:9255}
token_file=${NOTBEFORE_TOKEN_FILE:-notbefore-data/operator.token}

# Asks, and leaves what was answered in $operation. The token goes to curl on standard input, where no list of
# processes shows it.
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

# With a key, asking again cannot restart the VM twice: whatever became of the first request is what is answered.
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

# Until the guest has approved or NotBefore has come, and the event has ended.
until [ "$(jq --raw-output .state <<<"$operation" 2>/dev/null)" = closed ]; do
  sleep 1
  ask "$operator/v1/operations/$id" || echo "asking again: ${operation:-no answer}" >&2
done
if [ "$(jq .cancelled <<<"$operation")" = true ]; then echo "called off" >&2; exit 1; fi
echo "done"
