# The ways to a living node, with the files of dist/: HAProxy on a hypervisor, keepalived, and ExaBGP with BIRD. A node is
# killed and started again, and guests are answered all the time, or soon again.
ip link add guests type bridge
ip link set guests up
install_cluster
secret=0123456789abcdef0123456789abcdef
number=0
for name in "${nodes[@]}"; do
  number=$((number + 1))
  connect "$name" guests br0 "10.0.0.$number/24"
  # The way back to guests behind the router.
  ip -n "$name" route add 10.0.2.0/24 via 10.9.0.254
  typed "$name" vrrp-bind >/dev/null
  echo $secret >"$place/$name/root/run/proxy.secret"
  chmod 644 "$place/$name/root/run/proxy.secret"
done
start_listening() { # NODE: with the settings that the page names
  start_node "$1" "NOTBEFORE_GUEST_LISTEN=${address[$1]}:80,169.254.169.254:80" NOTBEFORE_PROXY_ADDRESSES=10.9.0.4 \
    NOTBEFORE_PROXY_SECRET_FILE=/run/proxy.secret
}
for name in "${nodes[@]}"; do start_listening "$name"; done
await_nodes
through b vm add web-0 --address 10.0.0.4
through b vm add web-1
through b vm add web-2 --address 10.0.2.4
ID=$(through b vm show web-1 --output json | jq -r .id)

guest() { # NAME ADDRESS: a guest with a cable to a machine or bridge, whose end is $1-port
  ip netns add "$1"
  ip -n "$1" link set lo up
  ip link add "$1-port" type veth peer name eth0 netns "$1"
  ip -n "$1" addr add "$2/24" dev eth0
  ip -n "$1" link set eth0 up
}
asks() { # GUEST: prints the VM's name
  ip netns exec "$1" curl -q -sS --fail -m 4 -H Metadata:true \
    "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text"
}
is() { [ "$(asks "$1")" = "$2" ]; }

# VRRP: the guest is on the nodes' bridge.
guest vrrp 10.0.0.4
ip link set vrrp-port master guests up
ip -n vrrp route add 169.254.169.254 dev eth0
priority=100
for name in "${nodes[@]}"; do
  sed "s/10[.]9[.]0[.]1/SELF/g; s/${address[$name]//./[.]}/10.9.0.1/g; s/SELF/${address[$name]}/g; s/router_id a/router_id $name/; s/priority 100/priority $priority/" \
    "$dist/cluster/keepalived.conf" >"$place/$name/root/etc/keepalived/keepalived.conf"
  priority=$((priority - 10))
  start "$name" keepalived /usr/sbin/keepalived --dont-fork --log-console --vrrp
done

# A proxy on the hypervisor, whose guest has the same address as another one.
machine hypervisor
address[hypervisor]=10.9.0.4
connect hypervisor nodes eth0 10.9.0.4/24
guest proxied 10.0.0.4
ip link set proxied-port netns hypervisor name br0
ip -n hypervisor addr add 10.0.0.1/24 dev br0
ip -n hypervisor addr add 169.254.169.254/32 dev br0
ip -n hypervisor link set br0 up
ip -n proxied route add default via 10.0.0.1
mkdir $place/hypervisor/root/root/certificates
cp $place/a/root/root/certificates/operator-ca.pem $place/hypervisor/root/root/certificates/
echo $secret >$place/hypervisor/root/root/proxy.secret
typed hypervisor proxy-install
start hypervisor haproxy env -C /root bash -euc "$(page proxy-run)"

# Anycast: the guest is behind a router. All nodes announce the address, which they get later.
machine router
connect router nodes eth0 10.9.0.254/24
guest routed 10.0.2.4
ip link set routed-port netns router name lan
ip -n router addr add 10.0.2.1/24 dev lan
ip -n router link set lan up
ip -n routed route add default via 10.0.2.1
on router sysctl -q -w net.ipv4.ip_forward=1
cp "$dist/cluster/bird.conf" $place/router/root/etc/bird/bird.conf
mkdir $place/router/root/run/bird
start router bird bird -f -c /etc/bird/bird.conf
for name in "${nodes[@]}"; do
  sed "s/10[.]9[.]0[.]1/${address[$name]}/g" "$dist/cluster/exabgp.conf" >"$place/$name/root/etc/exabgp/exabgp.conf"
  on "$name" install -d -o exabgp /run/exabgp
  on "$name" mkfifo -m 666 /run/exabgp/exabgp.in /run/exabgp/exabgp.out
  start "$name" exabgp setpriv --reuid exabgp --regid exabgp --clear-groups env exabgp_daemon_daemonize=false \
    /usr/sbin/exabgp /etc/exabgp/exabgp.conf
done

has_address() { ip -n "$1" addr show dev br0 | grep -q 169.254.169.254; }
await has_address a
await is vrrp web-0
await is proxied web-1
next_hops() { ip -n router route show 169.254.169.254 | grep -o 'via [0-9.]*' | cut -d ' ' -f 2 | sort | tr '\n' ' '; }
leads_to() { [ "$(next_hops)" = "$1" ]; }
# Whether the router has a route of this node, used or not.
announces() { on router birdc show route protocol "$1" | grep -q 169.254.169.254; }
await leads_to '10.9.0.1 10.9.0.2 10.9.0.3 '

echo '== a node is killed, and started again'
stop a node KILL
# Round robin: some requests meet the killed node first.
for _ in 1 2 3 4 5 6; do is proxied web-1; done
await has_address b
not has_address a
await is vrrp web-0
await leads_to '10.9.0.2 10.9.0.3 '
start_listening a
await_nodes
await has_address a
await not has_address b
await is vrrp web-0
is proxied web-1
await leads_to '10.9.0.1 10.9.0.2 10.9.0.3 '

echo '== anycast: a node is killed'
for name in "${nodes[@]}"; do stop "$name" keepalived TERM; done
await not has_address a
for name in "${nodes[@]}"; do typed "$name" anycast-address; done
is routed web-2
stop b node KILL
await leads_to '10.9.0.1 10.9.0.3 '
announces a
not announces b
is routed web-2
echo '== done'
