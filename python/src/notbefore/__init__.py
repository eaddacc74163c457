"""Test maintenance handlers for Scheduled Events.

`rehearse` plays a scenario to a handler and returns the verdict. `Platform` is a running service for tests of one's own.
The pytest fixtures `notbefore_rehearse` and `notbefore_platform` use both.
"""

from notbefore._binary import BinaryNotFound, binary
from notbefore.platform import Platform, PlatformError
from notbefore.rehearsal import Finding, NotPassed, NotPlayed, Verdict, rehearse

__all__ = [
    "BinaryNotFound",
    "Finding",
    "NotPassed",
    "NotPlayed",
    "Platform",
    "PlatformError",
    "Verdict",
    "binary",
    "rehearse",
]
