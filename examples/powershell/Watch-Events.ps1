# Polls Scheduled Events once a second, shows every change, and approves what happens to this VM.
# It asks before it approves; -Yes approves without asking, -Once looks once and ends.
param(
    [string]$Endpoint = 'http://169.254.169.254',
    [string]$ApiVersion = '2020-07-01',
    [string]$Name,
    [switch]$Once,
    [switch]$Yes
)
$ErrorActionPreference = 'Stop'
$url = "$Endpoint/metadata/scheduledevents?api-version=$ApiVersion"

# The endpoint is never behind a proxy, and the first answer may take two minutes.
[System.Net.WebRequest]::DefaultWebProxy = $null
$ask = @{ Headers = @{ Metadata = 'true' }; TimeoutSec = 120; UseBasicParsing = $true }
if ($PSVersionTable.PSVersion.Major -ge 6) { $ask.NoProxy = $true }

# What is no document, an empty answer too, is an error and not "no events".
function Read-Document {
    $document = Invoke-RestMethod @ask -Uri $url
    if ($document.PSObject.Properties.Name -notcontains 'Events') { throw 'the answer has no list of Events' }
    $document
}

# At 2017-03-01 names begin with a '_'.
function Get-Resources($item) {
    if ($ApiVersion -eq '2017-03-01') { $item.Resources -replace '^_', '' } else { $item.Resources }
}

# "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z"; blank once it has started. The weekday is not to be relied on.
function Get-NotBefore($item) {
    if (-not $item.NotBefore) { return '-' }
    if ($item.NotBefore -is [datetime]) { $when = $item.NotBefore.ToUniversalTime() }
    else {
        $text = $item.NotBefore -replace '^\w+, ', ''
        $when = [System.DateTimeOffset]::Parse($text, [cultureinfo]::InvariantCulture).UtcDateTime
    }
    $when.ToString('yyyy-MM-ddTHH:mm:ssZ')
}

# One event a request: where one of several is refused, all are.
function Approve-Event($id) {
    $body = ConvertTo-Json -Compress -Depth 3 @{ StartRequests = @(@{ EventId = $id }) }
    Invoke-RestMethod @ask -Uri $url -Method Post -Body $body -ContentType 'application/json' | Out-Null
    "approved $id"
}

# Resources hold the name that the platform gave the VM, which the host name need not be.
if (-not $Name) {
    $Name = Invoke-RestMethod @ask -Uri "$Endpoint/metadata/instance/compute/name?api-version=2021-02-01&format=text"
}

$shown = $null
$settled = @{}
while ($true) {
    try {
        $document = Read-Document
        $isNew = $document.DocumentIncarnation -ne $shown
        $shown = $document.DocumentIncarnation
        if ($isNew -and @($document.Events).Count -eq 0) { "$shown nothing" }
        foreach ($one in $document.Events) {
            $names = @(Get-Resources $one)
            $whose = if ($names -contains $Name) { 'mine' } else { 'others' }
            if ($isNew) {
                "$shown $($one.EventId) $($one.EventStatus) $($one.EventType) $($names -join ',') $(Get-NotBefore $one) $whose"
            }
            if ($whose -ne 'mine' -or $one.EventStatus -ne 'Scheduled' -or $settled[$one.EventId]) { continue }
            if ($Yes -or (Read-Host "approve the $($one.EventType) $($one.EventId)? [y/N]") -eq 'y') {
                Approve-Event $one.EventId
            }
            $settled[$one.EventId] = $true
        }
    }
    catch {
        # What was not approved is tried again with the next poll.
        [Console]::Error.WriteLine("${url}: $_")
        if ($Once) { exit 1 }
    }
    if ($Once) { exit 0 }
    Start-Sleep -Seconds 1
}
