"""Build hook: a wheel with a binary is for one platform, for every Python 3."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# A static binary needs no C library, so the oldest tag that pip knows is right.
STATIC_LINUX = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"


class PlatformTag(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        if not Path(self.root, "src/notbefore/bin/notbefore").is_file():
            raise SystemExit("src/notbefore/bin/notbefore is missing; build the wheel with tools/wheel")
        build_data["pure_python"] = False
        build_data["tag"] = STATIC_LINUX
