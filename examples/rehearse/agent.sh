#!/bin/sh
# The agent as the handler of a rehearsal: it reports to the rehearsal when it drains and restores.
#
#   notbefore rehearse user-reboot --drained call --restored call -- examples/rehearse/agent.sh
set -eu
# The agent keeps the commands of an event over a restart, and the rehearsal's hook is another one then.
cat >"$NOTBEFORE_STATE/report" <<SH
#!/bin/sh
exec curl --silent --fail --noproxy '*' "$NOTBEFORE_HOOK/\$1"
SH
chmod +x "$NOTBEFORE_STATE/report"
cat >"$NOTBEFORE_STATE/agent.toml" <<TOML
[[rule]]
name = "drain"
# Drains on the advice to rebalance, too, and stays drained if an eviction follows.
advisory = true

[[rule.before]]
command = ["$NOTBEFORE_STATE/report", "drained"]
timeout = "10s"

[[rule.after]]
command = ["$NOTBEFORE_STATE/report", "restored"]
timeout = "10s"
TOML
exec notbefore agent run --config "$NOTBEFORE_STATE/agent.toml" --state "$NOTBEFORE_STATE" --listen none
