# Restarts or redeploys a VM through the operator API, and waits for the end.
#
#   ./Restart-VM.ps1 restart|redeploy VM
#
# VM is an id, or a unique suffix of the VM's path; in Windows PowerShell (5.1) an id or a bare name. A tenant's token
# is enough.
param(
    [Parameter(Mandatory)][ValidateSet('restart', 'redeploy')][string]$Verb,
    [Parameter(Mandatory)][string]$VM,
    [string]$Operator = 'http://127.0.0.1:9255',
    [string]$TokenFile = 'notbefore-data/operator.token'
)
$ErrorActionPreference = 'Stop'
$token = (Get-Content -Raw $TokenFile).Trim()

# Windows PowerShell decodes %2F in a URL to '/', which changes the path.
if ($PSVersionTable.PSVersion.Major -lt 6 -and $VM.Contains('/')) {
    throw "Windows PowerShell cannot ask for a path such as ${VM}; give the VM's id or its name, which 'notbefore vm list' shows"
}

# A refusal (4xx) is final; no answer and 503 are retried.
function Test-Refusal($trouble) {
    $status = $trouble.Exception.Response.StatusCode -as [int]
    $status -ge 400 -and $status -lt 500
}

# The idempotency key makes retries safe: they return the result of the first request.
$headers = @{ Authorization = "Bearer $token"; 'Idempotency-Key' = [guid]::NewGuid().ToString() }
$ask = @{ Headers = $headers; TimeoutSec = 60; UseBasicParsing = $true }
$uri = "$Operator/v1/vms/$([uri]::EscapeDataString($VM))/$Verb"
for ($try = 1; ; $try++) {
    try {
        $operation = Invoke-RestMethod @ask -Method Post -Uri $uri
        break
    }
    catch {
        if ((Test-Refusal $_) -or $try -ge 5) { throw }
        Start-Sleep -Seconds 1
    }
}
$target = $operation.targets[0]
"$($operation.cause) of $($target.resources[0].name), event $($target.event), not before $($operation.not_before)"

# Until the guest approves or NotBefore is reached, and the event has ended.
$uri = "$Operator/v1/operations/$($operation.id)"
while ($operation.state -ne 'closed') {
    Start-Sleep -Seconds 1
    try { $operation = Invoke-RestMethod @ask -Uri $uri }
    catch {
        if (Test-Refusal $_) { throw }
        [Console]::Error.WriteLine("$_")
    }
}
if ($operation.cancelled) { throw 'the operation was cancelled' }
'done'
