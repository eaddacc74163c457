# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_notbefore_global_optspecs
    string join \n data= operator-url= operator-ca= operator-without-tls= o/output= local-time h/help V/version
end

function __fish_notbefore_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_notbefore_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_notbefore_using_subcommand
    set -l cmd (__fish_notbefore_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c notbefore -n "__fish_notbefore_needs_command" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_needs_command" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_needs_command" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_needs_command" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_needs_command" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_needs_command" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_needs_command" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_needs_command" -s V -l version -d 'Print version'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "serve" -d 'Run the service'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "agent" -d 'On a VM: prepare for events, approve them, and undo the preparation afterwards'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "status" -d 'Show what happens in the next hour, what has failed, and the state of the service'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "fleet" -d 'Describe scopes and VMs in a file and apply it'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "vm" -d 'List and manage VMs: restart, redeploy, evict, delete'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "host" -d 'List hosts, and schedule maintenance for all VMs of a host'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "event" -d 'Schedule, follow, start and complete events'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "operation" -d 'Follow, start, complete and cancel operations (requests that may span scopes)'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "token" -d 'Manage tokens for the operator API and their roles'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "fault" -d 'Make the guest listener misbehave, to test handlers (serve --faults)'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "clock" -d 'Show whether the service trusts its system clock, and accept a jump'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "cluster" -d 'Show the nodes of a cluster and etcd, hand the lead over, finish an upgrade'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "audit" -d 'Show the audit trail: changes and refusals, with actor and source address'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "console" -d 'Print a link that opens the console in a browser, signed in'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "healthy" -d 'Ask the service once whether it works; the exit code says so'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "openapi" -d 'Print the OpenAPI description of the operator API'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "export" -d 'Export the service\'s data to a file, for backup or to move it to another machine'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "import" -d 'Create a data directory from an export, before the service starts'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "check" -d 'Check the store of a stopped service: every record, the record counts, and their consistency'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "rehearse" -d 'Play events to a maintenance handler, watch it, and give a verdict'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "get" -d 'Inside a VM: show its scheduled events'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "approve" -d 'Inside a VM: approve events, so that they may start'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "completions" -d 'Print a shell completion script'
complete -c notbefore -n "__fish_notbefore_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l config -d 'Configuration file (environment variables and flags override it) [env: NOTBEFORE_CONFIG] [default: /etc/notbefore/notbefore.toml if it exists]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l log-format -d 'Log format: `text`, or `json` for one object per line [default: text]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l root-token-file -d 'File with the first token, 20 characters or more, read when that token is created; `none`: a random token [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l fleet -d 'Fleet file to apply at every start, before guests are answered. It adds and changes, and removes nothing [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l ready-file -d 'File to write when the service is ready, with its listeners as JSON; removed when the service stops [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l guest -d 'Listen address for guests, with optional network (`default` if omitted), network device and TPROXY; may be repeated [default: 127.0.0.1:9254]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l guest-vm -d 'Listener for one VM: every request comes from that VM. A missing VM is created as a Spot VM with 5 minutes\' terminate notification; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l newest-version -d 'Newest api-version of scheduled events: `2024-07-09`, or `2020-07-01` for a platform without advisories, which answers newer ones with 404 [default: 2024-07-09]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l rfc1123-everywhere -d 'Write NotBefore in RFC 1123 format at api-version 2017-03-01 too' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l rate-limit -d 'Requests per second for each VM, with a burst of the same size; 429 above it (Azure: 5) [default: 200]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l faults -d 'Allow operators to add faults: wrong, late or no answers, for tests of handlers; not in a cluster' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l proxy -d 'Source addresses of trusted proxies, which name the VM they forward for (`X-Instance-ID` and its signature); may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l proxy-secret-file -d 'File with the secret for the signature; two lines during rotation. Reloaded on SIGHUP [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l operator -d 'Listen address for operators [default: 127.0.0.1:9255]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l operator-cert -d 'Certificate chain of the operator listener (PEM, leaf first). Reloaded on SIGHUP [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l operator-key -d 'Private key of the operator listener\'s certificate (PEM) [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l operator-without-tls -d 'Allow the operator listener on a non-loopback address without TLS' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd -d 'Client URLs of etcd\'s members. The fleet is then in etcd, and several nodes can serve it; all with `http`, or all with `https`; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l node -d 'Name of this node in its cluster, unique among the running nodes; `none`: the machine\'s host name [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-prefix -d 'Key in etcd below which everything is stored [default: /notbefore/]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-ca -d 'Certificates of the authority of etcd\'s certificates (PEM), for `https`. Renewed files are used for new connections [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-cert -d 'Client certificate for etcd (PEM, leaf first) [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-key -d 'Private key of the client certificate (PEM) [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-user -d 'User of etcd [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-password-file -d 'File with the user\'s password [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l etcd-quota -d 'Quota of etcd\'s members, for warnings before it is reached. It must equal their `--quota-backend-bytes`; members of etcd 3.6 and later report it themselves. `none`: they have no quota [default: 2GiB]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l format-level -d 'Newest format level of records that this node writes. A lower one than the release\'s keeps the way back to the release before open (unused with one node) [default: 2]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l node-listen -d 'Listen address for the other nodes of a cluster, which forward changes to the leader (unused with one node). Port 0: any free port. Beyond loopback it needs `node.cert`, `node.key` and `node.ca` [default: 127.0.0.1:0]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l node-cert -d 'Certificate chain of this node, for mutual TLS (PEM, leaf first; unused with one node). It must name the address of `node.listen`. Reloaded on SIGHUP [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l node-key -d 'Private key of this node\'s certificate (PEM; unused with one node) [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l node-ca -d 'Certificates of the authority that has signed the certificates of all nodes (PEM; unused with one node) [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l notice -d 'Factor for all notice periods, for testing (0.01: 15 minutes become 9 seconds) [default: 1.0]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l user-operations-max -d 'Live user operations per scope [default: 100]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l always-give-notice -d 'Give user operations their notice even if no guest of the scope has polled for a day' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l keep-history -d 'Retention of ended events and facts [default: 90d]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l keep-history-bytes -d 'Size of ended events and facts, for example `512MiB`; above it the oldest are removed before their retention. With `--etcd` the default is `512MiB` [default: 16GiB]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l driver -d 'How events are carried out: `simulated` (not at all: an event stays Started for its duration, then completes), `manual` (by external automation, with `event start` and `event complete`) or `exec` (one command per VM) [default: simulated]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l simulated-duration -d 'Time that the simulated driver keeps an event Started if its duration is unknown [default: 1m]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec -d 'Executable to run for each VM; it receives the event in environment variables [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-host -d 'Executable to run once for a host that reboots or freezes, after the commands of its VMs and before their events end [default: none]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-timeout -d 'Timeout of the command; then it is killed and counts as failed [default: 10m]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-host-timeout -d 'The same for the command of a host [default: 30m]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-attempts -d 'Attempts before the event waits for `event retry`, or the operation for `operation retry` [default: 5]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-backoff -d 'Back-off after the first failure; doubles with each further failure, 5 minutes at most [default: 5s]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-concurrency -d 'Commands that run at once; others are queued [default: 16]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l exec-env -d 'Environment variables of the service that are passed to the command; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l print-config -d 'Print every setting with its value and source, and exit'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l check-config -d 'Check the configuration and exit'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l demo -d 'Run in memory with a small fleet, guests that poll and approve, and events, to try the console; on free ports if the usual ones are taken. Reads no configuration file; takes only --guest, --operator, --ready-file and --log-format'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l strict -d 'Require exactly `Metadata: true` on every request, as Azure does today'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l lenient -d 'Accept approvals without `Metadata` at every version, and the paths of 2017'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand serve" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "run" -d 'Run the agent until it is stopped'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "check" -d 'Check the configuration, its hooks and the connection to the platform'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "status" -d 'Show the events that the agent handles and their progress'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "history" -d 'Show the last 100 events: what the agent did, when, and how it ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "reload" -d 'Make the running agent read its configuration again, and print the result'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "retry" -d 'Retry the failed step or approval of an event, and wait for the outcome'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "sample" -d 'Print a sample configuration'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and not __fish_seen_subcommand_from run check status history reload retry sample help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l config -d 'Configuration file [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l endpoint -d 'URL of the platform\'s metadata endpoint [env: NOTBEFORE_AGENT_ENDPOINT] [default: discovered]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l name -d 'This VM\'s name [env: NOTBEFORE_AGENT_NAME] [default: from instance metadata, else the host name]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l api-version -d 'Newest api-version to request [env: NOTBEFORE_AGENT_API_VERSION] [default: 2020-07-01]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l state -d 'Journal directory, on a disk that survives the event [env: NOTBEFORE_AGENT_STATE]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l listen -d 'Listen address of the signals, or `none` [env: NOTBEFORE_AGENT_LISTEN] [default: 127.0.0.1:9256]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l log -d 'Log filter: a level, or levels per module [env: NOTBEFORE_AGENT_LOG] [default: info]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l log-format -d 'Log format, on standard error: `text`, or `json` for one object per line [env: NOTBEFORE_AGENT_LOG_FORMAT] [default: text]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l dry-run -d 'Log the actions without running them [env: NOTBEFORE_AGENT_DRY_RUN]'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l config -d 'Configuration file [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l endpoint -d 'URL of the platform\'s metadata endpoint [env: NOTBEFORE_AGENT_ENDPOINT] [default: discovered]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l name -d 'This VM\'s name [env: NOTBEFORE_AGENT_NAME] [default: from instance metadata, else the host name]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l api-version -d 'Newest api-version to request [env: NOTBEFORE_AGENT_API_VERSION] [default: 2020-07-01]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l state -d 'Journal directory, on a disk that survives the event [env: NOTBEFORE_AGENT_STATE]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l listen -d 'Listen address of the signals, or `none` [env: NOTBEFORE_AGENT_LISTEN] [default: 127.0.0.1:9256]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l log -d 'Log filter: a level, or levels per module [env: NOTBEFORE_AGENT_LOG] [default: info]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l log-format -d 'Log format, on standard error: `text`, or `json` for one object per line [env: NOTBEFORE_AGENT_LOG_FORMAT] [default: text]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l run -d 'Run the steps of this rule once each, as for an event, after confirmation (with --dry-run they are only printed)' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l type -d 'With --run: the event\'s type [default: the rule\'s first type, or Reboot]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l stage -d 'With --run: the steps to run' -r -f -a "before\t'Steps before the event'
after\t'Steps after the event'
both\t'Steps before, then steps after'"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l dry-run -d 'Log the actions without running them [env: NOTBEFORE_AGENT_DRY_RUN]'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l offline -d 'Do not contact the platform; with --run, the VM\'s name is its host name'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -s y -l yes -d 'With --run: do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l config -d 'Configuration file of the agent, if readable [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l listen -d 'Listen address of the agent\'s signals [env: NOTBEFORE_AGENT_LISTEN] [default: from the file, else 127.0.0.1:9256]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l state -d 'Journal directory, read if the agent is not running [env: NOTBEFORE_AGENT_STATE]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l config -d 'Configuration file of the agent, for its state directory [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l state -d 'State directory of the agent [env: NOTBEFORE_AGENT_STATE]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l config -d 'Configuration file of the agent, for its state directory [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l state -d 'State directory of the agent [env: NOTBEFORE_AGENT_STATE]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from reload" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l config -d 'Configuration file of the agent, for its state directory [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l state -d 'State directory of the agent [env: NOTBEFORE_AGENT_STATE]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l no-wait -d 'Do not wait for the outcome'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from sample" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run the agent until it is stopped'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check the configuration, its hooks and the connection to the platform'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show the events that the agent handles and their progress'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "history" -d 'Show the last 100 events: what the agent did, when, and how it ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "reload" -d 'Make the running agent read its configuration again, and print the result'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "retry" -d 'Retry the failed step or approval of an event, and wait for the outcome'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "sample" -d 'Print a sample configuration'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l count -d 'With --watch: exit after this many times' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l watch -d 'Show it again every 2 seconds, until Ctrl-C'
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand status" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -f -a "apply" -d 'Apply a fleet file (idempotent)'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -f -a "diff" -d 'Show what applying a file would add, change and remove, and which live events would end'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -f -a "show" -d 'Show scopes with their number of VMs and events'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and not __fish_seen_subcommand_from apply diff show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l prune -d 'Also remove scopes and VMs that an earlier file created and this one does not name'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l check -d 'Only check the file'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l progress -d 'Report progress every 10 seconds, even without a terminal'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l allow-empty -d 'Accept a file without scopes; with --prune it removes everything that files created'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from apply" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l prune -d 'Also show what --prune would remove'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l progress -d 'Report progress every 10 seconds, even without a terminal'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "apply" -d 'Apply a fleet file (idempotent)'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Show what applying a file would add, change and remove, and which live events would end'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show scopes with their number of VMs and events'
complete -c notbefore -n "__fish_notbefore_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "list" -d 'List VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "show" -d 'Show one VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "log" -d 'Show what a VM asked for lately: refused requests, approvals, first reads, and which clients poll'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "document" -d 'Show the document of scheduled events that a VM reads now'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "add" -d 'Add a VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "remove" -d 'Remove a VM from the inventory at once, without an event'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "restart" -d 'Restart a VM: a Reboot event, started when approved or at its NotBefore'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "redeploy" -d 'Redeploy a VM: a Redeploy event, started when approved or at its NotBefore'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "evict" -d 'Evict a Spot VM: a Preempt event with 30 seconds\' notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "delete" -d 'Delete VMs: Terminate events, with the scope\'s terminate notification as notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "start" -d 'Report that an evicted VM runs again'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and not __fish_seen_subcommand_from list show log document add remove restart redeploy evict delete start help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l scope -d 'Only VMs of this scope' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l host -d 'Only VMs on this host' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l limit -d 'Maximum number of lines' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l count -d 'With --watch: exit after this many times' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l watch -d 'Show it again every 2 seconds, until Ctrl-C'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -l api-version -d 'The api-version [default: the newest]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l scope -d 'Scope: [[subscription/]group/]scope [default: a standalone scope named after the VM]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l kind -d 'Kind of the scope, if it is created' -r -f -a "standalone\t''
availability-set\t''
cloud-service\t''
scale-set\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l address -d 'Source address of its requests; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l update-domain -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l fault-domain -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l zone -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l host -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l spot -d 'Spot VM: may be evicted'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l not-before -d 'Not before this time: RFC 3339, a date, \'2026-11-20 08:00\' or \'tomorrow 02:00\' (UTC) [default: the minimum notice]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l in -d 'Not before this long from now, for example 20m, 1h30m, 7d, 2w' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l not-before -d 'Not before this time: RFC 3339, a date, \'2026-11-20 08:00\' or \'tomorrow 02:00\' (UTC) [default: the minimum notice]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l in -d 'Not before this long from now, for example 20m, 1h30m, 7d, 2w' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l not-before -d 'Not before this time: RFC 3339, a date, \'2026-11-20 08:00\' or \'tomorrow 02:00\' (UTC) [default: the minimum notice]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l in -d 'Not before this long from now, for example 20m, 1h30m, 7d, 2w' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l force -d 'Evict the VM even if it is not a Spot VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "list" -d 'List VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show one VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "log" -d 'Show what a VM asked for lately: refused requests, approvals, first reads, and which clients poll'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "document" -d 'Show the document of scheduled events that a VM reads now'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "add" -d 'Add a VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove a VM from the inventory at once, without an event'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "restart" -d 'Restart a VM: a Reboot event, started when approved or at its NotBefore'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "redeploy" -d 'Redeploy a VM: a Redeploy event, started when approved or at its NotBefore'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "evict" -d 'Evict a Spot VM: a Preempt event with 30 seconds\' notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete VMs: Terminate events, with the scope\'s terminate notification as notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "start" -d 'Report that an evicted VM runs again'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "list" -d 'List hosts with their state, by name'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "show" -d 'Show a host, its VMs and their events'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "maintain" -d 'Schedule maintenance for the VMs of hosts: one operation per host'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "degraded" -d 'Report hosts with predicted failure: their VMs are redeployed [default notice: 7 days]'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "failed" -d 'Report hosts that failed: their VMs restart now, without notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "ok" -d 'Report that hosts work: redeployed VMs may move there'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "forget" -d 'Remove hosts without VMs from the list of hosts'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and not __fish_seen_subcommand_from list show maintain degraded failed ok forget help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l limit -d 'Maximum number of lines' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l count -d 'With --watch: exit after this many times' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l watch -d 'Show it again every 2 seconds, until Ctrl-C'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l type -d 'What happens to the VMs' -r -f -a "freeze\t'Paused for some seconds'
reboot\t'Restarted, all at once'
redeploy\t'Moved to other hosts, each VM separately'
live-migration\t'Moved to other hosts while running'"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l not-before -d 'Not before this time: RFC 3339, a date, \'2026-11-20 08:00\' or \'tomorrow 02:00\' (UTC) [default: the minimum notice]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l in -d 'Not before this long from now, for example 20m, 1h30m, 7d, 2w' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l description -d 'Event description for guests [default: the cause\'s description]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l duration -d 'Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l timeout -d 'Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l wait -d 'Wait until the operation is closed and show progress; Ctrl-C leaves it running'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l not-before -d 'Not before this time: RFC 3339, a date, \'2026-11-20 08:00\' or \'tomorrow 02:00\' (UTC) [default: the minimum notice]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l in -d 'Not before this long from now, for example 20m, 1h30m, 7d, 2w' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l description -d 'Event description for guests [default: the cause\'s description]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l duration -d 'Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l timeout -d 'Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l wait -d 'Wait until the operation is closed and show progress; Ctrl-C leaves it running'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l description -d 'Event description for guests [default: the cause\'s description]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l duration -d 'Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l timeout -d 'Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l wait -d 'Wait until the operation is closed and show progress; Ctrl-C leaves it running'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "list" -d 'List hosts with their state, by name'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a host, its VMs and their events'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "maintain" -d 'Schedule maintenance for the VMs of hosts: one operation per host'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "degraded" -d 'Report hosts with predicted failure: their VMs are redeployed [default notice: 7 days]'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "failed" -d 'Report hosts that failed: their VMs restart now, without notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "ok" -d 'Report that hosts work: redeployed VMs may move there'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "forget" -d 'Remove hosts without VMs from the list of hosts'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "list" -d 'List scheduled and started events, and advisories, in order of time'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "show" -d 'Show one event with its full trail, even after it has ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "schedule" -d 'Schedule an event for VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "cancel" -d 'Cancel events that have not started'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "approve" -d 'Approve events on behalf of their guests'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "start" -d 'Start events now'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "complete" -d 'Report that events were carried out'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "retry" -d 'Retry the exec driver\'s commands that have failed or wait for a retry'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "wait" -d 'Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "history" -d 'List events that have ended, oldest first'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "watch" -d 'Print changes of events as they happen: scheduled, read, approved, started, ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and not __fish_seen_subcommand_from list show schedule cancel approve start complete retry wait history watch help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l scope -d 'Only events of this scope' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l vm -d 'Only events of this VM' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l host -d 'Only events of VMs that were on this host when the event was announced' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l type -d 'Only events of this type' -r -f -a "freeze\t''
reboot\t''
redeploy\t''
preempt\t''
terminate\t''
spotrebalancerecommendation\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l status -d 'Only events with this status' -r -f -a "scheduled\t''
started\t''
advisory\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l sort -d 'The order: started events, then scheduled events by NotBefore, then advisories; or by scope' -r -f -a "scope\t''
time\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l limit -d 'Maximum number of lines' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l count -d 'With --watch: exit after this many times' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l watch -d 'Show it again every 2 seconds, until Ctrl-C'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l type -d 'The event\'s type' -r -f -a "freeze\t''
reboot\t''
redeploy\t''
preempt\t''
terminate\t''
spotrebalancerecommendation\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l cause -d 'The exact cause, instead of a type' -r -f -a "host-freeze\t''
host-reboot\t''
host-redeploy\t''
live-migration\t''
predicted-failure\t''
host-failure\t''
eviction\t''
rebalance\t''
deletion\t''
user-restart\t''
user-redeploy\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l not-before -d 'Not before this time: RFC 3339, a date, \'2026-11-20 08:00\' or \'tomorrow 02:00\' (UTC) [default: the minimum notice]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l in -d 'Not before this long from now, for example 20m, 1h30m, 7d, 2w' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l description -d 'Event description for guests [default: the cause\'s description]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l duration -d 'Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l force -d 'With Preempt and SpotRebalanceRecommendation: also VMs that are not Spot VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -l host -d 'New host of a redeployed VM; may be repeated. Only with one event' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l for -d 'Stage to wait for' -r -f -a "read\t'Each of its running VMs has read it'
approved\t'A guest or an operator has approved it'
started\t'It has started'
ended\t'It is completed or cancelled'"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l timeout -d 'Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l since -d 'Only events that ended within this span, or since this time' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l until -d 'Only events that ended longer ago than this span, or before this time' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l scope -d 'Only events of this scope' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l vm -d 'Only events of this VM: id, name, or the end of its path' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l host -d 'Only events of VMs that were on this host' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l type -d 'Only events of this type' -r -f -a "freeze\t''
reboot\t''
redeploy\t''
preempt\t''
terminate\t''
spotrebalancerecommendation\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l outcome -d 'Only events with this outcome' -r -f -a "completed\t''
cancelled\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l limit -d 'Maximum number of events' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l newest -d 'Newest first'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l summary -d 'Count them by day, type and outcome instead, and show how long approvals took'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -l count -d 'Exit after this many changes' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "list" -d 'List scheduled and started events, and advisories, in order of time'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show one event with its full trail, even after it has ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "schedule" -d 'Schedule an event for VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "cancel" -d 'Cancel events that have not started'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "approve" -d 'Approve events on behalf of their guests'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "start" -d 'Start events now'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "complete" -d 'Report that events were carried out'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "retry" -d 'Retry the exec driver\'s commands that have failed or wait for a retry'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "wait" -d 'Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "history" -d 'List events that have ended, oldest first'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "watch" -d 'Print changes of events as they happen: scheduled, read, approved, started, ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "list" -d 'List open operations, in order of time'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "show" -d 'Show an operation and its events'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "cancel" -d 'Cancel the events of an operation that have not started'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "start" -d 'Start all events of operations now'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "complete" -d 'Report that all events of operations were carried out'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "retry" -d 'Retry the exec driver\'s command for the host of operations'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "wait" -d 'Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them running'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and not __fish_seen_subcommand_from list show cancel start complete retry wait help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l host -d 'Only operations on this host' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l type -d 'Only operations whose events have this type' -r -f -a "freeze\t''
reboot\t''
redeploy\t''
preempt\t''
terminate\t''
spotrebalancerecommendation\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l limit -d 'Maximum number of lines' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l count -d 'With --watch: exit after this many times' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l watch -d 'Show it again every 2 seconds, until Ctrl-C'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l for -d 'Stage to wait for' -r -f -a "read\t'Each of its running VMs has read it'
approved\t'A guest or an operator has approved it'
started\t'It has started'
ended\t'It is completed or cancelled'"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l timeout -d 'Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "list" -d 'List open operations, in order of time'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show an operation and its events'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "cancel" -d 'Cancel the events of an operation that have not started'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "start" -d 'Start all events of operations now'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "complete" -d 'Report that all events of operations were carried out'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "retry" -d 'Retry the exec driver\'s command for the host of operations'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "wait" -d 'Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them running'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -f -a "create" -d 'Create a token; its secret is shown only once'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -f -a "init" -d 'Create the first token of a cluster in etcd before its nodes start, and write it to a file'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -f -a "list" -d 'List tokens with their roles and last use since the service started'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -f -a "show" -d 'Show the token that this command uses, and its roles'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -f -a "revoke" -d 'Revoke a token: requests with it are refused from then on'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and not __fish_seen_subcommand_from create init list show revoke help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l role -d 'Role' -r -f -a "operator\t''
tenant\t''
viewer\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l on -d 'Path of the role, with everything below it: subscription[/group[/scope]], or / for everywhere; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l grant -d 'Another role and its path; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l expires -d 'Lifetime of the token [default: until revoked]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd -d 'Client URLs of etcd\'s members, instead of a data directory' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd-prefix -d 'Key in etcd below which everything is stored' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd-ca -d 'Certificates of the authority of etcd\'s certificates (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd-cert -d 'Client certificate for etcd (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd-key -d 'Private key of the client certificate (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd-user -d 'User of etcd' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l etcd-password-file -d 'File with the user\'s password' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "create" -d 'Create a token; its secret is shown only once'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "init" -d 'Create the first token of a cluster in etcd before its nodes start, and write it to a file'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "list" -d 'List tokens with their roles and last use since the service started'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the token that this command uses, and its roles'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "revoke" -d 'Revoke a token: requests with it are refused from then on'
complete -c notbefore -n "__fish_notbefore_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -f -a "add" -d 'Add a fault: guests get wrong, late or no answers'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -f -a "list" -d 'List the active faults and how often each had an effect'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -f -a "clear" -d 'End a fault, or all of them'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and not __fish_seen_subcommand_from add list clear help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l vm -d 'Only for this VM: its id, or the end of its path [default: all VMs]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l on -d 'Requests that it affects' -r -f -a "polls\t''
approvals\t''
all\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l every -d 'Affect every Nth request of each VM only' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l count -d 'End after N effects' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l for -d 'End after this time' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l seconds -d 'late-first-answer, slow-body: how long; clock-skew: how far the platform\'s clock is ahead, negative for behind' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l status -d 'status: the status of the response, 400 to 599' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l by -d 'skip-incarnations: how far the incarnation rises with each change' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from clear" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from help" -f -a "add" -d 'Add a fault: guests get wrong, late or no answers'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the active faults and how often each had an effect'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from help" -f -a "clear" -d 'End a fault, or all of them'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -f -a "show" -d 'Show the service\'s clock and whether it is trusted'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -f -a "accept" -d 'Trust the clock: events that are due by it start'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and not __fish_seen_subcommand_from show accept help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from accept" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the service\'s clock and whether it is trusted'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from help" -f -a "accept" -d 'Trust the clock: events that are due by it start'
complete -c notbefore -n "__fish_notbefore_using_subcommand clock; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -f -a "status" -d 'Show the nodes, the leader, etcd, and what is wrong'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -f -a "hand-over" -d 'Make the leader give up the lead, so that another node takes it'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -f -a "upgrade" -d 'Rolling upgrades of the nodes'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -f -a "forget" -d 'Remove a node that does not run any more from the list of nodes'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and not __fish_seen_subcommand_from status hand-over upgrade forget help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from hand-over" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -f -a "finish" -d 'Let all nodes write the newest format level that each of them can'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -l dry-run -d 'Only show the plan'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -s y -l yes -d 'Do not ask for confirmation'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show the nodes, the leader, etcd, and what is wrong'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "hand-over" -d 'Make the leader give up the lead, so that another node takes it'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "upgrade" -d 'Rolling upgrades of the nodes'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "forget" -d 'Remove a node that does not run any more from the list of nodes'
complete -c notbefore -n "__fish_notbefore_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l since -d 'Only entries within this span, or since this time' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l until -d 'Only entries older than this span, or before this time' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l actor -d 'Only entries of this actor: the name of a token or VM, `timer` or `service`' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l limit -d 'Maximum number of entries' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l refused -d 'Only refusals'
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l changed -d 'Only changes'
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l newest -d 'Newest entries first'
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand audit" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand console" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -l alive -d 'Only check that the process answers, not that it can store changes'
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand healthy" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand openapi" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l without-tokens -d 'Leave out operator tokens (their hashes and roles)'
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l skip-damaged -d 'Read the store of a stopped service directly; skip damaged records and records that depend on them'
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand export" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd -d 'Client URLs of etcd\'s members, instead of a data directory' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd-prefix -d 'Key in etcd below which everything is stored' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd-ca -d 'Certificates of the authority of etcd\'s certificates (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd-cert -d 'Client certificate for etcd (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd-key -d 'Private key of the client certificate (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd-user -d 'User of etcd' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l etcd-password-file -d 'File with the user\'s password' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l check -d 'Only check the file'
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand import" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand check" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l compress -d 'Divide the scenario\'s waits by this' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l floor -d 'Shortest wait after division' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l polls-every -d 'Longest allowed gap between two polls, instead of the scenario\'s; raises --floor to twice that' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l drained -d 'How the handler shows that the VM is drained: line:REGEX, file:PATH ({vm} is the VM\'s name) or call' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l restored -d 'How the handler shows that the VM is restored' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l repeat -d 'Run the handler again, so long after each exit, as cron or Pacemaker do' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l record -d 'Write what happened and the verdict to this file (JSON), for \'rehearse report\'' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l junit -d 'Write the verdict to this file as JUnit XML' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l html -d 'Write a page with timeline and verdict to this file' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l netns -d 'Give each handler a network of its own, in which 169.254.169.254 is the rehearsal'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -a "list" -d 'List the scenarios that come with the program'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -a "show" -d 'Print a scenario, to read it or to change a copy'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -a "doctor" -d 'Play all scenarios, several side by side, and print a report card'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -a "report" -d 'Make one page of recordings'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -a "schema" -d 'Print the JSON schema of scenario files'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and not __fish_seen_subcommand_from list show doctor report schema help" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l only -d 'Only these scenarios; may be repeated' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l side-by-side -d 'Scenarios at a time' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l compress -d 'Divide the scenario\'s waits by this' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l floor -d 'Shortest wait after division' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l polls-every -d 'Longest allowed gap between two polls, instead of the scenario\'s; raises --floor to twice that' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l drained -d 'How the handler shows that the VM is drained: line:REGEX, file:PATH ({vm} is the VM\'s name) or call' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l restored -d 'How the handler shows that the VM is restored' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l repeat -d 'Run the handler again, so long after each exit, as cron or Pacemaker do' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l record -d 'Write what happened and the verdict to this file (JSON), for \'rehearse report\'' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l junit -d 'Write the verdict to this file as JUnit XML' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l html -d 'Write a page with timeline and verdict to this file' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l netns -d 'Give each handler a network of its own, in which 169.254.169.254 is the rehearsal'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from doctor" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -s o -l html -d 'The page [default: report.html; none with --output json or yaml]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the scenarios that come with the program'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print a scenario, to read it or to change a copy'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from help" -f -a "doctor" -d 'Play all scenarios, several side by side, and print a report card'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from help" -f -a "report" -d 'Make one page of recordings'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON schema of scenario files'
complete -c notbefore -n "__fish_notbefore_using_subcommand rehearse; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l endpoint -d 'URL of the platform\'s metadata endpoint [default: discovered from $SCHEDULEDEVENTSIP, 169.254.169.254, DHCP option 245]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l api-version -d 'Newest api-version to request; older ones are tried only if the platform refuses it' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l name -d 'VM name in the events\' resources [default: from instance metadata, else the host name]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l count -d 'With --watch: exit after this many changes' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l watch -d 'Keep polling and print a line per change, until Ctrl-C'
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l raw -d 'Print the document unchanged; control characters are escaped at a terminal'
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand get" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l endpoint -d 'URL of the platform\'s metadata endpoint [default: discovered from $SCHEDULEDEVENTSIP, 169.254.169.254, DHCP option 245]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l api-version -d 'Newest api-version to request; older ones are tried only if the platform refuses it' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l name -d 'VM name in the events\' resources [default: from instance metadata, else the host name]' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l all-mine -d 'All events that wait for approval and name this VM (name from instance metadata, else --name)'
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand approve" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -l data -d 'Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -l operator-url -d 'URL of a remote service\'s operator listener' -r
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -l operator-ca -d 'CA certificate, or the server\'s own certificate, to trust for a remote service (PEM)' -r -F
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -l operator-without-tls -d 'Send the token to a remote service over plain http, where others on the network can read it' -r -f -a "true\t''
false\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -s o -l output -d 'Output format' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -l local-time -d 'Show local times with their offset, instead of relative times and UTC'
complete -c notbefore -n "__fish_notbefore_using_subcommand completions" -s h -l help -d 'Print help'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "serve" -d 'Run the service'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "agent" -d 'On a VM: prepare for events, approve them, and undo the preparation afterwards'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "status" -d 'Show what happens in the next hour, what has failed, and the state of the service'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "fleet" -d 'Describe scopes and VMs in a file and apply it'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "vm" -d 'List and manage VMs: restart, redeploy, evict, delete'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "host" -d 'List hosts, and schedule maintenance for all VMs of a host'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "event" -d 'Schedule, follow, start and complete events'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "operation" -d 'Follow, start, complete and cancel operations (requests that may span scopes)'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "token" -d 'Manage tokens for the operator API and their roles'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "fault" -d 'Make the guest listener misbehave, to test handlers (serve --faults)'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "clock" -d 'Show whether the service trusts its system clock, and accept a jump'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "cluster" -d 'Show the nodes of a cluster and etcd, hand the lead over, finish an upgrade'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "audit" -d 'Show the audit trail: changes and refusals, with actor and source address'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "console" -d 'Print a link that opens the console in a browser, signed in'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "healthy" -d 'Ask the service once whether it works; the exit code says so'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "openapi" -d 'Print the OpenAPI description of the operator API'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "export" -d 'Export the service\'s data to a file, for backup or to move it to another machine'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "import" -d 'Create a data directory from an export, before the service starts'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "check" -d 'Check the store of a stopped service: every record, the record counts, and their consistency'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "rehearse" -d 'Play events to a maintenance handler, watch it, and give a verdict'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "get" -d 'Inside a VM: show its scheduled events'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "approve" -d 'Inside a VM: approve events, so that they may start'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "completions" -d 'Print a shell completion script'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and not __fish_seen_subcommand_from serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "run" -d 'Run the agent until it is stopped'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "check" -d 'Check the configuration, its hooks and the connection to the platform'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "status" -d 'Show the events that the agent handles and their progress'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "history" -d 'Show the last 100 events: what the agent did, when, and how it ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "reload" -d 'Make the running agent read its configuration again, and print the result'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "retry" -d 'Retry the failed step or approval of an event, and wait for the outcome'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from agent" -f -a "sample" -d 'Print a sample configuration'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "apply" -d 'Apply a fleet file (idempotent)'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "diff" -d 'Show what applying a file would add, change and remove, and which live events would end'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "show" -d 'Show scopes with their number of VMs and events'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "list" -d 'List VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "show" -d 'Show one VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "log" -d 'Show what a VM asked for lately: refused requests, approvals, first reads, and which clients poll'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "document" -d 'Show the document of scheduled events that a VM reads now'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "add" -d 'Add a VM'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "remove" -d 'Remove a VM from the inventory at once, without an event'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "restart" -d 'Restart a VM: a Reboot event, started when approved or at its NotBefore'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "redeploy" -d 'Redeploy a VM: a Redeploy event, started when approved or at its NotBefore'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "evict" -d 'Evict a Spot VM: a Preempt event with 30 seconds\' notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "delete" -d 'Delete VMs: Terminate events, with the scope\'s terminate notification as notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "start" -d 'Report that an evicted VM runs again'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "list" -d 'List hosts with their state, by name'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "show" -d 'Show a host, its VMs and their events'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "maintain" -d 'Schedule maintenance for the VMs of hosts: one operation per host'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "degraded" -d 'Report hosts with predicted failure: their VMs are redeployed [default notice: 7 days]'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "failed" -d 'Report hosts that failed: their VMs restart now, without notice'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "ok" -d 'Report that hosts work: redeployed VMs may move there'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "forget" -d 'Remove hosts without VMs from the list of hosts'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "list" -d 'List scheduled and started events, and advisories, in order of time'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "show" -d 'Show one event with its full trail, even after it has ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "schedule" -d 'Schedule an event for VMs'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "cancel" -d 'Cancel events that have not started'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "approve" -d 'Approve events on behalf of their guests'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "start" -d 'Start events now'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "complete" -d 'Report that events were carried out'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "retry" -d 'Retry the exec driver\'s commands that have failed or wait for a retry'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "wait" -d 'Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "history" -d 'List events that have ended, oldest first'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from event" -f -a "watch" -d 'Print changes of events as they happen: scheduled, read, approved, started, ended'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "list" -d 'List open operations, in order of time'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "show" -d 'Show an operation and its events'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "cancel" -d 'Cancel the events of an operation that have not started'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "start" -d 'Start all events of operations now'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "complete" -d 'Report that all events of operations were carried out'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "retry" -d 'Retry the exec driver\'s command for the host of operations'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from operation" -f -a "wait" -d 'Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them running'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "create" -d 'Create a token; its secret is shown only once'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "init" -d 'Create the first token of a cluster in etcd before its nodes start, and write it to a file'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "list" -d 'List tokens with their roles and last use since the service started'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "show" -d 'Show the token that this command uses, and its roles'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "revoke" -d 'Revoke a token: requests with it are refused from then on'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from fault" -f -a "add" -d 'Add a fault: guests get wrong, late or no answers'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from fault" -f -a "list" -d 'List the active faults and how often each had an effect'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from fault" -f -a "clear" -d 'End a fault, or all of them'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from clock" -f -a "show" -d 'Show the service\'s clock and whether it is trusted'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from clock" -f -a "accept" -d 'Trust the clock: events that are due by it start'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "status" -d 'Show the nodes, the leader, etcd, and what is wrong'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "hand-over" -d 'Make the leader give up the lead, so that another node takes it'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "upgrade" -d 'Rolling upgrades of the nodes'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "forget" -d 'Remove a node that does not run any more from the list of nodes'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from rehearse" -f -a "list" -d 'List the scenarios that come with the program'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from rehearse" -f -a "show" -d 'Print a scenario, to read it or to change a copy'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from rehearse" -f -a "doctor" -d 'Play all scenarios, several side by side, and print a report card'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from rehearse" -f -a "report" -d 'Make one page of recordings'
complete -c notbefore -n "__fish_notbefore_using_subcommand help; and __fish_seen_subcommand_from rehearse" -f -a "schema" -d 'Print the JSON schema of scenario files'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from history" -f -a '(notbefore complete-names agent-past-events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand agent; and __fish_seen_subcommand_from retry" -f -a '(notbefore complete-names agent-events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l scope -r -f -a '(notbefore complete-names scopes 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from list" -l host -r -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from show" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from log" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from document" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l scope -r -f -a '(notbefore complete-names scopes 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from add" -l host -r -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from remove" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from restart" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from redeploy" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from evict" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from delete" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand vm; and __fish_seen_subcommand_from start" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from show" -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from maintain" -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from degraded" -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from failed" -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from ok" -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand host; and __fish_seen_subcommand_from forget" -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l scope -r -f -a '(notbefore complete-names scopes 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l vm -r -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from list" -l host -r -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from show" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from schedule" -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from cancel" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from approve" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from start" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from complete" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from retry" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from wait" -f -a '(notbefore complete-names events 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l scope -r -f -a '(notbefore complete-names scopes 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l vm -r -f -a '(notbefore complete-names vms 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand event; and __fish_seen_subcommand_from history" -l host -r -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from list" -l host -r -f -a '(notbefore complete-names hosts 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from show" -f -a '(notbefore complete-names operations 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from cancel" -f -a '(notbefore complete-names operations 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from start" -f -a '(notbefore complete-names operations 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from complete" -f -a '(notbefore complete-names operations 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from retry" -f -a '(notbefore complete-names operations 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand operation; and __fish_seen_subcommand_from wait" -f -a '(notbefore complete-names operations 2>/dev/null)'
complete -c notbefore -n "__fish_notbefore_using_subcommand fault; and __fish_seen_subcommand_from add" -l vm -r -f -a '(notbefore complete-names vms 2>/dev/null)'
