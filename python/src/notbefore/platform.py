"""A running service for tests."""

import json
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type

from notbefore._binary import binary

#: Never through a proxy of the environment.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class PlatformError(Exception):
    """The service did not start, or refused a request."""


class Platform:
    """`notbefore serve` in a directory of its own, with a listener for each VM. Use it as a context manager.

    Every notice is divided by a hundred, and a started event ends after `event_seconds`.
    """

    def __init__(
        self, vms: Sequence[str] = ("web-0",), *, notice: float = 0.01, event_seconds: int = 5, start_timeout: float = 30
    ) -> None:
        self._vms = list(vms)
        self._directory = tempfile.TemporaryDirectory(prefix="notbefore-")
        ready = Path(self._directory.name, "ready.json")
        self._log = Path(self._directory.name, "service.log")
        command = [binary(), "serve", "--data", str(Path(self._directory.name, "data")), "--ready-file", str(ready)]
        command += ["--operator", "127.0.0.1:0", "--guest", "127.0.0.1:0", "--faults"]
        command += ["--notice", str(notice), "--simulated-duration", f"{event_seconds}s"]
        for vm in self._vms:
            command += ["--guest-vm", f"{vm}=127.0.0.1:0"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + start_timeout
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                text = self._log.read_text()
                self.close()
                raise PlatformError(f"the service did not start: {text}")
            time.sleep(0.01)
        listeners = json.loads(ready.read_text())
        self._operator: str = listeners["operator"]["url"]
        self._token = Path(listeners["token_file"]).read_text().strip()
        self._endpoints: List[str] = [listener["url"] for listener in listeners["guest_vms"]]

    @property
    def endpoint(self) -> str:
        """The base URL of the first VM."""
        return self._endpoints[0]

    def endpoint_of(self, vm: str) -> str:
        """The base URL of a VM."""
        if vm not in self._vms:
            raise PlatformError(f"there is no VM {vm}; there are {', '.join(self._vms)}")
        return self._endpoints[self._vms.index(vm)]

    def document(self, vm: Optional[str] = None, api_version: str = "2020-07-01") -> Dict[str, Any]:
        """The document that a VM reads now."""
        base = self.endpoint if vm is None else self.endpoint_of(vm)
        url = f"{base}/metadata/scheduledevents?api-version={api_version}"
        answer: Dict[str, Any] = self._send(urllib.request.Request(url, headers={"Metadata": "true"}))
        return answer

    def schedule(self, cause: str, vms: Optional[Sequence[str]] = None, **fields: Any) -> Dict[str, Any]:
        """Announces an event: `schedule("user-restart", in_seconds=900)`. Returns the operation."""
        body = {"cause": cause, "vms": list(vms or self._vms[:1]), **fields}
        operation: Dict[str, Any] = self._operate("POST", "/v1/events", body)
        return operation

    def events(self) -> List[Dict[str, Any]]:
        """All live events."""
        page: Dict[str, Any] = self._operate("GET", "/v1/events?limit=1000")
        items: List[Dict[str, Any]] = page["items"]
        return items

    def act(self, event: str, verb: str) -> Dict[str, Any]:
        """Does something with an event: `approve`, `cancel`, `start` or `complete`."""
        changed: Dict[str, Any] = self._operate("POST", f"/v1/events/{event}/{verb}")
        return changed

    def add_fault(self, kind: str, **fields: Any) -> Dict[str, Any]:
        """Adds a fault: `add_fault("status", status=500, count=3)`."""
        fault: Dict[str, Any] = self._operate("POST", "/v1/faults", {"kind": kind, **fields})
        return fault

    def clear_faults(self) -> None:
        """Ends all faults."""
        self._operate("DELETE", "/v1/faults")

    def close(self) -> None:
        """Stops the service and removes its directory."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._directory.cleanup()

    def __enter__(self) -> "Platform":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _operate(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return self._send(urllib.request.Request(self._operator + path, data=data, headers=headers, method=method))

    def _send(self, request: urllib.request.Request) -> Any:
        try:
            with _DIRECT.open(request, timeout=30) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise PlatformError(f"{request.get_method()} {request.full_url}: {error.code} {_detail(error.read())}") from None
        return json.loads(text) if text else None


def _detail(body: bytes) -> str:
    """The reason in the body of an error."""
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")
