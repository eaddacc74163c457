# Polls Scheduled Events once a second, prints every change, and approves events of this VM.
# It asks before it approves; -Yes approves without asking, -Once polls once and exits (with 1 if the document or this
# VM's name is unavailable).
param(
    [string]$Endpoint = 'http://169.254.169.254',
    [string]$ApiVersion = '2020-07-01',
    [string]$Name,
    [switch]$Once,
    [switch]$Yes
)
$ErrorActionPreference = 'Stop'
$Endpoint = $Endpoint.TrimEnd('/')
$url = "$Endpoint/metadata/scheduledevents?api-version=$ApiVersion"
$invariant = [System.Globalization.CultureInfo]::InvariantCulture

# The endpoint is never behind a proxy.
[System.Net.WebRequest]::DefaultWebProxy = $null
$ask = @{ Headers = @{ Metadata = 'true' }; UseBasicParsing = $true }
if ($PSVersionTable.PSVersion.Major -ge 6) { $ask.NoProxy = $true }

function Write-Complaint($text) { [Console]::Error.WriteLine($text) }

# Resources hold the platform's name of the VM. The host name may differ and may be another VM's name. Nothing if it
# is not answered in two seconds: it is requested again, and polls continue.
function Find-Name {
    try {
        $answer = Invoke-WebRequest @ask -TimeoutSec 2 `
            -Uri "$Endpoint/metadata/instance/compute/name?api-version=2021-02-01&format=text"
        $told = "$($answer.Content)".Trim()
        if (-not $told) { throw 'the answer is empty' }
        $told
    }
    catch {
        Write-Complaint "$Endpoint does not say what this VM is called ($_); until it does, or -Name says it, nothing is approved"
    }
}

# Anything but a document, also an empty response, is an error and not "no events". The first response may take two
# minutes.
function Read-Document {
    $document = Invoke-RestMethod @ask -TimeoutSec 120 -Uri $url
    if ($document.Events -isnot [array]) { throw 'the answer has no list of Events' }
    $document
}

# A field of an event; '-' if it is missing.
function Get-Word($item, $key) { if ($item.$key) { "$($item.$key)" } else { '-' } }

# Names of the affected VMs; may be missing. At 2017-03-01 they start with a '_'.
function Get-Resources($item) {
    $item.Resources | Where-Object { $_ } | ForEach-Object {
        if ($ApiVersion -eq '2017-03-01') { "$_" -replace '^_', '' } else { "$_" }
    }
}

# "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z"; blank once it has started. The weekday may be wrong.
# Other formats are shown verbatim: nothing depends on them.
function Get-NotBefore($item) {
    $when = $item.NotBefore
    if (-not $when) { return '-' }
    try {
        if ($when -isnot [datetime]) {
            $styles = [System.Globalization.DateTimeStyles]'AssumeUniversal, AdjustToUniversal'
            $when = [datetime]::Parse(("$when" -replace '^\w+, *', ''), $invariant, $styles)
        }
        $when.ToUniversalTime().ToString('yyyy-MM-ddTHH:mm:ssZ', $invariant)
    }
    catch { "$($item.NotBefore)" }
}

# One event per request: if one of several is refused, all are.
function Approve-Event($id) {
    $body = ConvertTo-Json -Compress -Depth 3 @{ StartRequests = @(@{ EventId = $id }) }
    Invoke-RestMethod @ask -TimeoutSec 120 -Uri $url -Method Post -Body $body -ContentType 'application/json' | Out-Null
}

$shown = $null
$settled = @{}
while ($true) {
    if (-not $Name) { $Name = Find-Name }
    $document = $null
    try { $document = Read-Document }
    catch { Write-Complaint "no document from ${url}: $_" }
    if ($document) {
        # The events as text, printed when they change.
        $incarnation = $document.DocumentIncarnation
        $now = "$Name $(ConvertTo-Json -Compress -Depth 6 $document)"
        $isNew = $now -cne $shown
        $shown = $now
        if ($isNew -and $document.Events.Count -eq 0) { "$incarnation nothing" }
        foreach ($one in $document.Events) {
            $id, $status, $type = 'EventId', 'EventStatus', 'EventType' | ForEach-Object { Get-Word $one $_ }
            $names = @(Get-Resources $one)
            $whose = if (-not $Name) { 'unknown' } elseif ($names -contains $Name) { 'mine' } else { 'others' }
            if ($isNew) {
                "$incarnation $id $status $type $($names -join ',') $(Get-NotBefore $one) $whose"
            }
            if ($whose -ne 'mine' -or $status -ne 'Scheduled' -or $id -eq '-' -or $settled[$id]) { continue }
            # A failure of one event does not affect the others.
            try {
                if ($Yes -or (Read-Host "approve the $type ${id}? [y/N]") -eq 'y') {
                    Approve-Event $id
                    "approved $id"
                }
                $settled[$id] = $true
            }
            catch {
                Write-Complaint "not approved ${id}: $_"
                # A refusal is final; other failures are retried with the next poll.
                if (($_.Exception.Response.StatusCode -as [int]) -eq 400) { $settled[$id] = $true }
            }
        }
    }
    if ($Once) { if ($document -and $Name) { exit 0 } else { exit 1 } }
    Start-Sleep -Seconds 1
}
