"""Fixtures for pytest."""

from typing import Callable, Iterator

import pytest

from notbefore.platform import Platform
from notbefore.rehearsal import Verdict, rehearse


@pytest.fixture
def notbefore_rehearse() -> Callable[..., Verdict]:
    """`notbefore.rehearse`: plays a scenario to a handler."""
    return rehearse


@pytest.fixture
def notbefore_platform() -> Iterator[Platform]:
    """A running service with one VM, `web-0`."""
    with Platform() as platform:
        yield platform
