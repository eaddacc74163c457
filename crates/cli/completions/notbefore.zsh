#compdef notbefore

_notbefore_names() {
    local -a names
    names=(${(f)"$(notbefore complete-names $1 2>/dev/null)"})
    compadd -a names
}


autoload -U is-at-least

_notbefore() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_notbefore_commands" \
"*::: :->notbefore" \
&& ret=0
    case $state in
    (notbefore)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-command-$line[1]:"
        case $line[1] in
            (serve)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file (environment variables and flags override it) \[env\: NOTBEFORE_CONFIG\] \[default\: /etc/notbefore/notbefore.toml if it exists\]]:FILE:_files' \
'--log-format=[Log format\: \`text\`, or \`json\` for one object per line \[default\: text\]]:FORMAT:_default' \
'--root-token-file=[File with the first token, 20 characters or more, read when that token is created; \`none\`\: a random token \[default\: none\]]:FILE:_default' \
'--fleet=[Fleet file to apply at every start, before guests are answered. It adds and changes, and removes nothing \[default\: none\]]:FILE:_default' \
'--ready-file=[File to write when the service is ready, with its listeners as JSON; removed when the service stops \[default\: none\]]:FILE:_default' \
'*--guest=[Listen address for guests, with optional network (\`default\` if omitted), network device and TPROXY; may be repeated \[default\: 127.0.0.1\:9254\]]:[NETWORK=]ADDR[%DEVICE][+tproxy]:_default' \
'*--guest-vm=[Listener for one VM\: every request comes from that VM. A missing VM is created as a Spot VM with 5 minutes'\'' terminate notification; may be repeated]:NAME=ADDR:_default' \
'--newest-version=[Newest api-version of scheduled events\: \`2024-07-09\`, or \`2020-07-01\` for a platform without advisories, which answers newer ones with 404 \[default\: 2024-07-09\]]:DATE:_default' \
'--rfc1123-everywhere=[Write NotBefore in RFC 1123 format at api-version 2017-03-01 too]::true|false:_default' \
'--rate-limit=[Requests per second for each VM, with a burst of the same size; 429 above it (Azure\: 5) \[default\: 200\]]:N:_default' \
'--faults=[Allow operators to add faults\: wrong, late or no answers, for tests of handlers; not in a cluster]::true|false:_default' \
'*--proxy=[Source addresses of trusted proxies, which name the VM they forward for (\`X-Instance-ID\` and its signature); may be repeated]:[NETWORK=]ADDR[/BITS]:_default' \
'--proxy-secret-file=[File with the secret for the signature; two lines during rotation. Reloaded on SIGHUP \[default\: none\]]:FILE:_default' \
'--operator=[Listen address for operators \[default\: 127.0.0.1\:9255\]]:ADDR:_default' \
'--operator-cert=[Certificate chain of the operator listener (PEM, leaf first). Reloaded on SIGHUP \[default\: none\]]:FILE:_default' \
'--operator-key=[Private key of the operator listener'\''s certificate (PEM) \[default\: none\]]:FILE:_default' \
'--operator-without-tls=[Allow the operator listener on a non-loopback address without TLS]::true|false:_default' \
'*--etcd=[Client URLs of etcd'\''s members. The fleet is then in etcd, and several nodes can serve it; all with \`http\`, or all with \`https\`; may be repeated]:URL:_default' \
'--node=[Name of this node in its cluster, unique among the running nodes; \`none\`\: the machine'\''s host name \[default\: none\]]:NAME:_default' \
'--etcd-prefix=[Key in etcd below which everything is stored \[default\: /notbefore/\]]:PREFIX:_default' \
'--etcd-ca=[Certificates of the authority of etcd'\''s certificates (PEM), for \`https\`. Renewed files are used for new connections \[default\: none\]]:FILE:_default' \
'--etcd-cert=[Client certificate for etcd (PEM, leaf first) \[default\: none\]]:FILE:_default' \
'--etcd-key=[Private key of the client certificate (PEM) \[default\: none\]]:FILE:_default' \
'--etcd-user=[User of etcd \[default\: none\]]:NAME:_default' \
'--etcd-password-file=[File with the user'\''s password \[default\: none\]]:FILE:_default' \
'--etcd-quota=[Quota of etcd'\''s members, for warnings before it is reached. It must equal their \`--quota-backend-bytes\`; members of etcd 3.6 and later report it themselves. \`none\`\: they have no quota \[default\: 2GiB\]]:SIZE:_default' \
'--format-level=[Newest format level of records that this node writes. A lower one than the release'\''s keeps the way back to the release before open (unused with one node) \[default\: 2\]]:N:_default' \
'--node-listen=[Listen address for the other nodes of a cluster, which forward changes to the leader (unused with one node). Port 0\: any free port. Beyond loopback it needs \`node.cert\`, \`node.key\` and \`node.ca\` \[default\: 127.0.0.1\:0\]]:ADDR:_default' \
'--node-cert=[Certificate chain of this node, for mutual TLS (PEM, leaf first; unused with one node). It must name the address of \`node.listen\`. Reloaded on SIGHUP \[default\: none\]]:FILE:_default' \
'--node-key=[Private key of this node'\''s certificate (PEM; unused with one node) \[default\: none\]]:FILE:_default' \
'--node-ca=[Certificates of the authority that has signed the certificates of all nodes (PEM; unused with one node) \[default\: none\]]:FILE:_default' \
'--notice=[Factor for all notice periods, for testing (0.01\: 15 minutes become 9 seconds) \[default\: 1.0\]]:FACTOR:_default' \
'--user-operations-max=[Live user operations per scope \[default\: 100\]]:N:_default' \
'--always-give-notice=[Give user operations their notice even if no guest of the scope has polled for a day]::true|false:_default' \
'--keep-history=[Retention of ended events and facts \[default\: 90d\]]:SPAN:_default' \
'--keep-history-bytes=[Size of ended events and facts, for example \`512MiB\`; above it the oldest are removed before their retention. With \`--etcd\` the default is \`512MiB\` \[default\: 16GiB\]]:SIZE:_default' \
'--driver=[How events are carried out\: \`simulated\` (not at all\: an event stays Started for its duration, then completes), \`manual\` (by external automation, with \`event start\` and \`event complete\`) or \`exec\` (one command per VM) \[default\: simulated\]]:KIND:_default' \
'--simulated-duration=[Time that the simulated driver keeps an event Started if its duration is unknown \[default\: 1m\]]:SPAN:_default' \
'--exec=[Executable to run for each VM; it receives the event in environment variables \[default\: none\]]:FILE:_default' \
'--exec-host=[Executable to run once for a host that reboots or freezes, after the commands of its VMs and before their events end \[default\: none\]]:FILE:_default' \
'--exec-timeout=[Timeout of the command; then it is killed and counts as failed \[default\: 10m\]]:SPAN:_default' \
'--exec-host-timeout=[The same for the command of a host \[default\: 30m\]]:SPAN:_default' \
'--exec-attempts=[Attempts before the event waits for \`event retry\`, or the operation for \`operation retry\` \[default\: 5\]]:N:_default' \
'--exec-backoff=[Back-off after the first failure; doubles with each further failure, 5 minutes at most \[default\: 5s\]]:SPAN:_default' \
'--exec-concurrency=[Commands that run at once; others are queued \[default\: 16\]]:N:_default' \
'*--exec-env=[Environment variables of the service that are passed to the command; may be repeated]:NAME:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--print-config[Print every setting with its value and source, and exit]' \
'(--print-config)--check-config[Check the configuration and exit]' \
'(--print-config --check-config)--demo[Run in memory with a small fleet, guests that poll and approve, and events, to try the console; on free ports if the usual ones are taken. Reads no configuration file; takes only --guest, --operator, --ready-file and --log-format]' \
'(--lenient)--strict[Require exactly \`Metadata\: true\` on every request, as Azure does today]' \
'(--strict)--lenient[Accept approvals without \`Metadata\` at every version, and the paths of 2017]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(agent)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__agent_commands" \
"*::: :->agent" \
&& ret=0

    case $state in
    (agent)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-agent-command-$line[1]:"
        case $line[1] in
            (run)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file \[env\: NOTBEFORE_AGENT_CONFIG\] \[default\: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml\]]:FILE:_files' \
'--endpoint=[URL of the platform'\''s metadata endpoint \[env\: NOTBEFORE_AGENT_ENDPOINT\] \[default\: discovered\]]:URL:_default' \
'--name=[This VM'\''s name \[env\: NOTBEFORE_AGENT_NAME\] \[default\: from instance metadata, else the host name\]]:NAME:_default' \
'--api-version=[Newest api-version to request \[env\: NOTBEFORE_AGENT_API_VERSION\] \[default\: 2020-07-01\]]:DATE:_default' \
'--state=[Journal directory, on a disk that survives the event \[env\: NOTBEFORE_AGENT_STATE\]]:DIR:_default' \
'--listen=[Listen address of the signals, or \`none\` \[env\: NOTBEFORE_AGENT_LISTEN\] \[default\: 127.0.0.1\:9256\]]:ADDR:_default' \
'--log=[Log filter\: a level, or levels per module \[env\: NOTBEFORE_AGENT_LOG\] \[default\: info\]]:FILTER:_default' \
'--log-format=[Log format, on standard error\: \`text\`, or \`json\` for one object per line \[env\: NOTBEFORE_AGENT_LOG_FORMAT\] \[default\: text\]]:FORMAT:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--dry-run[Log the actions without running them \[env\: NOTBEFORE_AGENT_DRY_RUN\]]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file \[env\: NOTBEFORE_AGENT_CONFIG\] \[default\: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml\]]:FILE:_files' \
'--endpoint=[URL of the platform'\''s metadata endpoint \[env\: NOTBEFORE_AGENT_ENDPOINT\] \[default\: discovered\]]:URL:_default' \
'--name=[This VM'\''s name \[env\: NOTBEFORE_AGENT_NAME\] \[default\: from instance metadata, else the host name\]]:NAME:_default' \
'--api-version=[Newest api-version to request \[env\: NOTBEFORE_AGENT_API_VERSION\] \[default\: 2020-07-01\]]:DATE:_default' \
'--state=[Journal directory, on a disk that survives the event \[env\: NOTBEFORE_AGENT_STATE\]]:DIR:_default' \
'--listen=[Listen address of the signals, or \`none\` \[env\: NOTBEFORE_AGENT_LISTEN\] \[default\: 127.0.0.1\:9256\]]:ADDR:_default' \
'--log=[Log filter\: a level, or levels per module \[env\: NOTBEFORE_AGENT_LOG\] \[default\: info\]]:FILTER:_default' \
'--log-format=[Log format, on standard error\: \`text\`, or \`json\` for one object per line \[env\: NOTBEFORE_AGENT_LOG_FORMAT\] \[default\: text\]]:FORMAT:_default' \
'--run=[Run the steps of this rule once each, as for an event, after confirmation (with --dry-run they are only printed)]:RULE:_default' \
'--type=[With --run\: the event'\''s type \[default\: the rule'\''s first type, or Reboot\]]:TYPE:_default' \
'--stage=[With --run\: the steps to run]:STAGE:((before\:"Steps before the event"
after\:"Steps after the event"
both\:"Steps before, then steps after"))' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--dry-run[Log the actions without running them \[env\: NOTBEFORE_AGENT_DRY_RUN\]]' \
'--offline[Do not contact the platform; with --run, the VM'\''s name is its host name]' \
'-y[With --run\: do not ask for confirmation]' \
'--yes[With --run\: do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file of the agent, if readable \[env\: NOTBEFORE_AGENT_CONFIG\] \[default\: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml\]]:FILE:_files' \
'--listen=[Listen address of the agent'\''s signals \[env\: NOTBEFORE_AGENT_LISTEN\] \[default\: from the file, else 127.0.0.1\:9256\]]:ADDR:_default' \
'--state=[Journal directory, read if the agent is not running \[env\: NOTBEFORE_AGENT_STATE\]]:DIR:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file of the agent, for its state directory \[env\: NOTBEFORE_AGENT_CONFIG\] \[default\: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml\]]:FILE:_files' \
'--state=[State directory of the agent \[env\: NOTBEFORE_AGENT_STATE\]]:DIR:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'::agent-past-event -- Show all facts of this event\: its id, or the first digits:_notbefore_names agent-past-events' \
&& ret=0
;;
(reload)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file of the agent, for its state directory \[env\: NOTBEFORE_AGENT_CONFIG\] \[default\: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml\]]:FILE:_files' \
'--state=[State directory of the agent \[env\: NOTBEFORE_AGENT_STATE\]]:DIR:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
'--config=[Configuration file of the agent, for its state directory \[env\: NOTBEFORE_AGENT_CONFIG\] \[default\: /etc/notbefore/agent.toml, on Windows %ProgramData%\\notbefore\\agent.toml\]]:FILE:_files' \
'--state=[State directory of the agent \[env\: NOTBEFORE_AGENT_STATE\]]:DIR:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--no-wait[Do not wait for the outcome]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':agent-event -- Event id, or its first digits:_notbefore_names agent-events' \
&& ret=0
;;
(sample)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__agent__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-agent-help-command-$line[1]:"
        case $line[1] in
            (run)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(reload)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(sample)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(status)
_arguments "${_arguments_options[@]}" : \
'--count=[With --watch\: exit after this many times]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--watch[Show it again every 2 seconds, until Ctrl-C]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(fleet)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__fleet_commands" \
"*::: :->fleet" \
&& ret=0

    case $state in
    (fleet)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-fleet-command-$line[1]:"
        case $line[1] in
            (apply)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--prune[Also remove scopes and VMs that an earlier file created and this one does not name]' \
'(--dry-run -y --yes)--check[Only check the file]' \
'--progress[Report progress every 10 seconds, even without a terminal]' \
'--allow-empty[Accept a file without scopes; with --prune it removes everything that files created]' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':file -- The file; - for standard input:_files' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--prune[Also show what --prune would remove]' \
'--progress[Report progress every 10 seconds, even without a terminal]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':file -- The file; - for standard input:_files' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__fleet__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-fleet-help-command-$line[1]:"
        case $line[1] in
            (apply)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(vm)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__vm_commands" \
"*::: :->vm" \
&& ret=0

    case $state in
    (vm)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-vm-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--scope=[Only VMs of this scope]:SCOPE:_notbefore_names scopes' \
'--host=[Only VMs on this host]:HOST:_notbefore_names hosts' \
'--limit=[Maximum number of lines]:N:_default' \
'--count=[With --watch\: exit after this many times]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--watch[Show it again every 2 seconds, until Ctrl-C]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm -- VM name, or the end of its path if the name is not unique:_notbefore_names vms' \
&& ret=0
;;
(log)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm -- VM name, or the end of its path if the name is not unique:_notbefore_names vms' \
&& ret=0
;;
(document)
_arguments "${_arguments_options[@]}" : \
'--api-version=[The api-version \[default\: the newest\]]:VERSION:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm -- VM name, or the end of its path if the name is not unique:_notbefore_names vms' \
&& ret=0
;;
(add)
_arguments "${_arguments_options[@]}" : \
'--scope=[Scope\: \[\[subscription/\]group/\]scope \[default\: a standalone scope named after the VM\]]:SCOPE:_notbefore_names scopes' \
'--kind=[Kind of the scope, if it is created]:KIND:(standalone availability-set cloud-service scale-set)' \
'*--address=[Source address of its requests; may be repeated]:IP:_default' \
'--update-domain=[]:UPDATE_DOMAIN:_default' \
'--fault-domain=[]:FAULT_DOMAIN:_default' \
'--zone=[]:ZONE:_default' \
'--host=[]:HOST:_notbefore_names hosts' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--spot[Spot VM\: may be evicted]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':name -- VM name:_default' \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm:_notbefore_names vms' \
&& ret=0
;;
(restart)
_arguments "${_arguments_options[@]}" : \
'--not-before=[Not before this time\: RFC 3339, a date, '\''2026-11-20 08\:00'\'' or '\''tomorrow 02\:00'\'' (UTC) \[default\: the minimum notice\]]:TIME:_default' \
'--in=[Not before this long from now, for example 20m, 1h30m, 7d, 2w]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--dry-run[Only show the plan]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm -- VM name, or the end of its path if the name is not unique:_notbefore_names vms' \
&& ret=0
;;
(redeploy)
_arguments "${_arguments_options[@]}" : \
'--not-before=[Not before this time\: RFC 3339, a date, '\''2026-11-20 08\:00'\'' or '\''tomorrow 02\:00'\'' (UTC) \[default\: the minimum notice\]]:TIME:_default' \
'--in=[Not before this long from now, for example 20m, 1h30m, 7d, 2w]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--dry-run[Only show the plan]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm -- VM name, or the end of its path if the name is not unique:_notbefore_names vms' \
&& ret=0
;;
(evict)
_arguments "${_arguments_options[@]}" : \
'--not-before=[Not before this time\: RFC 3339, a date, '\''2026-11-20 08\:00'\'' or '\''tomorrow 02\:00'\'' (UTC) \[default\: the minimum notice\]]:TIME:_default' \
'--in=[Not before this long from now, for example 20m, 1h30m, 7d, 2w]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--dry-run[Only show the plan]' \
'--force[Evict the VM even if it is not a Spot VM]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm -- VM name, or the end of its path if the name is not unique:_notbefore_names vms' \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::vms -- The VMs:_notbefore_names vms' \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':vm:_notbefore_names vms' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__vm__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-vm-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(log)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(document)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(add)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(restart)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(redeploy)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(evict)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(host)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__host_commands" \
"*::: :->host" \
&& ret=0

    case $state in
    (host)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-host-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--limit=[Maximum number of lines]:N:_default' \
'--count=[With --watch\: exit after this many times]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--watch[Show it again every 2 seconds, until Ctrl-C]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':host:_notbefore_names hosts' \
&& ret=0
;;
(maintain)
_arguments "${_arguments_options[@]}" : \
'--type=[What happens to the VMs]:TYPE:((freeze\:"Paused for some seconds"
reboot\:"Restarted, all at once"
redeploy\:"Moved to other hosts, each VM separately"
live-migration\:"Moved to other hosts while running"))' \
'--not-before=[Not before this time\: RFC 3339, a date, '\''2026-11-20 08\:00'\'' or '\''tomorrow 02\:00'\'' (UTC) \[default\: the minimum notice\]]:TIME:_default' \
'--in=[Not before this long from now, for example 20m, 1h30m, 7d, 2w]:SPAN:_default' \
'--description=[Event description for guests \[default\: the cause'\''s description\]]:DESCRIPTION:_default' \
'--duration=[Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown]:SPAN:_default' \
'--timeout=[Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'(--dry-run)--wait[Wait until the operation is closed and show progress; Ctrl-C leaves it running]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::hosts -- The hosts:_notbefore_names hosts' \
&& ret=0
;;
(degraded)
_arguments "${_arguments_options[@]}" : \
'--not-before=[Not before this time\: RFC 3339, a date, '\''2026-11-20 08\:00'\'' or '\''tomorrow 02\:00'\'' (UTC) \[default\: the minimum notice\]]:TIME:_default' \
'--in=[Not before this long from now, for example 20m, 1h30m, 7d, 2w]:SPAN:_default' \
'--description=[Event description for guests \[default\: the cause'\''s description\]]:DESCRIPTION:_default' \
'--duration=[Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown]:SPAN:_default' \
'--timeout=[Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'(--dry-run)--wait[Wait until the operation is closed and show progress; Ctrl-C leaves it running]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::hosts -- The hosts:_notbefore_names hosts' \
&& ret=0
;;
(failed)
_arguments "${_arguments_options[@]}" : \
'--description=[Event description for guests \[default\: the cause'\''s description\]]:DESCRIPTION:_default' \
'--duration=[Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown]:SPAN:_default' \
'--timeout=[Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'(--dry-run)--wait[Wait until the operation is closed and show progress; Ctrl-C leaves it running]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::hosts -- The hosts:_notbefore_names hosts' \
&& ret=0
;;
(ok)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::hosts -- The hosts:_notbefore_names hosts' \
&& ret=0
;;
(forget)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::hosts -- The hosts:_notbefore_names hosts' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__host__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-host-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(maintain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(degraded)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(failed)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(ok)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(forget)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(event)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__event_commands" \
"*::: :->event" \
&& ret=0

    case $state in
    (event)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-event-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--scope=[Only events of this scope]:SCOPE:_notbefore_names scopes' \
'--vm=[Only events of this VM]:VM:_notbefore_names vms' \
'--host=[Only events of VMs that were on this host when the event was announced]:HOST:_notbefore_names hosts' \
'--type=[Only events of this type]:TYPE:(freeze reboot redeploy preempt terminate spotrebalancerecommendation)' \
'--status=[Only events with this status]:STATUS:(scheduled started advisory)' \
'--sort=[The order\: started events, then scheduled events by NotBefore, then advisories; or by scope]:SORT:(scope time)' \
'--limit=[Maximum number of lines]:N:_default' \
'--count=[With --watch\: exit after this many times]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--watch[Show it again every 2 seconds, until Ctrl-C]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':event -- Event id, or its first digits:_notbefore_names events' \
&& ret=0
;;
(schedule)
_arguments "${_arguments_options[@]}" : \
'--type=[The event'\''s type]:TYPE:(freeze reboot redeploy preempt terminate spotrebalancerecommendation)' \
'--cause=[The exact cause, instead of a type]:CAUSE:(host-freeze host-reboot host-redeploy live-migration predicted-failure host-failure eviction rebalance deletion user-restart user-redeploy)' \
'--not-before=[Not before this time\: RFC 3339, a date, '\''2026-11-20 08\:00'\'' or '\''tomorrow 02\:00'\'' (UTC) \[default\: the minimum notice\]]:TIME:_default' \
'--in=[Not before this long from now, for example 20m, 1h30m, 7d, 2w]:SPAN:_default' \
'--description=[Event description for guests \[default\: the cause'\''s description\]]:DESCRIPTION:_default' \
'--duration=[Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--force[With Preempt and SpotRebalanceRecommendation\: also VMs that are not Spot VMs]' \
'--dry-run[Only show the plan]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::vms -- The VMs:_notbefore_names vms' \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(complete)
_arguments "${_arguments_options[@]}" : \
'*--host=[New host of a redeployed VM; may be repeated. Only with one event]:VM=HOST:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
'--for=[Stage to wait for]:STAGE:((read\:"Each of its running VMs has read it"
approved\:"A guest or an operator has approved it"
started\:"It has started"
ended\:"It is completed or cancelled"))' \
'--timeout=[Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
'--since=[Only events that ended within this span, or since this time]:SPAN|TIME:_default' \
'--until=[Only events that ended longer ago than this span, or before this time]:SPAN|TIME:_default' \
'--scope=[Only events of this scope]:SCOPE:_notbefore_names scopes' \
'--vm=[Only events of this VM\: id, name, or the end of its path]:VM:_notbefore_names vms' \
'--host=[Only events of VMs that were on this host]:HOST:_notbefore_names hosts' \
'--type=[Only events of this type]:TYPE:(freeze reboot redeploy preempt terminate spotrebalancerecommendation)' \
'--outcome=[Only events with this outcome]:OUTCOME:(completed cancelled)' \
'--limit=[Maximum number of events]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--newest[Newest first]' \
'(--newest --limit)--summary[Count them by day, type and outcome instead, and show how long approvals took]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(watch)
_arguments "${_arguments_options[@]}" : \
'--count=[Exit after this many changes]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__event__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-event-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(schedule)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(complete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(watch)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(operation)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__operation_commands" \
"*::: :->operation" \
&& ret=0

    case $state in
    (operation)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-operation-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--host=[Only operations on this host]:HOST:_notbefore_names hosts' \
'--type=[Only operations whose events have this type]:TYPE:(freeze reboot redeploy preempt terminate spotrebalancerecommendation)' \
'--limit=[Maximum number of lines]:N:_default' \
'--count=[With --watch\: exit after this many times]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--watch[Show it again every 2 seconds, until Ctrl-C]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':operation -- Operation id, or its first digits:_notbefore_names operations' \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::operations -- Operation ids, or their first digits:_notbefore_names operations' \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::operations -- The operations:_notbefore_names operations' \
&& ret=0
;;
(complete)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::operations -- The operations:_notbefore_names operations' \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::operations -- The operations:_notbefore_names operations' \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
'--for=[Stage to wait for]:STAGE:((read\:"Each of its running VMs has read it"
approved\:"A guest or an operator has approved it"
started\:"It has started"
ended\:"It is completed or cancelled"))' \
'--timeout=[Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::operations -- The operations:_notbefore_names operations' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__operation__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-operation-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(complete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(token)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__token_commands" \
"*::: :->token" \
&& ret=0

    case $state in
    (token)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-token-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
'--role=[Role]:ROLE:(operator tenant viewer)' \
'*--on=[Path of the role, with everything below it\: subscription\[/group\[/scope\]\], or / for everywhere; may be repeated]:PATH:_default' \
'*--grant=[Another role and its path; may be repeated]:ROLE:PATH:_default' \
'--expires=[Lifetime of the token \[default\: until revoked\]]:SPAN:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':name -- Token name, shown in the audit trail:_default' \
&& ret=0
;;
(init)
_arguments "${_arguments_options[@]}" : \
'*--etcd=[Client URLs of etcd'\''s members, instead of a data directory]:URL:_default' \
'--etcd-prefix=[Key in etcd below which everything is stored]:PREFIX:_default' \
'--etcd-ca=[Certificates of the authority of etcd'\''s certificates (PEM)]:FILE:_files' \
'--etcd-cert=[Client certificate for etcd (PEM)]:FILE:_files' \
'--etcd-key=[Private key of the client certificate (PEM)]:FILE:_files' \
'--etcd-user=[User of etcd]:NAME:_default' \
'--etcd-password-file=[File with the user'\''s password]:FILE:_files' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':file -- The new file for the token'\''s secret; it must not exist:_files' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(revoke)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':name -- Token name:_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__token__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-token-help-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(init)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(revoke)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(fault)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__fault_commands" \
"*::: :->fault" \
&& ret=0

    case $state in
    (fault)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-fault-command-$line[1]:"
        case $line[1] in
            (add)
_arguments "${_arguments_options[@]}" : \
'--vm=[Only for this VM\: its id, or the end of its path \[default\: all VMs\]]:VM:_notbefore_names vms' \
'--on=[Requests that it affects]:ON:(polls approvals all)' \
'--every=[Affect every Nth request of each VM only]:N:_default' \
'--count=[End after N effects]:N:_default' \
'--for=[End after this time]:SPAN:_default' \
'--seconds=[late-first-answer, slow-body\: how long; clock-skew\: how far the platform'\''s clock is ahead, negative for behind]:N:_default' \
'--status=[status\: the status of the response, 400 to 599]:N:_default' \
'--by=[skip-incarnations\: how far the incarnation rises with each change]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':kind -- What the fault does:(late-first-answer reset status strict-header not-enabled reset-incarnation skip-incarnations hide-events clock-skew missing-events raw-newlines text-plain empty-body slow-body)' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(clear)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'::id -- Number of the fault \[default\: all faults\]:_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__fault__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-fault-help-command-$line[1]:"
        case $line[1] in
            (add)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(clear)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(clock)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__clock_commands" \
"*::: :->clock" \
&& ret=0

    case $state in
    (clock)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-clock-command-$line[1]:"
        case $line[1] in
            (show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(accept)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__clock__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-clock-help-command-$line[1]:"
        case $line[1] in
            (show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(accept)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(cluster)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__cluster_commands" \
"*::: :->cluster" \
&& ret=0

    case $state in
    (cluster)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-cluster-command-$line[1]:"
        case $line[1] in
            (status)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(hand-over)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(upgrade)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_notbefore__subcmd__cluster__subcmd__upgrade_commands" \
"*::: :->upgrade" \
&& ret=0

    case $state in
    (upgrade)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-cluster-upgrade-command-$line[1]:"
        case $line[1] in
            (finish)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-cluster-upgrade-help-command-$line[1]:"
        case $line[1] in
            (finish)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(forget)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(-y --yes)--dry-run[Only show the plan]' \
'-y[Do not ask for confirmation]' \
'--yes[Do not ask for confirmation]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':node -- Name of the node, as in '\''cluster status'\'':_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__cluster__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-cluster-help-command-$line[1]:"
        case $line[1] in
            (status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(hand-over)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(upgrade)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade_commands" \
"*::: :->upgrade" \
&& ret=0

    case $state in
    (upgrade)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-cluster-help-upgrade-command-$line[1]:"
        case $line[1] in
            (finish)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(forget)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(audit)
_arguments "${_arguments_options[@]}" : \
'--since=[Only entries within this span, or since this time]:SPAN|TIME:_default' \
'--until=[Only entries older than this span, or before this time]:SPAN|TIME:_default' \
'--actor=[Only entries of this actor\: the name of a token or VM, \`timer\` or \`service\`]:NAME:_default' \
'--limit=[Maximum number of entries]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'(--changed)--refused[Only refusals]' \
'--changed[Only changes]' \
'--newest[Newest entries first]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(console)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(healthy)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--alive[Only check that the process answers, not that it can store changes]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(openapi)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(export)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--without-tokens[Leave out operator tokens (their hashes and roles)]' \
'--skip-damaged[Read the store of a stopped service directly; skip damaged records and records that depend on them]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'::file -- The file; - for standard output \[default\: -\]:_files' \
&& ret=0
;;
(import)
_arguments "${_arguments_options[@]}" : \
'*--etcd=[Client URLs of etcd'\''s members, instead of a data directory]:URL:_default' \
'--etcd-prefix=[Key in etcd below which everything is stored]:PREFIX:_default' \
'--etcd-ca=[Certificates of the authority of etcd'\''s certificates (PEM)]:FILE:_files' \
'--etcd-cert=[Client certificate for etcd (PEM)]:FILE:_files' \
'--etcd-key=[Private key of the client certificate (PEM)]:FILE:_files' \
'--etcd-user=[User of etcd]:NAME:_default' \
'--etcd-password-file=[File with the user'\''s password]:FILE:_files' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--check[Only check the file]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':file -- The file; - for standard input:_files' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(rehearse)
_arguments "${_arguments_options[@]}" : \
'--compress=[Divide the scenario'\''s waits by this]:N:_default' \
'--floor=[Shortest wait after division]:SPAN:_default' \
'--polls-every=[Longest allowed gap between two polls, instead of the scenario'\''s; raises --floor to twice that]:SPAN:_default' \
'--drained=[How the handler shows that the VM is drained\: line\:REGEX, file\:PATH ({vm} is the VM'\''s name) or call]:SOURCE:_default' \
'--restored=[How the handler shows that the VM is restored]:SOURCE:_default' \
'--repeat=[Run the handler again, so long after each exit, as cron or Pacemaker do]:SPAN:_default' \
'--record=[Write what happened and the verdict to this file (JSON), for '\''rehearse report'\'']:FILE:_files' \
'--junit=[Write the verdict to this file as JUnit XML]:FILE:_files' \
'--html=[Write a page with timeline and verdict to this file]:FILE:_files' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--netns[Give each handler a network of its own, in which 169.254.169.254 is the rehearsal]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':scenario -- A scenario of '\''rehearse list'\'', or a file:_default' \
'::misplaced -- Words of a handler that is not after --, for the error message:_default' \
'::handler -- The handler and its arguments; without one, point a handler at the address that is printed:_default' \
":: :_notbefore__subcmd__rehearse_commands" \
"*::: :->rehearse" \
&& ret=0

    case $state in
    (rehearse)
        words=($line[4] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-rehearse-command-$line[4]:"
        case $line[4] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':scenario -- A scenario of '\''rehearse list'\'':_default' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'*--only=[Only these scenarios; may be repeated]:SCENARIO:_default' \
'--side-by-side=[Scenarios at a time]:N:_default' \
'--compress=[Divide the scenario'\''s waits by this]:N:_default' \
'--floor=[Shortest wait after division]:SPAN:_default' \
'--polls-every=[Longest allowed gap between two polls, instead of the scenario'\''s; raises --floor to twice that]:SPAN:_default' \
'--drained=[How the handler shows that the VM is drained\: line\:REGEX, file\:PATH ({vm} is the VM'\''s name) or call]:SOURCE:_default' \
'--restored=[How the handler shows that the VM is restored]:SOURCE:_default' \
'--repeat=[Run the handler again, so long after each exit, as cron or Pacemaker do]:SPAN:_default' \
'--record=[Write what happened and the verdict to this file (JSON), for '\''rehearse report'\'']:FILE:_files' \
'--junit=[Write the verdict to this file as JUnit XML]:FILE:_files' \
'--html=[Write a page with timeline and verdict to this file]:FILE:_files' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--netns[Give each handler a network of its own, in which 169.254.169.254 is the rehearsal]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::misplaced -- Words of a handler that is not after --, for the error message:_default' \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
'-o+[The page \[default\: report.html; none with --output json or yaml\]]:FILE:_files' \
'--html=[The page \[default\: report.html; none with --output json or yaml\]]:FILE:_files' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::files -- Files of --record:_files' \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__rehearse__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-rehearse-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(get)
_arguments "${_arguments_options[@]}" : \
'--endpoint=[URL of the platform'\''s metadata endpoint \[default\: discovered from \$SCHEDULEDEVENTSIP, 169.254.169.254, DHCP option 245\]]:URL:_default' \
'--api-version=[Newest api-version to request; older ones are tried only if the platform refuses it]:DATE:_default' \
'--name=[VM name in the events'\'' resources \[default\: from instance metadata, else the host name\]]:VM:_notbefore_names vms' \
'--count=[With --watch\: exit after this many changes]:N:_default' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--watch[Keep polling and print a line per change, until Ctrl-C]' \
'(--watch)--raw[Print the document unchanged; control characters are escaped at a terminal]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
'--endpoint=[URL of the platform'\''s metadata endpoint \[default\: discovered from \$SCHEDULEDEVENTSIP, 169.254.169.254, DHCP option 245\]]:URL:_default' \
'--api-version=[Newest api-version to request; older ones are tried only if the platform refuses it]:DATE:_default' \
'--name=[VM name in the events'\'' resources \[default\: from instance metadata, else the host name\]]:VM:_notbefore_names vms' \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--all-mine[All events that wait for approval and name this VM (name from instance metadata, else --name)]' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
'*::events -- Event ids, or their first digits:_notbefore_names events' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'--data=[Data directory of the service, with its token \[default\: \$STATE_DIRECTORY or ./notbefore-data\]]:DIR:_files' \
'--operator-url=[URL of a remote service'\''s operator listener]:URL:_default' \
'--operator-ca=[CA certificate, or the server'\''s own certificate, to trust for a remote service (PEM)]:FILE:_files' \
'--operator-without-tls=[Send the token to a remote service over plain http, where others on the network can read it]::true|false:(true false)' \
'-o+[Output format]:OUTPUT:(table wide json yaml name)' \
'--output=[Output format]:OUTPUT:(table wide json yaml name)' \
'--local-time[Show local times with their offset, instead of relative times and UTC]' \
'-h[Print help]' \
'--help[Print help]' \
':shell -- The shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-command-$line[1]:"
        case $line[1] in
            (serve)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(agent)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__agent_commands" \
"*::: :->agent" \
&& ret=0

    case $state in
    (agent)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-agent-command-$line[1]:"
        case $line[1] in
            (run)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(reload)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(sample)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fleet)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__fleet_commands" \
"*::: :->fleet" \
&& ret=0

    case $state in
    (fleet)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-fleet-command-$line[1]:"
        case $line[1] in
            (apply)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(vm)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__vm_commands" \
"*::: :->vm" \
&& ret=0

    case $state in
    (vm)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-vm-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(log)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(document)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(add)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(restart)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(redeploy)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(evict)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(host)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__host_commands" \
"*::: :->host" \
&& ret=0

    case $state in
    (host)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-host-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(maintain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(degraded)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(failed)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(ok)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(forget)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(event)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__event_commands" \
"*::: :->event" \
&& ret=0

    case $state in
    (event)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-event-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(schedule)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(complete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(watch)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(operation)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__operation_commands" \
"*::: :->operation" \
&& ret=0

    case $state in
    (operation)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-operation-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(complete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(token)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__token_commands" \
"*::: :->token" \
&& ret=0

    case $state in
    (token)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-token-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(init)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(revoke)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(fault)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__fault_commands" \
"*::: :->fault" \
&& ret=0

    case $state in
    (fault)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-fault-command-$line[1]:"
        case $line[1] in
            (add)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(clear)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(clock)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__clock_commands" \
"*::: :->clock" \
&& ret=0

    case $state in
    (clock)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-clock-command-$line[1]:"
        case $line[1] in
            (show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(accept)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(cluster)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__cluster_commands" \
"*::: :->cluster" \
&& ret=0

    case $state in
    (cluster)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-cluster-command-$line[1]:"
        case $line[1] in
            (status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(hand-over)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(upgrade)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade_commands" \
"*::: :->upgrade" \
&& ret=0

    case $state in
    (upgrade)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-cluster-upgrade-command-$line[1]:"
        case $line[1] in
            (finish)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(forget)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(audit)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(console)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(healthy)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(openapi)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(export)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(import)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(rehearse)
_arguments "${_arguments_options[@]}" : \
":: :_notbefore__subcmd__help__subcmd__rehearse_commands" \
"*::: :->rehearse" \
&& ret=0

    case $state in
    (rehearse)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:notbefore-help-rehearse-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
}

(( $+functions[_notbefore_commands] )) ||
_notbefore_commands() {
    local commands; commands=(
'serve:Run the service' \
'agent:On a VM\: prepare for events, approve them, and undo the preparation afterwards' \
'status:Show what happens in the next hour, what has failed, and the state of the service' \
'fleet:Describe scopes and VMs in a file and apply it' \
'vm:List and manage VMs\: restart, redeploy, evict, delete' \
'host:List hosts, and schedule maintenance for all VMs of a host' \
'event:Schedule, follow, start and complete events' \
'operation:Follow, start, complete and cancel operations (requests that may span scopes)' \
'token:Manage tokens for the operator API and their roles' \
'fault:Make the guest listener misbehave, to test handlers (serve --faults)' \
'clock:Show whether the service trusts its system clock, and accept a jump' \
'cluster:Show the nodes of a cluster and etcd, hand the lead over, finish an upgrade' \
'audit:Show the audit trail\: changes and refusals, with actor and source address' \
'console:Print a link that opens the console in a browser, signed in' \
'healthy:Ask the service once whether it works; the exit code says so' \
'openapi:Print the OpenAPI description of the operator API' \
'export:Export the service'\''s data to a file, for backup or to move it to another machine' \
'import:Create a data directory from an export, before the service starts' \
'check:Check the store of a stopped service\: every record, the record counts, and their consistency' \
'rehearse:Play events to a maintenance handler, watch it, and give a verdict' \
'get:Inside a VM\: show its scheduled events' \
'approve:Inside a VM\: approve events, so that they may start' \
'completions:Print a shell completion script' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent_commands] )) ||
_notbefore__subcmd__agent_commands() {
    local commands; commands=(
'run:Run the agent until it is stopped' \
'check:Check the configuration, its hooks and the connection to the platform' \
'status:Show the events that the agent handles and their progress' \
'history:Show the last 100 events\: what the agent did, when, and how it ended' \
'reload:Make the running agent read its configuration again, and print the result' \
'retry:Retry the failed step or approval of an event, and wait for the outcome' \
'sample:Print a sample configuration' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore agent commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__check_commands] )) ||
_notbefore__subcmd__agent__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent check commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help_commands] )) ||
_notbefore__subcmd__agent__subcmd__help_commands() {
    local commands; commands=(
'run:Run the agent until it is stopped' \
'check:Check the configuration, its hooks and the connection to the platform' \
'status:Show the events that the agent handles and their progress' \
'history:Show the last 100 events\: what the agent did, when, and how it ended' \
'reload:Make the running agent read its configuration again, and print the result' \
'retry:Retry the failed step or approval of an event, and wait for the outcome' \
'sample:Print a sample configuration' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore agent help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__check_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help check commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__history_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help history commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__reload_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__reload_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help reload commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__retry_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__run_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help run commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__sample_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__sample_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help sample commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__help__subcmd__status_commands] )) ||
_notbefore__subcmd__agent__subcmd__help__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent help status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__history_commands] )) ||
_notbefore__subcmd__agent__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent history commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__reload_commands] )) ||
_notbefore__subcmd__agent__subcmd__reload_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent reload commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__retry_commands] )) ||
_notbefore__subcmd__agent__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__run_commands] )) ||
_notbefore__subcmd__agent__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent run commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__sample_commands] )) ||
_notbefore__subcmd__agent__subcmd__sample_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent sample commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__agent__subcmd__status_commands] )) ||
_notbefore__subcmd__agent__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore agent status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__approve_commands] )) ||
_notbefore__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore approve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__audit_commands] )) ||
_notbefore__subcmd__audit_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore audit commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__check_commands] )) ||
_notbefore__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore check commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock_commands] )) ||
_notbefore__subcmd__clock_commands() {
    local commands; commands=(
'show:Show the service'\''s clock and whether it is trusted' \
'accept:Trust the clock\: events that are due by it start' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore clock commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock__subcmd__accept_commands] )) ||
_notbefore__subcmd__clock__subcmd__accept_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore clock accept commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock__subcmd__help_commands] )) ||
_notbefore__subcmd__clock__subcmd__help_commands() {
    local commands; commands=(
'show:Show the service'\''s clock and whether it is trusted' \
'accept:Trust the clock\: events that are due by it start' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore clock help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock__subcmd__help__subcmd__accept_commands] )) ||
_notbefore__subcmd__clock__subcmd__help__subcmd__accept_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore clock help accept commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__clock__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore clock help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__clock__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore clock help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__clock__subcmd__show_commands] )) ||
_notbefore__subcmd__clock__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore clock show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster_commands] )) ||
_notbefore__subcmd__cluster_commands() {
    local commands; commands=(
'status:Show the nodes, the leader, etcd, and what is wrong' \
'hand-over:Make the leader give up the lead, so that another node takes it' \
'upgrade:Rolling upgrades of the nodes' \
'forget:Remove a node that does not run any more from the list of nodes' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore cluster commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__forget_commands] )) ||
_notbefore__subcmd__cluster__subcmd__forget_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster forget commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__hand-over_commands] )) ||
_notbefore__subcmd__cluster__subcmd__hand-over_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster hand-over commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help_commands() {
    local commands; commands=(
'status:Show the nodes, the leader, etcd, and what is wrong' \
'hand-over:Make the leader give up the lead, so that another node takes it' \
'upgrade:Rolling upgrades of the nodes' \
'forget:Remove a node that does not run any more from the list of nodes' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore cluster help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help__subcmd__forget_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help__subcmd__forget_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster help forget commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help__subcmd__hand-over_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help__subcmd__hand-over_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster help hand-over commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help__subcmd__status_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster help status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade_commands() {
    local commands; commands=(
'finish:Let all nodes write the newest format level that each of them can' \
    )
    _describe -t commands 'notbefore cluster help upgrade commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade__subcmd__finish_commands] )) ||
_notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade__subcmd__finish_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster help upgrade finish commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__status_commands] )) ||
_notbefore__subcmd__cluster__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__upgrade_commands] )) ||
_notbefore__subcmd__cluster__subcmd__upgrade_commands() {
    local commands; commands=(
'finish:Let all nodes write the newest format level that each of them can' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore cluster upgrade commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__finish_commands] )) ||
_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__finish_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster upgrade finish commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help_commands] )) ||
_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help_commands() {
    local commands; commands=(
'finish:Let all nodes write the newest format level that each of them can' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore cluster upgrade help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__finish_commands] )) ||
_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__finish_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster upgrade help finish commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore cluster upgrade help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__completions_commands] )) ||
_notbefore__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore completions commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__console_commands] )) ||
_notbefore__subcmd__console_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore console commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event_commands] )) ||
_notbefore__subcmd__event_commands() {
    local commands; commands=(
'list:List scheduled and started events, and advisories, in order of time' \
'show:Show one event with its full trail, even after it has ended' \
'schedule:Schedule an event for VMs' \
'cancel:Cancel events that have not started' \
'approve:Approve events on behalf of their guests' \
'start:Start events now' \
'complete:Report that events were carried out' \
'retry:Retry the exec driver'\''s commands that have failed or wait for a retry' \
'wait:Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running' \
'history:List events that have ended, oldest first' \
'watch:Print changes of events as they happen\: scheduled, read, approved, started, ended' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore event commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__approve_commands] )) ||
_notbefore__subcmd__event__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event approve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__cancel_commands] )) ||
_notbefore__subcmd__event__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event cancel commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__complete_commands] )) ||
_notbefore__subcmd__event__subcmd__complete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event complete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help_commands] )) ||
_notbefore__subcmd__event__subcmd__help_commands() {
    local commands; commands=(
'list:List scheduled and started events, and advisories, in order of time' \
'show:Show one event with its full trail, even after it has ended' \
'schedule:Schedule an event for VMs' \
'cancel:Cancel events that have not started' \
'approve:Approve events on behalf of their guests' \
'start:Start events now' \
'complete:Report that events were carried out' \
'retry:Retry the exec driver'\''s commands that have failed or wait for a retry' \
'wait:Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running' \
'history:List events that have ended, oldest first' \
'watch:Print changes of events as they happen\: scheduled, read, approved, started, ended' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore event help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__approve_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help approve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__cancel_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help cancel commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__complete_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__complete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help complete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__history_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help history commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__retry_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__schedule_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__schedule_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help schedule commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__start_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__wait_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help wait commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__help__subcmd__watch_commands] )) ||
_notbefore__subcmd__event__subcmd__help__subcmd__watch_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event help watch commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__history_commands] )) ||
_notbefore__subcmd__event__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event history commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__list_commands] )) ||
_notbefore__subcmd__event__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__retry_commands] )) ||
_notbefore__subcmd__event__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__schedule_commands] )) ||
_notbefore__subcmd__event__subcmd__schedule_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event schedule commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__show_commands] )) ||
_notbefore__subcmd__event__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__start_commands] )) ||
_notbefore__subcmd__event__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__wait_commands] )) ||
_notbefore__subcmd__event__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event wait commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__event__subcmd__watch_commands] )) ||
_notbefore__subcmd__event__subcmd__watch_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore event watch commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__export_commands] )) ||
_notbefore__subcmd__export_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore export commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault_commands] )) ||
_notbefore__subcmd__fault_commands() {
    local commands; commands=(
'add:Add a fault\: guests get wrong, late or no answers' \
'list:List the active faults and how often each had an effect' \
'clear:End a fault, or all of them' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore fault commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__add_commands] )) ||
_notbefore__subcmd__fault__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault add commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__clear_commands] )) ||
_notbefore__subcmd__fault__subcmd__clear_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault clear commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__help_commands] )) ||
_notbefore__subcmd__fault__subcmd__help_commands() {
    local commands; commands=(
'add:Add a fault\: guests get wrong, late or no answers' \
'list:List the active faults and how often each had an effect' \
'clear:End a fault, or all of them' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore fault help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__help__subcmd__add_commands] )) ||
_notbefore__subcmd__fault__subcmd__help__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault help add commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__help__subcmd__clear_commands] )) ||
_notbefore__subcmd__fault__subcmd__help__subcmd__clear_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault help clear commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__fault__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__fault__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fault__subcmd__list_commands] )) ||
_notbefore__subcmd__fault__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fault list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet_commands] )) ||
_notbefore__subcmd__fleet_commands() {
    local commands; commands=(
'apply:Apply a fleet file (idempotent)' \
'diff:Show what applying a file would add, change and remove, and which live events would end' \
'show:Show scopes with their number of VMs and events' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore fleet commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__apply_commands] )) ||
_notbefore__subcmd__fleet__subcmd__apply_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet apply commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__diff_commands] )) ||
_notbefore__subcmd__fleet__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet diff commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__help_commands] )) ||
_notbefore__subcmd__fleet__subcmd__help_commands() {
    local commands; commands=(
'apply:Apply a fleet file (idempotent)' \
'diff:Show what applying a file would add, change and remove, and which live events would end' \
'show:Show scopes with their number of VMs and events' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore fleet help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__help__subcmd__apply_commands] )) ||
_notbefore__subcmd__fleet__subcmd__help__subcmd__apply_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet help apply commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__help__subcmd__diff_commands] )) ||
_notbefore__subcmd__fleet__subcmd__help__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet help diff commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__fleet__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__fleet__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__fleet__subcmd__show_commands] )) ||
_notbefore__subcmd__fleet__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore fleet show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__get_commands] )) ||
_notbefore__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore get commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__healthy_commands] )) ||
_notbefore__subcmd__healthy_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore healthy commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help_commands] )) ||
_notbefore__subcmd__help_commands() {
    local commands; commands=(
'serve:Run the service' \
'agent:On a VM\: prepare for events, approve them, and undo the preparation afterwards' \
'status:Show what happens in the next hour, what has failed, and the state of the service' \
'fleet:Describe scopes and VMs in a file and apply it' \
'vm:List and manage VMs\: restart, redeploy, evict, delete' \
'host:List hosts, and schedule maintenance for all VMs of a host' \
'event:Schedule, follow, start and complete events' \
'operation:Follow, start, complete and cancel operations (requests that may span scopes)' \
'token:Manage tokens for the operator API and their roles' \
'fault:Make the guest listener misbehave, to test handlers (serve --faults)' \
'clock:Show whether the service trusts its system clock, and accept a jump' \
'cluster:Show the nodes of a cluster and etcd, hand the lead over, finish an upgrade' \
'audit:Show the audit trail\: changes and refusals, with actor and source address' \
'console:Print a link that opens the console in a browser, signed in' \
'healthy:Ask the service once whether it works; the exit code says so' \
'openapi:Print the OpenAPI description of the operator API' \
'export:Export the service'\''s data to a file, for backup or to move it to another machine' \
'import:Create a data directory from an export, before the service starts' \
'check:Check the store of a stopped service\: every record, the record counts, and their consistency' \
'rehearse:Play events to a maintenance handler, watch it, and give a verdict' \
'get:Inside a VM\: show its scheduled events' \
'approve:Inside a VM\: approve events, so that they may start' \
'completions:Print a shell completion script' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent_commands] )) ||
_notbefore__subcmd__help__subcmd__agent_commands() {
    local commands; commands=(
'run:Run the agent until it is stopped' \
'check:Check the configuration, its hooks and the connection to the platform' \
'status:Show the events that the agent handles and their progress' \
'history:Show the last 100 events\: what the agent did, when, and how it ended' \
'reload:Make the running agent read its configuration again, and print the result' \
'retry:Retry the failed step or approval of an event, and wait for the outcome' \
'sample:Print a sample configuration' \
    )
    _describe -t commands 'notbefore help agent commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__check_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent check commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__history_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent history commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__reload_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__reload_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent reload commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__retry_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__run_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent run commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__sample_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__sample_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent sample commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__agent__subcmd__status_commands] )) ||
_notbefore__subcmd__help__subcmd__agent__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help agent status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__approve_commands] )) ||
_notbefore__subcmd__help__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help approve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__audit_commands] )) ||
_notbefore__subcmd__help__subcmd__audit_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help audit commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__check_commands] )) ||
_notbefore__subcmd__help__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help check commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__clock_commands] )) ||
_notbefore__subcmd__help__subcmd__clock_commands() {
    local commands; commands=(
'show:Show the service'\''s clock and whether it is trusted' \
'accept:Trust the clock\: events that are due by it start' \
    )
    _describe -t commands 'notbefore help clock commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__clock__subcmd__accept_commands] )) ||
_notbefore__subcmd__help__subcmd__clock__subcmd__accept_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help clock accept commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__clock__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__clock__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help clock show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__cluster_commands] )) ||
_notbefore__subcmd__help__subcmd__cluster_commands() {
    local commands; commands=(
'status:Show the nodes, the leader, etcd, and what is wrong' \
'hand-over:Make the leader give up the lead, so that another node takes it' \
'upgrade:Rolling upgrades of the nodes' \
'forget:Remove a node that does not run any more from the list of nodes' \
    )
    _describe -t commands 'notbefore help cluster commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__cluster__subcmd__forget_commands] )) ||
_notbefore__subcmd__help__subcmd__cluster__subcmd__forget_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help cluster forget commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__cluster__subcmd__hand-over_commands] )) ||
_notbefore__subcmd__help__subcmd__cluster__subcmd__hand-over_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help cluster hand-over commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__cluster__subcmd__status_commands] )) ||
_notbefore__subcmd__help__subcmd__cluster__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help cluster status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade_commands] )) ||
_notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade_commands() {
    local commands; commands=(
'finish:Let all nodes write the newest format level that each of them can' \
    )
    _describe -t commands 'notbefore help cluster upgrade commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade__subcmd__finish_commands] )) ||
_notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade__subcmd__finish_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help cluster upgrade finish commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__completions_commands] )) ||
_notbefore__subcmd__help__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help completions commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__console_commands] )) ||
_notbefore__subcmd__help__subcmd__console_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help console commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event_commands] )) ||
_notbefore__subcmd__help__subcmd__event_commands() {
    local commands; commands=(
'list:List scheduled and started events, and advisories, in order of time' \
'show:Show one event with its full trail, even after it has ended' \
'schedule:Schedule an event for VMs' \
'cancel:Cancel events that have not started' \
'approve:Approve events on behalf of their guests' \
'start:Start events now' \
'complete:Report that events were carried out' \
'retry:Retry the exec driver'\''s commands that have failed or wait for a retry' \
'wait:Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running' \
'history:List events that have ended, oldest first' \
'watch:Print changes of events as they happen\: scheduled, read, approved, started, ended' \
    )
    _describe -t commands 'notbefore help event commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__approve_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event approve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__cancel_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event cancel commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__complete_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__complete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event complete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__history_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event history commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__retry_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__schedule_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__schedule_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event schedule commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__start_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__wait_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event wait commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__event__subcmd__watch_commands] )) ||
_notbefore__subcmd__help__subcmd__event__subcmd__watch_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help event watch commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__export_commands] )) ||
_notbefore__subcmd__help__subcmd__export_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help export commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fault_commands] )) ||
_notbefore__subcmd__help__subcmd__fault_commands() {
    local commands; commands=(
'add:Add a fault\: guests get wrong, late or no answers' \
'list:List the active faults and how often each had an effect' \
'clear:End a fault, or all of them' \
    )
    _describe -t commands 'notbefore help fault commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fault__subcmd__add_commands] )) ||
_notbefore__subcmd__help__subcmd__fault__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help fault add commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fault__subcmd__clear_commands] )) ||
_notbefore__subcmd__help__subcmd__fault__subcmd__clear_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help fault clear commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fault__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__fault__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help fault list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fleet_commands] )) ||
_notbefore__subcmd__help__subcmd__fleet_commands() {
    local commands; commands=(
'apply:Apply a fleet file (idempotent)' \
'diff:Show what applying a file would add, change and remove, and which live events would end' \
'show:Show scopes with their number of VMs and events' \
    )
    _describe -t commands 'notbefore help fleet commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fleet__subcmd__apply_commands] )) ||
_notbefore__subcmd__help__subcmd__fleet__subcmd__apply_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help fleet apply commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fleet__subcmd__diff_commands] )) ||
_notbefore__subcmd__help__subcmd__fleet__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help fleet diff commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__fleet__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__fleet__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help fleet show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__get_commands] )) ||
_notbefore__subcmd__help__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help get commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__healthy_commands] )) ||
_notbefore__subcmd__help__subcmd__healthy_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help healthy commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host_commands] )) ||
_notbefore__subcmd__help__subcmd__host_commands() {
    local commands; commands=(
'list:List hosts with their state, by name' \
'show:Show a host, its VMs and their events' \
'maintain:Schedule maintenance for the VMs of hosts\: one operation per host' \
'degraded:Report hosts with predicted failure\: their VMs are redeployed \[default notice\: 7 days\]' \
'failed:Report hosts that failed\: their VMs restart now, without notice' \
'ok:Report that hosts work\: redeployed VMs may move there' \
'forget:Remove hosts without VMs from the list of hosts' \
    )
    _describe -t commands 'notbefore help host commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__degraded_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__degraded_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host degraded commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__failed_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__failed_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host failed commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__forget_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__forget_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host forget commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__maintain_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__maintain_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host maintain commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__ok_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__ok_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host ok commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__host__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__host__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help host show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__import_commands] )) ||
_notbefore__subcmd__help__subcmd__import_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help import commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__openapi_commands] )) ||
_notbefore__subcmd__help__subcmd__openapi_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help openapi commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation_commands] )) ||
_notbefore__subcmd__help__subcmd__operation_commands() {
    local commands; commands=(
'list:List open operations, in order of time' \
'show:Show an operation and its events' \
'cancel:Cancel the events of an operation that have not started' \
'start:Start all events of operations now' \
'complete:Report that all events of operations were carried out' \
'retry:Retry the exec driver'\''s command for the host of operations' \
'wait:Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them running' \
    )
    _describe -t commands 'notbefore help operation commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__cancel_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation cancel commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__complete_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__complete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation complete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__retry_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__start_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__operation__subcmd__wait_commands] )) ||
_notbefore__subcmd__help__subcmd__operation__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help operation wait commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__rehearse_commands] )) ||
_notbefore__subcmd__help__subcmd__rehearse_commands() {
    local commands; commands=(
'list:List the scenarios that come with the program' \
'show:Print a scenario, to read it or to change a copy' \
'doctor:Play all scenarios, several side by side, and print a report card' \
'report:Make one page of recordings' \
'schema:Print the JSON schema of scenario files' \
    )
    _describe -t commands 'notbefore help rehearse commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__rehearse__subcmd__doctor_commands] )) ||
_notbefore__subcmd__help__subcmd__rehearse__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help rehearse doctor commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__rehearse__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__rehearse__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help rehearse list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__rehearse__subcmd__report_commands] )) ||
_notbefore__subcmd__help__subcmd__rehearse__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help rehearse report commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__rehearse__subcmd__schema_commands] )) ||
_notbefore__subcmd__help__subcmd__rehearse__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help rehearse schema commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__rehearse__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__rehearse__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help rehearse show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__serve_commands] )) ||
_notbefore__subcmd__help__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help serve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__status_commands] )) ||
_notbefore__subcmd__help__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__token_commands] )) ||
_notbefore__subcmd__help__subcmd__token_commands() {
    local commands; commands=(
'create:Create a token; its secret is shown only once' \
'init:Create the first token of a cluster in etcd before its nodes start, and write it to a file' \
'list:List tokens with their roles and last use since the service started' \
'show:Show the token that this command uses, and its roles' \
'revoke:Revoke a token\: requests with it are refused from then on' \
    )
    _describe -t commands 'notbefore help token commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__token__subcmd__create_commands] )) ||
_notbefore__subcmd__help__subcmd__token__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help token create commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__token__subcmd__init_commands] )) ||
_notbefore__subcmd__help__subcmd__token__subcmd__init_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help token init commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__token__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__token__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help token list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__token__subcmd__revoke_commands] )) ||
_notbefore__subcmd__help__subcmd__token__subcmd__revoke_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help token revoke commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__token__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__token__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help token show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm_commands] )) ||
_notbefore__subcmd__help__subcmd__vm_commands() {
    local commands; commands=(
'list:List VMs' \
'show:Show one VM' \
'log:Show what a VM asked for lately\: refused requests, approvals, first reads, and which clients poll' \
'document:Show the document of scheduled events that a VM reads now' \
'add:Add a VM' \
'remove:Remove a VM from the inventory at once, without an event' \
'restart:Restart a VM\: a Reboot event, started when approved or at its NotBefore' \
'redeploy:Redeploy a VM\: a Redeploy event, started when approved or at its NotBefore' \
'evict:Evict a Spot VM\: a Preempt event with 30 seconds'\'' notice' \
'delete:Delete VMs\: Terminate events, with the scope'\''s terminate notification as notice' \
'start:Report that an evicted VM runs again' \
    )
    _describe -t commands 'notbefore help vm commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__add_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm add commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__delete_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm delete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__document_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__document_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm document commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__evict_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__evict_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm evict commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__list_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__log_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__log_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm log commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__redeploy_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__redeploy_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm redeploy commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__remove_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm remove commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__restart_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__restart_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm restart commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__show_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__help__subcmd__vm__subcmd__start_commands] )) ||
_notbefore__subcmd__help__subcmd__vm__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore help vm start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host_commands] )) ||
_notbefore__subcmd__host_commands() {
    local commands; commands=(
'list:List hosts with their state, by name' \
'show:Show a host, its VMs and their events' \
'maintain:Schedule maintenance for the VMs of hosts\: one operation per host' \
'degraded:Report hosts with predicted failure\: their VMs are redeployed \[default notice\: 7 days\]' \
'failed:Report hosts that failed\: their VMs restart now, without notice' \
'ok:Report that hosts work\: redeployed VMs may move there' \
'forget:Remove hosts without VMs from the list of hosts' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore host commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__degraded_commands] )) ||
_notbefore__subcmd__host__subcmd__degraded_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host degraded commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__failed_commands] )) ||
_notbefore__subcmd__host__subcmd__failed_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host failed commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__forget_commands] )) ||
_notbefore__subcmd__host__subcmd__forget_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host forget commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help_commands] )) ||
_notbefore__subcmd__host__subcmd__help_commands() {
    local commands; commands=(
'list:List hosts with their state, by name' \
'show:Show a host, its VMs and their events' \
'maintain:Schedule maintenance for the VMs of hosts\: one operation per host' \
'degraded:Report hosts with predicted failure\: their VMs are redeployed \[default notice\: 7 days\]' \
'failed:Report hosts that failed\: their VMs restart now, without notice' \
'ok:Report that hosts work\: redeployed VMs may move there' \
'forget:Remove hosts without VMs from the list of hosts' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore host help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__degraded_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__degraded_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help degraded commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__failed_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__failed_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help failed commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__forget_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__forget_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help forget commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__maintain_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__maintain_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help maintain commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__ok_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__ok_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help ok commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__host__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__list_commands] )) ||
_notbefore__subcmd__host__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__maintain_commands] )) ||
_notbefore__subcmd__host__subcmd__maintain_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host maintain commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__ok_commands] )) ||
_notbefore__subcmd__host__subcmd__ok_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host ok commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__host__subcmd__show_commands] )) ||
_notbefore__subcmd__host__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore host show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__import_commands] )) ||
_notbefore__subcmd__import_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore import commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__openapi_commands] )) ||
_notbefore__subcmd__openapi_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore openapi commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation_commands] )) ||
_notbefore__subcmd__operation_commands() {
    local commands; commands=(
'list:List open operations, in order of time' \
'show:Show an operation and its events' \
'cancel:Cancel the events of an operation that have not started' \
'start:Start all events of operations now' \
'complete:Report that all events of operations were carried out' \
'retry:Retry the exec driver'\''s command for the host of operations' \
'wait:Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them running' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore operation commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__cancel_commands] )) ||
_notbefore__subcmd__operation__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation cancel commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__complete_commands] )) ||
_notbefore__subcmd__operation__subcmd__complete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation complete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help_commands] )) ||
_notbefore__subcmd__operation__subcmd__help_commands() {
    local commands; commands=(
'list:List open operations, in order of time' \
'show:Show an operation and its events' \
'cancel:Cancel the events of an operation that have not started' \
'start:Start all events of operations now' \
'complete:Report that all events of operations were carried out' \
'retry:Retry the exec driver'\''s command for the host of operations' \
'wait:Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them running' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore operation help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__cancel_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help cancel commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__complete_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__complete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help complete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__retry_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__start_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__help__subcmd__wait_commands] )) ||
_notbefore__subcmd__operation__subcmd__help__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation help wait commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__list_commands] )) ||
_notbefore__subcmd__operation__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__retry_commands] )) ||
_notbefore__subcmd__operation__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation retry commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__show_commands] )) ||
_notbefore__subcmd__operation__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__start_commands] )) ||
_notbefore__subcmd__operation__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__operation__subcmd__wait_commands] )) ||
_notbefore__subcmd__operation__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore operation wait commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse_commands] )) ||
_notbefore__subcmd__rehearse_commands() {
    local commands; commands=(
'list:List the scenarios that come with the program' \
'show:Print a scenario, to read it or to change a copy' \
'doctor:Play all scenarios, several side by side, and print a report card' \
'report:Make one page of recordings' \
'schema:Print the JSON schema of scenario files' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore rehearse commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__doctor_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse doctor commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help_commands() {
    local commands; commands=(
'list:List the scenarios that come with the program' \
'show:Print a scenario, to read it or to change a copy' \
'doctor:Play all scenarios, several side by side, and print a report card' \
'report:Make one page of recordings' \
'schema:Print the JSON schema of scenario files' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore rehearse help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help__subcmd__doctor_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse help doctor commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help__subcmd__report_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse help report commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help__subcmd__schema_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse help schema commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__list_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__report_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse report commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__schema_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse schema commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__rehearse__subcmd__show_commands] )) ||
_notbefore__subcmd__rehearse__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore rehearse show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__serve_commands] )) ||
_notbefore__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore serve commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__status_commands] )) ||
_notbefore__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore status commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token_commands] )) ||
_notbefore__subcmd__token_commands() {
    local commands; commands=(
'create:Create a token; its secret is shown only once' \
'init:Create the first token of a cluster in etcd before its nodes start, and write it to a file' \
'list:List tokens with their roles and last use since the service started' \
'show:Show the token that this command uses, and its roles' \
'revoke:Revoke a token\: requests with it are refused from then on' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore token commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__create_commands] )) ||
_notbefore__subcmd__token__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token create commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help_commands] )) ||
_notbefore__subcmd__token__subcmd__help_commands() {
    local commands; commands=(
'create:Create a token; its secret is shown only once' \
'init:Create the first token of a cluster in etcd before its nodes start, and write it to a file' \
'list:List tokens with their roles and last use since the service started' \
'show:Show the token that this command uses, and its roles' \
'revoke:Revoke a token\: requests with it are refused from then on' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore token help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help__subcmd__create_commands] )) ||
_notbefore__subcmd__token__subcmd__help__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token help create commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__token__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help__subcmd__init_commands] )) ||
_notbefore__subcmd__token__subcmd__help__subcmd__init_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token help init commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__token__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help__subcmd__revoke_commands] )) ||
_notbefore__subcmd__token__subcmd__help__subcmd__revoke_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token help revoke commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__token__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__init_commands] )) ||
_notbefore__subcmd__token__subcmd__init_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token init commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__list_commands] )) ||
_notbefore__subcmd__token__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__revoke_commands] )) ||
_notbefore__subcmd__token__subcmd__revoke_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token revoke commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__token__subcmd__show_commands] )) ||
_notbefore__subcmd__token__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore token show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm_commands] )) ||
_notbefore__subcmd__vm_commands() {
    local commands; commands=(
'list:List VMs' \
'show:Show one VM' \
'log:Show what a VM asked for lately\: refused requests, approvals, first reads, and which clients poll' \
'document:Show the document of scheduled events that a VM reads now' \
'add:Add a VM' \
'remove:Remove a VM from the inventory at once, without an event' \
'restart:Restart a VM\: a Reboot event, started when approved or at its NotBefore' \
'redeploy:Redeploy a VM\: a Redeploy event, started when approved or at its NotBefore' \
'evict:Evict a Spot VM\: a Preempt event with 30 seconds'\'' notice' \
'delete:Delete VMs\: Terminate events, with the scope'\''s terminate notification as notice' \
'start:Report that an evicted VM runs again' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore vm commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__add_commands] )) ||
_notbefore__subcmd__vm__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm add commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__delete_commands] )) ||
_notbefore__subcmd__vm__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm delete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__document_commands] )) ||
_notbefore__subcmd__vm__subcmd__document_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm document commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__evict_commands] )) ||
_notbefore__subcmd__vm__subcmd__evict_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm evict commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help_commands] )) ||
_notbefore__subcmd__vm__subcmd__help_commands() {
    local commands; commands=(
'list:List VMs' \
'show:Show one VM' \
'log:Show what a VM asked for lately\: refused requests, approvals, first reads, and which clients poll' \
'document:Show the document of scheduled events that a VM reads now' \
'add:Add a VM' \
'remove:Remove a VM from the inventory at once, without an event' \
'restart:Restart a VM\: a Reboot event, started when approved or at its NotBefore' \
'redeploy:Redeploy a VM\: a Redeploy event, started when approved or at its NotBefore' \
'evict:Evict a Spot VM\: a Preempt event with 30 seconds'\'' notice' \
'delete:Delete VMs\: Terminate events, with the scope'\''s terminate notification as notice' \
'start:Report that an evicted VM runs again' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'notbefore vm help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__add_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help add commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__delete_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help delete commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__document_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__document_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help document commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__evict_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__evict_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help evict commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__help_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help help commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__list_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__log_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__log_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help log commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__redeploy_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__redeploy_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help redeploy commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__remove_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help remove commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__restart_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__restart_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help restart commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__show_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__help__subcmd__start_commands] )) ||
_notbefore__subcmd__vm__subcmd__help__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm help start commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__list_commands] )) ||
_notbefore__subcmd__vm__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm list commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__log_commands] )) ||
_notbefore__subcmd__vm__subcmd__log_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm log commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__redeploy_commands] )) ||
_notbefore__subcmd__vm__subcmd__redeploy_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm redeploy commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__remove_commands] )) ||
_notbefore__subcmd__vm__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm remove commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__restart_commands] )) ||
_notbefore__subcmd__vm__subcmd__restart_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm restart commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__show_commands] )) ||
_notbefore__subcmd__vm__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm show commands' commands "$@"
}
(( $+functions[_notbefore__subcmd__vm__subcmd__start_commands] )) ||
_notbefore__subcmd__vm__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'notbefore vm start commands' commands "$@"
}

if [ "$funcstack[1]" = "_notbefore" ]; then
    _notbefore "$@"
else
    compdef _notbefore notbefore
fi
