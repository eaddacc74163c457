"""The package against the real program."""

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

import notbefore
from notbefore import NotPassed, NotPlayed, Platform, PlatformError, Verdict

HANDLER = str(Path(__file__).with_name("handler.py"))
Rehearse = Callable[..., Verdict]


def test_right_handler_passes(notbefore_rehearse: Rehearse) -> None:
    verdict = notbefore_rehearse(
        "user-reboot", [sys.executable, HANDLER], drained="line:^drained", restored="line:^restored", compress=600, floor="10s"
    ).check()
    assert verdict.scenario == "user-reboot"
    assert {finding.outcome for finding in verdict.findings} == {"passed"}
    assert all(not verdict.evidence(finding) for finding in verdict.findings)
    assert verdict.recording["handled_vms"] == ["web-0"]


def test_wrong_handler_fails_with_the_cure(notbefore_rehearse: Rehearse) -> None:
    verdict = notbefore_rehearse(
        "other-vm-only", [sys.executable, HANDLER, "approves-everything"], compress=600, floor="10s"
    )
    assert not verdict.passed
    failure = next(finding for finding in verdict.failures if "Resources" in finding.cure)
    approvals = [entry for entry in verdict.evidence(failure) if entry.get("method") == "POST"]
    assert [entry["approves"] for entry in approvals] == [[verdict.recording["events"]["other"]["id"]]]
    with pytest.raises(NotPassed, match="FAILED"):
        verdict.check()


@pytest.mark.parametrize(
    ("scenario", "handler", "said"),
    [("user-rebot", ["true"], "did you mean user-reboot"), ("user-reboot", ["/no/such/handler"], "/no/such/handler")],
)
def test_what_cannot_be_played_says_why(scenario: str, handler: "list[str]", said: str) -> None:
    with pytest.raises(NotPlayed, match=said):
        notbefore.rehearse(scenario, handler)


def test_platform_announces_and_breaks(notbefore_platform: Platform) -> None:
    assert notbefore_platform.document()["Events"] == []
    notbefore_platform.schedule("user-restart", in_seconds=900)
    (event,) = notbefore_platform.document()["Events"]
    assert (event["EventType"], event["Resources"]) == ("Reboot", ["web-0"])
    notbefore_platform.act(event["EventId"], "cancel")
    assert notbefore_platform.document()["Events"] == []
    notbefore_platform.add_fault("status", status=500, count=1)
    with pytest.raises(PlatformError, match="500"):
        notbefore_platform.document()
    notbefore_platform.clear_faults()
    with pytest.raises(PlatformError, match="there is no VM web-9"):
        notbefore_platform.endpoint_of("web-9")
    with pytest.raises(PlatformError, match="in_seconds"):
        notbefore_platform.schedule("user-restart", in_seconds=-1)


def test_platform_leaves_nothing_behind() -> None:
    with Platform(["a", "b"]) as platform:
        directory, process = platform._directory.name, platform._process
        assert platform.endpoint_of("b") != platform.endpoint
    assert process.poll() is not None and not Path(directory).exists()


def test_binary_of_the_environment_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTBEFORE_BINARY", "/no/such/program")
    with pytest.raises(notbefore.BinaryNotFound, match="NOTBEFORE_BINARY"):
        notbefore.binary()


def test_binary_runs() -> None:
    assert subprocess.run([notbefore.binary(), "--version"], capture_output=True, check=True).stdout.startswith(b"notbefore")
