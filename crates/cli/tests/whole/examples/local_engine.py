"""Runs a program that uses Testcontainers where there is no container engine: local_engine.py BINARY PORTS PROGRAM

A container is a process of BINARY with the image's variables, which are those of this process, and the container's own.
PORTS are those that the image exposes, separated by commas. All of Testcontainers but its Docker client is real.
"""
import os
import runpy
import subprocess
import sys
import types

import testcontainers.core.container as core
from docker.models.containers import ExecResult
from testcontainers.core.config import ConnectionMode, testcontainers_config

BINARY, PORTS, PROGRAM = sys.argv[1], sys.argv[2].split(","), sys.argv[3]


class LocalContainer:
    id, short_id, status = "local", "local", "running"

    def __init__(self, environment):
        self.environment = {**os.environ, **environment}
        self.process = None

    def reload(self):
        pass

    def logs(self):
        return b""

    def exec_run(self, cmd, **_):
        assert cmd[0] == "notbefore", f"the image has no program {cmd[0]}"
        done = subprocess.run([BINARY, *cmd[1:]], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return ExecResult(done.returncode, done.stdout)

    def remove(self, **_):
        self.process.terminate()
        self.process.wait()


class LocalClient:
    client = types.SimpleNamespace(close=lambda: None)

    def create(self, image, command, environment, ports, **_):
        assert command is None, "the image's own command runs"
        unknown = [port for port in map(str, ports) if port.partition("/")[0] not in PORTS]
        assert not unknown, f"the image does not expose {unknown}"
        return LocalContainer(environment)

    def start(self, container):
        container.process = subprocess.Popen([BINARY, "serve"], env=container.environment)

    def get_connection_mode(self):
        return ConnectionMode.docker_host

    def host(self):
        return "127.0.0.1"

    def port(self, _, port):
        return port


core.DockerClient = LocalClient
testcontainers_config.ryuk_disabled = True
sys.argv = [PROGRAM]
runpy.run_path(PROGRAM, run_name="__main__")
