#!/usr/bin/env python3
"""Polls Scheduled Events once a second, shows every change, and approves what happens to this VM.

Standard library only. It asks before it approves; --yes approves without asking, --once looks once and ends (with 1
if it could not read the document, or does not know which VM this is).
"""
import argparse
import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

# The endpoint is never behind a proxy; ignore the environment's settings.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# Errors of a request, including refusals.
TROUBLE = (OSError, http.client.HTTPException)
# The first response may take two minutes; the VM's name is answered at once or requested again.
TIMEOUT_SECONDS, NAME_TIMEOUT_SECONDS = 120, 2


class Client:
    def __init__(self, endpoint, version):
        self.endpoint, self.version = endpoint.rstrip("/"), version
        self.url = f"{self.endpoint}/metadata/scheduledevents?api-version={version}"

    def ask(self, url, body=None, timeout=TIMEOUT_SECONDS):
        request = urllib.request.Request(url, data=body, headers={"Metadata": "true"})
        with DIRECT.open(request, timeout=timeout) as answer:
            return answer.read()

    def name(self):
        """What the platform calls this VM, which is what stands in Resources; the host name need not be that, and who
        goes by it approves nothing, or what is another's."""
        url = f"{self.endpoint}/metadata/instance/compute/name?api-version=2021-02-01&format=text"
        name = self.ask(url, timeout=NAME_TIMEOUT_SECONDS).decode().strip()
        if not name:
            raise ValueError("the answer is empty")
        return name

    def document(self):
        """The incarnation and the events. What is no document, an empty answer too, raises: it is not "no events"."""
        # Not strict: the service has been seen to send raw line breaks in texts.
        document = json.loads(self.ask(self.url), strict=False)
        if not isinstance(document, dict) or not isinstance(document.get("Events"), list):
            raise ValueError("the answer has no list of Events")
        return document.get("DocumentIncarnation"), [Event(facts, self.version) for facts in document["Events"]]

    def approve(self, event_id):
        """One event a request: where one of several is refused, all are."""
        self.ask(self.url, json.dumps({"StartRequests": [{"EventId": event_id}]}).encode())


class Event:
    """One event, with '-' for what is missing or no text: an odd one must not hide the others."""

    def __init__(self, facts, version):
        facts = facts if isinstance(facts, dict) else {}
        self.id, self.status, self.type, self.not_before = (
            facts[key] if isinstance(facts.get(key), str) and facts[key] else "-"
            for key in ("EventId", "EventStatus", "EventType", "NotBefore")
        )
        names = facts.get("Resources") or []
        names = [str(name) for name in (names if isinstance(names, list) else [names])]
        # At 2017-03-01 names start with a '_'.
        self.resources = [name.removeprefix("_") for name in names] if version == "2017-03-01" else names

    def whose(self, name):
        if not name:
            return "unknown"
        return "mine" if name.lower() in (resource.lower() for resource in self.resources) else "others"

    def __str__(self):
        return f"{self.id} {self.status} {self.type} {','.join(self.resources)} {utc(self.not_before)}"


def utc(not_before):
    """NotBefore is "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z", and blank once it has started. A time in
    other words is shown as it came: nothing depends on it."""
    try:
        if "," in not_before:
            when = parsedate_to_datetime(not_before)
        else:
            when = datetime.fromisoformat(not_before.replace("Z", "+00:00"))
        return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, TypeError, OverflowError):
        return not_before


def say(*words):
    print(*words, flush=True)


def complain(*words):
    print(*words, file=sys.stderr, flush=True)


def agreed(event):
    try:
        return input(f"approve the {event.type} {event.id}? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--endpoint", default="http://169.254.169.254")
    words.add_argument("--api-version", default="2020-07-01")
    words.add_argument("--name", help="what the platform calls this VM")
    words.add_argument("--once", action="store_true")
    words.add_argument("--yes", action="store_true")
    options = words.parse_args()
    client, name = Client(options.endpoint, options.api_version), options.name
    shown, settled = None, set()
    while True:
        failed = False
        if not name:
            try:
                name = client.name()
            except (*TROUBLE, ValueError) as error:
                failed = True
                complain(f"{client.endpoint} does not say what this VM is called ({error}); "
                         "until it does, or --name says it, nothing is approved")
        try:
            incarnation, events = client.document()
        except (*TROUBLE, ValueError) as error:
            failed = True
            complain(f"no document from {client.url}: {error}")
        else:
            lines = [f"{incarnation} {event} {event.whose(name)}" for event in events] or [f"{incarnation} nothing"]
            if lines != shown:
                say("\n".join(lines))
                shown = lines
            for event in events:
                if event.whose(name) != "mine" or event.status != "Scheduled":
                    continue
                if event.id == "-" or event.id in settled:
                    continue
                try:
                    if options.yes or agreed(event):
                        client.approve(event.id)
                        say("approved", event.id)
                    settled.add(event.id)
                except TROUBLE as error:
                    complain(f"not approved {event.id}: {error}")
                    # A refusal is final; other failures are retried with the next poll.
                    if isinstance(error, urllib.error.HTTPError) and error.code == 400:
                        settled.add(event.id)
        if options.once:
            sys.exit(1 if failed else 0)
        time.sleep(1)


if __name__ == "__main__":
    main()
