"""A small right handler, with one wrong habit if the first argument names it."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any, Dict, Optional, Set

URL = os.environ["NOTBEFORE_ENDPOINT"] + "/metadata/scheduledevents?api-version="
VM = os.environ["NOTBEFORE_VM"]
HABIT = sys.argv[1] if len(sys.argv) > 1 else ""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
#: How long it takes to drain. A handler that does not look again approves what was cancelled meanwhile.
DRAIN_SECONDS = 12.0 if HABIT == "approves-after-cancel" else 0.3
#: Drains on advice, stays drained for the eviction that follows, and handles nothing else.
ON_ADVICE = HABIT in ("drains-on-advice", "stays-drained-after-advice")


class Handler:
    def __init__(self) -> None:
        self.version = "2024-07-09"
        self.handled: Set[str] = set()
        self.is_drained = False
        self.approved: Set[str] = set()

    def send(self, body: Optional[bytes] = None) -> bytes:
        request = urllib.request.Request(URL + self.version, data=body, headers={"Metadata": "true"})
        try:
            answer: bytes = DIRECT.open(request, timeout=150).read()
        except urllib.error.HTTPError as error:
            if error.code == 404 and self.version == "2024-07-09":
                self.version = "2020-07-01"
                return self.send(body)
            if HABIT == "panics-on-status" and error.code not in (200, 404):
                sys.exit(101)
            if HABIT == "reads-errors-as-empty":
                return b'{"Events": []}'
            raise
        return answer

    def events(self) -> Dict[str, Dict[str, Any]]:
        text = self.send().decode().replace("\n", " ")
        return {event["EventId"]: event for event in json.loads(text)["Events"]}

    def approve(self, event_id: str) -> None:
        named = event_id
        if HABIT == "approves-the-last":
            named = list(self.events())[-1]
        if HABIT == "approves-the-first":
            named = next(iter(self.events()))
        if HABIT == "approves-once":
            self.approved.add(event_id)
        self.send(json.dumps({"StartRequests": [{"EventId": named}]}).encode())
        self.approved.add(event_id)

    def is_handled(self, event: Dict[str, Any]) -> bool:
        is_mine = VM in event["Resources"] or HABIT in ("approves-everything", "ignores-resources")
        if HABIT == "matches-substrings":
            is_mine = VM in ",".join(event["Resources"])
        if HABIT == "reads-utc-as-local-time" and event["NotBefore"]:
            not_before = time.strptime(event["NotBefore"], "%a, %d %b %Y %H:%M:%S GMT")
            # Too late to prepare, it believes.
            is_mine = is_mine and time.mktime(not_before) > time.time()
        statuses = ["Scheduled"]
        if HABIT == "drains-when-started":
            statuses.append("Started")
        if HABIT == "takes-advice-for-eviction" or ON_ADVICE:
            statuses.append("Advisory")
        return is_mine and event["EventStatus"] in statuses

    def handle(self, event_id: str) -> None:
        if event_id not in self.handled:
            self.prepare(event_id)
        if event_id in self.approved:
            return
        listed = self.events()
        if HABIT == "approves-after-cancel":
            self.approve(event_id)
        elif event_id in listed and listed[event_id]["EventStatus"] != "Started":
            if HABIT != "ignores-resources":
                self.approve(event_id)

    def prepare(self, event_id: str) -> None:
        self.handled.add(event_id)
        if ON_ADVICE:
            # Drains once, and approves nothing.
            self.approved.add(event_id)
            if not self.is_drained:
                print("drained", flush=True)
            self.is_drained = True
            return
        if HABIT in ("approves-before-draining", "drains-with-the-answer"):
            self.approve(event_id)
        if HABIT != "drains-with-the-answer":
            time.sleep(DRAIN_SECONDS)
        if HABIT != "approves-everything":
            print("drained", flush=True)

    def step(self) -> None:
        events = self.events()
        for event_id, event in events.items():
            if event_id not in self.approved and self.is_handled(event):
                self.handle(event_id)
        left = self.events()
        for event_id in self.handled - set(left):
            self.handled.discard(event_id)
            self.approved.discard(event_id)
            if HABIT in ("stays-drained-after-advice", "drains-when-started") or (ON_ADVICE and left):
                continue
            if HABIT == "approves-what-is-gone":
                self.approve(event_id)
            print("restored", flush=True)


def main() -> None:
    handler = Handler()
    while True:
        try:
            handler.step()
        except Exception as error:
            if isinstance(getattr(error, "reason", None), ConnectionRefusedError):
                sys.exit("the rehearsal is gone")
            print("error:", error, flush=True)
        time.sleep(0.0 if HABIT == "never-waits" else 0.6)


main()
