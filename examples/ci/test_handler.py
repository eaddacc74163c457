#!/usr/bin/env python3
"""Tests a handler with the container image, through Testcontainers: pip install testcontainers.

Run it with pytest or by itself. It needs a container engine and the image, under the name in NOTBEFORE_IMAGE.
"""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

IMAGE = os.environ.get("NOTBEFORE_IMAGE", "notbefore:0.1.0")
HANDLER = Path(__file__).resolve().parent.parent / "python3" / "watch_events.py"  # your handler
GUEST_PORT, OPERATOR_PORT = 9254, 9255


def service():
    """A service with short notice and strict checks. Every caller of its guest port is the VM web-0."""
    settings = {
        "NOTBEFORE_GUEST_MODE": "strict",
        "NOTBEFORE_EVENTS_NOTICE": "0.1",
        "NOTBEFORE_DRIVER_SIMULATED_DURATION": "1s",
    }
    container = DockerContainer(IMAGE).with_envs(**settings).with_exposed_ports(GUEST_PORT, OPERATOR_PORT)
    return container.waiting_for(HttpWaitStrategy(OPERATOR_PORT, "/readyz"))


def notbefore(container, *args):
    """The answer of a command in the container, which has the token."""
    done = container.exec(["notbefore", *args, "--output", "json"])
    if done.exit_code != 0:
        raise AssertionError(f"notbefore {' '.join(args)}: {done.output.decode()}")
    return json.loads(done.output)


class HandlerTest(unittest.TestCase):
    def test_handler_approves_a_reboot(self):
        with service() as container:
            endpoint = f"http://{container.get_container_host_ip()}:{container.get_exposed_port(GUEST_PORT)}"
            handler = subprocess.Popen([sys.executable, HANDLER, "--endpoint", endpoint, "--yes"])
            try:
                operation = notbefore(container, "event", "schedule", "--type", "reboot", "web-0")
                notbefore(container, "operation", "wait", operation["id"], "--timeout", "60s")
                ended = notbefore(container, "event", "history", "--newest", "--limit", "1")[0]
            finally:
                handler.terminate()
                handler.wait()
        self.assertEqual((ended["type"], ended["status"], ended["approved"]), ("Reboot", "Completed", True))


if __name__ == "__main__":
    unittest.main()
