# Machines for the commands of the guide: each has a network namespace, and an overlay of the root file system that holds
# its changes. It sees the binary under test as /usr/bin/notbefore, and dist/ where the package has it. Everything ends
# with the shell, which is process 1 of its namespaces.
#
# Arguments: the binary, and the source tree.
binary=$1 source=$2 dist=$2/dist
place=/run/machines
# The machine may be busy, and rights cannot be granted twice.
export ETCDCTL_DIAL_TIMEOUT=30s ETCDCTL_COMMAND_TIMEOUT=60s
mount -t proc proc /proc
mount -t tmpfs none /run
mkdir $place
ip link set lo up
# The network of the nodes.
ip link add nodes type bridge
ip link set nodes up

# Creates a machine.
machine() { # NAME
  local root=$place/$1/root
  ip netns add "$1"
  ip -n "$1" link set lo up
  mkdir -p $place/"$1"/{new,work,root}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$place/$1/new,workdir=$place/$1/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs none "$root/run"
  mount -t tmpfs none "$root/tmp"
  touch "$root/usr/bin/notbefore"
  mount --bind "$binary" "$root/usr/bin/notbefore"
  mkdir -p "$root/usr/share/doc/notbefore/dist"
  mount --bind "$dist" "$root/usr/share/doc/notbefore/dist"
  rm -rf "$root/etc/notbefore" "$root/etc/etcd" "$root/var/lib/notbefore" "$root/var/lib/etcd"
  mkdir -p "$root/etc/notbefore" "$root/var/lib/notbefore" "$root/var/lib/etcd"
  chown nobody "$root/var/lib/notbefore"
  chown etcd "$root/var/lib/etcd"
}

# Connects a machine to a bridge of this shell.
ports=0
connect() { # MACHINE BRIDGE DEVICE ADDRESS
  ports=$((ports + 1))
  ip link add port$ports type veth peer name "$3" netns "$1"
  ip link set port$ports master "$2" up
  ip -n "$1" addr add "$4" dev "$3"
  ip -n "$1" link set "$3" up
}

# Runs a command on a machine.
on() { # MACHINE COMMAND...
  local name=$1
  shift
  ip netns exec "$name" chroot $place/"$name"/root "$@"
}

# A block of the guide, without the indentation of the list that it is in.
page() { # BLOCK
  sed -n "/^ *\`\`\`sh $1\$/,/^ *\`\`\`\$/ { /^ *\`\`\`/!s/^ *//p }" "$source/docs/guide/cluster.md" | grep . ||
    { echo "the page has no block $1" >&2 && return 1; }
}

# Runs blocks of the guide on a machine, as root where the package has its pages. $name and $ip are those of the machine.
typed() { # MACHINE BLOCK...
  local text machine=$1
  shift
  text=$(for block; do page "$block"; done)
  on "$machine" env -C /usr/share/doc/notbefore HOME=/root name="$machine" ip="${address[$machine]}" ID="${ID:-}" bash -euc "$text"
}

# Waits for a condition; the test has a limit for everything.
await() { # COMMAND...
  until "$@" >/dev/null 2>&1; do sleep 0.1; done
}

# bash -e ignores a failure of '! COMMAND', and of all but the last command of 'A && B'.
not() { ! "$@"; }

# Starts a command of a machine; its log is in the test's directory, its process id in pids.
declare -A pids
start() { # MACHINE WHAT COMMAND...
  local name=$1 what=$2
  shift 2
  # Each of these programs executes the next one, so the process id is that of the command.
  ip netns exec "$name" chroot $place/"$name"/root "$@" >>"$name-$what.log" 2>&1 &
  pids[$name-$what]=$!
}

stop() { # MACHINE WHAT SIGNAL
  kill -"$3" "${pids[$1-$2]}"
  wait "${pids[$1-$2]}" || true
}

# The three machines of the guide.
declare -A address=([a]=10.9.0.1 [b]=10.9.0.2 [c]=10.9.0.3)
nodes=(a b c)

# Creates them with settings and certificates, and starts etcd.
install_cluster() {
  local name
  for name in "${nodes[@]}"; do
    machine "$name"
    connect "$name" nodes eth0 "${address[$name]}/24"
  done
  # Machine a is also that of the administrator.
  typed a tls-certificates
  for name in "${nodes[@]}"; do
    typed "$name" tls-settings
    install_certificates "$name"
    start_etcd "$name"
  done
}
install_certificates() { # MACHINE
  local to=$place/$1/root/root/certificates
  [ "$1" = a ] || { mkdir -p "$to" && cp -r "$place/a/root/root/certificates/$1" "$to/"; }
  typed "$1" tls-files
}

# Starts etcd and the node as their units do: as their users, with the command of the drop-in.
start_etcd() { # MACHINE
  local command
  command=$(sed -n 's/^ExecStart=\(.\)/\1/p' "$place/$1/root/etc/systemd/system/etcd.service.d/notbefore.conf")
  # shellcheck disable=SC2086
  start "$1" etcd setpriv --reuid etcd --regid etcd --clear-groups $command
}
start_node() { # MACHINE VARIABLE=VALUE...
  local name=$1 group
  shift
  group=$(sed -n 's/^SupplementaryGroups=//p' "$place/$name/root/etc/systemd/system/notbefore.service.d/cluster.conf")
  start "$name" node env STATE_DIRECTORY=/var/lib/notbefore NO_COLOR=1 "$@" setpriv --reuid nobody --regid nogroup \
    --groups "$(on "$name" getent group "$group" | cut -d: -f3)" --inh-caps +net_bind_service \
    --ambient-caps +net_bind_service /usr/bin/notbefore serve
}

# Waits until all nodes take changes.
await_nodes() {
  local name
  for name in "${nodes[@]}"; do
    await on "$name" curl -sS --fail --cacert /etc/notbefore/operator-ca.pem "https://${address[$name]}:9255/readyz?changes"
  done
}

# Runs the command line on machine a, with the first token, through a node.
through() { # NODE ARGUMENT...
  local node=$1 token
  shift
  token=$(cat $place/*/root/var/lib/notbefore/operator.token)
  on a env -C /root "NOTBEFORE_OPERATOR=https://${address[$node]}:9255" NOTBEFORE_CA=/etc/notbefore/operator-ca.pem \
    "NOTBEFORE_TOKEN=$token" notbefore "$@"
}
