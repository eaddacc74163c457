# Restarts or redeploys a VM through the operator API, and waits until that is over.
#
#   ./Restart-VM.ps1 restart|redeploy VM
#
# VM is an id, or as much of the end of the VM's path as tells it from others. A tenant's token will do.
param(
    [Parameter(Mandatory)][ValidateSet('restart', 'redeploy')][string]$Verb,
    [Parameter(Mandatory)][string]$VM,
    [string]$Operator = 'http://127.0.0.1:9255',
    [string]$TokenFile = 'notbefore-data/operator.token'
)
$ErrorActionPreference = 'Stop'
$token = (Get-Content -Raw $TokenFile).Trim()

# With a key, asking again cannot restart the VM twice: whatever became of the first request is what is answered.
$headers = @{ Authorization = "Bearer $token"; 'Idempotency-Key' = [guid]::NewGuid().ToString() }
$uri = "$Operator/v1/vms/$([uri]::EscapeDataString($VM))/$Verb"
for ($try = 1; ; $try++) {
    try {
        $operation = Invoke-RestMethod -Method Post -Uri $uri -Headers $headers -TimeoutSec 60
        break
    }
    catch {
        # A refusal is final; no answer, and "not now" (503), are worth another try.
        $status = $_.Exception.Response.StatusCode -as [int]
        if (($status -and $status -ne 503) -or $try -ge 5) { throw }
        Start-Sleep -Seconds 1
    }
}
$target = $operation.targets[0]
"$($operation.cause) of $($target.resources[0].name), event $($target.event), not before $($operation.not_before)"

# Until the guest has approved or NotBefore has come, and the event has ended.
while ($operation.state -ne 'closed') {
    Start-Sleep -Seconds 1
    try { $operation = Invoke-RestMethod -Uri "$Operator/v1/operations/$($operation.id)" -Headers $headers -TimeoutSec 60 }
    catch { [Console]::Error.WriteLine("$_") }
}
if ($operation.cancelled) { throw 'called off' }
'done'
