#!/bin/sh
# Pacemaker's agent for Scheduled Events (Debian: resource-agents) as the handler of a rehearsal, as root:
#
#   notbefore rehearse user-reboot --netns --repeat 2s --polls-every 15s --drained call --restored call \
#     -- tools/handlers/azure-events-az.sh STANDINS
#
# STANDINS has the programs crm_attribute, crm_node, crm_resource and crm_simulate, which keep attributes as files.
# The agent takes the host name for the VM's name. It drains by the attribute #health-azure.
set -eu
standins=$1 cluster=$NOTBEFORE_STATE
if [ "${2:-}" != inside ]; then exec unshare --uts sh "$0" "$standins" inside; fi
hostname "$NOTBEFORE_VM"
printf '1 %s member\n2 other member\n' "$NOTBEFORE_VM" >"$cluster/nodes"
echo 'database (ocf:heartbeat:pgsql): Started: database_start_0 (node=here, call=1, rc=0): complete' >"$cluster/operations"
health="$cluster/$NOTBEFORE_VM/#health-azure"
before=$(cat "$health" 2>/dev/null || echo 0)
PATH=$standins:$PATH CRM_STANDINS=$cluster OCF_ROOT=/usr/lib/ocf OCF_RESOURCE_INSTANCE=events \
  OCF_RESKEY_CRM_meta_interval=10000 HA_LOGFILE=$cluster/agent.log PYTHONDONTWRITEBYTECODE=1 \
  /usr/lib/ocf/resource.d/heartbeat/azure-events-az monitor
after=$(cat "$health" 2>/dev/null || echo 0)
if [ "$before" != "$after" ]; then
  if [ "$after" = -1000000 ]; then marker=drained; else marker=restored; fi
  curl --silent --fail --noproxy '*' "$NOTBEFORE_HOOK/$marker"
fi
