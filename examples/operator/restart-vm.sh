#!/usr/bin/env bash
# Restarts or redeploys a VM through the operator API, and waits until that is over. Needs curl and jq.
#
#   restart-vm.sh restart|redeploy VM
#
# VM is an id, or as much of the end of the VM's path as tells it from others. The service is at NOTBEFORE_OPERATOR
# (default http://127.0.0.1:9255); a tenant's token will do, and stands in the file that NOTBEFORE_TOKEN_FILE names.
set -euo pipefail
case ${1-} in restart | redeploy) ;; *) echo 'restart-vm.sh restart|redeploy VM' >&2; exit 2 ;; esac
verb=$1 vm=$(jq --null-input --raw-output --arg vm "$2" '$vm | @uri')
operator=${NOTBEFORE_OPERATOR:-http://127.0.0.1:9255}
token_file=${NOTBEFORE_TOKEN_FILE:-notbefore-data/operator.token}

# The token goes to curl on standard input, where no list of processes shows it.
ask() {
  curl --silent --show-error --fail-with-body --max-time 60 --header @- "$@" \
    <<<"Authorization: Bearer $(tr -d '[:space:]' <"$token_file")"
}

# With a key, asking again cannot restart the VM twice: whatever became of the first request is what is answered.
key=$(cat /proc/sys/kernel/random/uuid)
for try in 1 2 3 4 5; do
  operation=$(ask --request POST --header "Idempotency-Key: $key" "$operator/v1/vms/$vm/$verb") && break
  # A refusal is final; no answer, and "not now" (503), are worth another try.
  status=$(jq .status <<<"$operation" 2>/dev/null) || status=''
  if [ "$try" -eq 5 ] || [ "${status:-503}" != 503 ]; then
    echo "$verb of $2: ${operation:-no answer}" >&2
    exit 1
  fi
  sleep 1
done
id=$(jq --raw-output .id <<<"$operation")
jq --raw-output '.targets[0] as $part |
  "\(.cause) of \($part.resources[0].name), event \($part.event), not before \(.not_before // "now")"' <<<"$operation"

# Until the guest has approved or NotBefore has come, and the event has ended.
until [ "$(jq --raw-output .state <<<"$operation")" = closed ]; do
  sleep 1
  operation=$(ask "$operator/v1/operations/$id") || operation='{}'
done
if [ "$(jq .cancelled <<<"$operation")" = true ]; then echo "called off" >&2; exit 1; fi
echo "done"
