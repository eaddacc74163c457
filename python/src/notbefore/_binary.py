"""Finds the program: `NOTBEFORE_BINARY`, the one in the wheel, or the one in PATH."""

import os
import shutil
from pathlib import Path


class BinaryNotFound(Exception):
    """There is no program to run."""


def binary() -> str:
    """The path of the program."""
    named = os.environ.get("NOTBEFORE_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise BinaryNotFound(f"NOTBEFORE_BINARY is {named!r}, which is no program; correct or unset it")
        return named
    carried = Path(__file__).parent / "bin" / "notbefore"
    if os.access(carried, os.X_OK):
        return str(carried)
    found = shutil.which("notbefore")
    if found is None:
        raise BinaryNotFound("no program notbefore in this package or in PATH; set NOTBEFORE_BINARY to its path")
    return found
