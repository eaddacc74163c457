# Restarts or redeploys a VM through the operator API, and waits until that is over.
#
#   ./Restart-VM.ps1 restart|redeploy VM
#
# VM is an id, or as much of the end of the VM's path as tells it from others; in Windows PowerShell (5.1) an id or a bare
# name. A tenant's token will do.
param(
    [Parameter(Mandatory)][ValidateSet('restart', 'redeploy')][string]$Verb,
    [Parameter(Mandatory)][string]$VM,
    [string]$Operator = 'http://127.0.0.1:9255',
    [string]$TokenFile = 'notbefore-data/operator.token'
)
$ErrorActionPreference = 'Stop'
$token = (Get-Content -Raw $TokenFile).Trim()

# Windows PowerShell takes the %2F in an address for a '/', and would ask for something else.
if ($PSVersionTable.PSVersion.Major -lt 6 -and $VM.Contains('/')) {
    throw "Windows PowerShell cannot ask for a path such as ${VM}; give the VM's id or its name, which 'notbefore vm list' shows"
}

# A refusal (4xx) is final; no answer, and "not now" (503), are worth another try.
function Test-Refusal($trouble) {
    $status = $trouble.Exception.Response.StatusCode -as [int]
    $status -ge 400 -and $status -lt 500
}

# With a key, asking again cannot restart the VM twice: whatever became of the first request is what is answered.
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

# Until the guest has approved or NotBefore has come, and the event has ended.
$uri = "$Operator/v1/operations/$($operation.id)"
while ($operation.state -ne 'closed') {
    Start-Sleep -Seconds 1
    try { $operation = Invoke-RestMethod @ask -Uri $uri }
    catch {
        if (Test-Refusal $_) { throw }
        [Console]::Error.WriteLine("$_")
    }
}
if ($operation.cancelled) { throw 'called off' }
'done'
