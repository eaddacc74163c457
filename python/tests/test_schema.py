"""Scenarios against the schema of `notbefore rehearse schema`."""

import copy
import json
import subprocess
from typing import Any, Callable, Dict

import jsonschema_rs
import pytest

import notbefore

Scenario = Dict[str, Any]


def printed(*arguments: str) -> Any:
    command = [notbefore.binary(), "rehearse", *arguments, "--output", "json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


SCHEMA = jsonschema_rs.validator_for(printed("schema"))
RIGHT: Scenario = {
    "summary": "x",
    "vms": ["web-0", {"name": "w", "count": 2, "polled": True}],
    "steps": [
        {"at": "30s", "schedule": {"event": "e", "cause": "host-reboot", "vms": ["web-0"], "runs": "until-completed"}},
        {"at": "started e + 5m", "complete": "e"},
        {"fault": {"kind": "status", "status": 500, "count": 5}},
        {"at": 90, "clear_faults": True},
    ],
    "expect": [{"approves": "e", "within": "1h30m"}, {"exits": 0}],
}


def test_every_scenario_of_the_library_is_valid() -> None:
    names = [listed["name"] for listed in printed("list")]
    assert len(names) >= 43
    for name in names:
        errors = [f"{name}: {error.message}" for error in SCHEMA.iter_errors(printed("show", name))]
        assert not errors
    SCHEMA.validate(RIGHT)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda scenario: scenario.pop("summary"),
        lambda scenario: scenario.update(polls_evry="5s"),
        lambda scenario: scenario.update(polls_every="1h30"),
        lambda scenario: scenario.update(steps=[]),
        lambda scenario: scenario["steps"].append({"at": "30s"}),
        lambda scenario: scenario["steps"][1].update(cancel="e"),
        lambda scenario: scenario["steps"][1].update(at="sometime e"),
        lambda scenario: scenario["steps"][1].update(at=-5),
        lambda scenario: scenario["steps"][0]["schedule"].update(cause="host-rebot"),
        lambda scenario: scenario["steps"][2]["fault"].update(status=200),
        lambda scenario: scenario["steps"][3].update(clear_faults=False),
        lambda scenario: scenario["expect"].append({"within": "5m"}),
        lambda scenario: scenario["expect"][0].update(drains="e"),
        lambda scenario: scenario["expect"][1].update(within="5m"),
        lambda scenario: scenario["expect"][1].update(exits=300),
    ],
)
def test_wrong_scenario_is_refused(spoil: Callable[[Scenario], object]) -> None:
    scenario = copy.deepcopy(RIGHT)
    spoil(scenario)
    assert not SCHEMA.is_valid(scenario)
