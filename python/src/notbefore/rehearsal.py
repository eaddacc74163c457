"""`rehearse`: plays a scenario to a handler."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from notbefore._binary import binary

PathText = Union[str, "os.PathLike[str]"]


class NotPlayed(Exception):
    """The scenario or the handler could not be run."""


class NotPassed(AssertionError):
    """The handler did not do what the scenario expects."""


@dataclass(frozen=True)
class Finding:
    """One expectation, judged: `outcome` is `passed`, `failed` or `not-judged`."""

    expectation: str
    outcome: str
    why: str = ""
    cure: str = ""
    #: Numbers of the entries of the recording that prove a failure; `Verdict.evidence` returns the entries.
    evidence: Tuple[int, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The verdict on one rehearsal."""

    scenario: str
    findings: List[Finding]
    #: The timeline and the verdict, as on a terminal.
    text: str
    #: The whole recording, as of `--output json`.
    recording: Dict[str, Any] = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether no expectation failed."""
        return not self.failures

    @property
    def failures(self) -> List[Finding]:
        return [finding for finding in self.findings if finding.outcome == "failed"]

    def evidence(self, finding: Finding) -> List[Dict[str, Any]]:
        """The entries of the recording that prove a failure: requests, output, steps, changes of events."""
        entries: List[Dict[str, Any]] = self.recording["entries"]
        return [entries[number] for number in finding.evidence]

    def check(self) -> "Verdict":
        """Raises NotPassed, with the timeline and what to change, if an expectation failed."""
        if not self.passed:
            first = self.failures[0].expectation
            raise NotPassed(f"{len(self.failures)} of {len(self.findings)} expectations failed: {first}\n{self.text}")
        return self


def rehearse(
    scenario: PathText,
    handler: Sequence[PathText],
    *,
    drained: Optional[str] = None,
    restored: Optional[str] = None,
    compress: float = 60,
    floor: str = "5s",
    polls_every: Optional[str] = None,
    repeat: Optional[str] = None,
    netns: bool = False,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[PathText] = None,
    timeout: float = 600,
) -> Verdict:
    """Plays a scenario, by its name or file, to a handler and returns the verdict.

    `drained` and `restored` say how the handler shows its work: `line:REGEX`, `file:PATH` or `call`.
    """
    if not handler:
        raise ValueError("handler is empty; give the program and its arguments")
    with tempfile.TemporaryDirectory(prefix="notbefore-") as directory:
        record = Path(directory, "record.json")
        command = [binary(), "rehearse", os.fspath(scenario), "--record", str(record)]
        command += ["--compress", str(compress), "--floor", floor]
        for flag, value in (("drained", drained), ("restored", restored), ("polls-every", polls_every), ("repeat", repeat)):
            if value is not None:
                command += [f"--{flag}", value]
        if netns:
            command.append("--netns")
        command += ["--", *(os.fspath(word) for word in handler)]
        done = subprocess.run(
            command, env=None if env is None else dict(env), cwd=cwd, timeout=timeout, capture_output=True, text=True
        )
        if done.returncode not in (0, 1) or not record.exists():
            raise NotPlayed(done.stderr.strip() or f"notbefore ended with exit code {done.returncode}")
        report = json.loads(record.read_text())
    findings = [
        Finding(
            finding["expectation"],
            finding["outcome"],
            finding.get("why") or finding.get("note", ""),
            finding.get("cure", ""),
            tuple(finding.get("evidence", ())),
        )
        for finding in report["verdict"]["findings"]
    ]
    return Verdict(report["verdict"]["scenario"], findings, done.stdout, report["recording"])
