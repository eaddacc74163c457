# The guide's sections about TLS and backups, with the files of dist/: from nothing to a cluster, certificates renewed
# while all processes run, and both kinds of backup restored.
install_cluster
await typed a tls-etcdctl tls-health
typed a tls-etcdctl tls-rights
for name in "${nodes[@]}"; do start_node "$name"; done
await_nodes
led_first=$(basename "$(dirname "$(dirname "$(dirname "$(dirname "$(dirname $place/*/root/var/lib/notbefore/operator.token)")")")")")
status() { typed "$led_first" tls-status; }
await status
await through a cluster status
# A node that was slow for some seconds is a problem, which is another exit code.
follower=$( (through a cluster status --output json || true) | jq -r '[.nodes[] | select(.leads | not)][0].name')

echo '== an event through a follower'
machine guest
connect guest nodes eth0 10.9.0.50/24
through "$follower" vm add web-0 --address 10.9.0.50
document() { # NODE
  on guest curl -sS --fail -H Metadata:true "http://${address[$1]}/metadata/scheduledevents?api-version=2020-07-01"
}
for name in "${nodes[@]}"; do await document "$name"; done
event=$(through "$follower" event schedule --type freeze web-0 --output json | jq -r '.targets[0].event | ascii_upcase')
shows() { document "$1" | grep -q "$2"; }
for name in "${nodes[@]}"; do await shows "$name" "$event"; done

echo '== no certificate, or one of another authority'
accepted() { # MACHINE PORT ARGUMENT...
  local machine=$1 port=$2
  shift 2
  on "$machine" curl -q -sS -o /dev/null -m 5 --insecure "$@" "https://10.9.0.1:$port/"
}
certificate() { echo --cert "/root/certificates/a/notbefore/$1.pem" --key "/root/certificates/a/notbefore/$1.key"; }
for port in 2379 9256; do not accepted guest $port; done
# shellcheck disable=SC2046
{
  not accepted a 2379 $(certificate node)
  not accepted a 9256 $(certificate etcd-client)
  accepted a 2379 $(certificate etcd-client)
  accepted a 9256 $(certificate node)
}

echo '== renewed certificates, without a restart'
serial() { # MACHINE PORT: of the certificate that is shown
  on a openssl s_client -connect "${address[$1]}:$2" -cert /root/certificates/root.pem -key /root/certificates/root.key \
    </dev/null 2>/dev/null | openssl x509 -noout -serial
}
file_serial() { openssl x509 -noout -serial -in "$place/a/root/root/certificates/$1.pem"; }
before="${pids[*]}" old=$(serial a 2379)
typed a tls-certificates
for name in "${nodes[@]}"; do
  install_certificates "$name"
  kill -HUP "${pids[$name-node]}"
done
is_renewed() { [ "$(serial "$1" "$2")" = "$(file_serial "$3")" ]; }
for name in "${nodes[@]}"; do
  await is_renewed "$name" 2379 "$name/etcd/member"
  await is_renewed "$name" 9255 "$name/notbefore/operator"
  await is_renewed "$name" 9256 "$name/notbefore/node"
done
[ "$(serial a 2379)" != "$old" ]
# New connections between all: the followers' to a new leader.
await through a cluster hand-over --yes
await_nodes
for name in "${nodes[@]}"; do through "$name" vm add "renewed-$name"; done
[ "$before" = "${pids[*]}" ]
kill -0 "${pids[@]}"

echo '== an export restored'
typed "$led_first" backup-export
pages=root/usr/share/doc/notbefore
[ "$led_first" = a ] || cp "$place/$led_first/$pages/backup.jsonl" $place/a/$pages/
typed a tls-etcdctl backup-snapshot
through a vm add lost
for name in "${nodes[@]}"; do stop "$name" node TERM; done
typed a tls-etcdctl restore-export
for name in "${nodes[@]}"; do start_node "$name"; done
await_nodes
vms() { through "$1" vm list --output name; }
check_restored() {
  local name
  for name in "${nodes[@]}"; do
    vms "$name" | grep -q renewed-c
    not eval "vms $name | grep -q lost"
    shows "$name" "$event"
  done
}
check_restored
typed a move-to-data

echo '== a snapshot restored'
through a vm add lost
for name in "${nodes[@]}"; do stop "$name" etcd KILL; done
for name in "${nodes[@]}"; do
  [ "$name" = a ] || cp $place/a/$pages/backup.db "$place/$name/$pages/"
  typed "$name" restore-snapshot
  start_etcd "$name"
done
# systemd starts a node again that ends with an error; its log says why it has ended.
for name in "${nodes[@]}"; do
  not wait "${pids[$name-node]}"
  grep -q 'this node ends: start it again' "$name-node.log"
  start_node "$name"
done
await_nodes
check_restored
echo '== done'
