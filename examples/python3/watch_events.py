#!/usr/bin/env python3
"""Polls Scheduled Events once a second, shows every change, and approves what happens to this VM.

Standard library only. It asks before it approves; --yes approves without asking, --once looks once and ends
(with 1 if it could not read).
"""
import argparse
import http.client
import json
import socket
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

# The endpoint is never behind a proxy, whatever the environment says.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# What goes wrong on the way; a refusal is one of them.
TROUBLE = (OSError, http.client.HTTPException)
# The first answer, which turns the feature on, may take two minutes.
TIMEOUT_SECONDS = 120


class Client:
    def __init__(self, endpoint, version):
        self.endpoint, self.version = endpoint.rstrip("/"), version
        self.url = f"{self.endpoint}/metadata/scheduledevents?api-version={version}"

    def ask(self, url, body=None):
        request = urllib.request.Request(url, data=body, headers={"Metadata": "true"})
        with DIRECT.open(request, timeout=TIMEOUT_SECONDS) as answer:
            return answer.read()

    def name(self):
        """What the platform calls this VM, which is what stands in Resources; the host name need not be that."""
        url = f"{self.endpoint}/metadata/instance/compute/name?api-version=2021-02-01&format=text"
        return self.ask(url).decode().strip()

    def document(self):
        """The incarnation and the events. What is no document, an empty answer too, raises: it is not "no events"."""
        document = json.loads(self.ask(self.url))
        if not isinstance(document, dict) or not isinstance(document.get("Events"), list):
            raise ValueError("the answer has no list of Events")
        return document.get("DocumentIncarnation"), document["Events"]

    def resources(self, event):
        """The VMs it happens to. At 2017-03-01 names begin with a '_'."""
        names = event.get("Resources") or []
        return [name.removeprefix("_") for name in names] if self.version == "2017-03-01" else names

    def approve(self, event_id):
        """One event a request: where one of several is refused, all are."""
        self.ask(self.url, json.dumps({"StartRequests": [{"EventId": event_id}]}).encode())


def utc(not_before):
    """NotBefore is "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z", and blank once it has started."""
    if not not_before:
        return "-"
    if "," in not_before:
        when = parsedate_to_datetime(not_before)
    else:
        when = datetime.fromisoformat(not_before.replace("Z", "+00:00"))
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def say(*words):
    print(*words, flush=True)


def complain(*words):
    print(*words, file=sys.stderr, flush=True)


def agreed(event):
    try:
        return input(f"approve the {event['EventType']} {event['EventId']}? [y/N] ").strip().lower() == "y"
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
    if not name:
        try:
            name = client.name()
        except TROUBLE as error:
            name = socket.gethostname()
            complain(f"the endpoint does not say what this VM is called ({error}); taking it to be {name}")

    shown, settled = None, set()
    while True:
        try:
            incarnation, events = client.document()
        except (*TROUBLE, ValueError) as error:
            complain(f"no document from {client.url}: {error}")
            if options.once:
                sys.exit(1)
        else:
            if incarnation != shown and not events:
                say(incarnation, "nothing")
            for event in events:
                names = client.resources(event)
                mine = name.lower() in (resource.lower() for resource in names)
                if incarnation != shown:
                    say(incarnation, event["EventId"], event["EventStatus"], event["EventType"],
                        ",".join(names), utc(event.get("NotBefore")), "mine" if mine else "others")
                event_id = event["EventId"]
                if not mine or event["EventStatus"] != "Scheduled" or event_id in settled:
                    continue
                try:
                    if options.yes or agreed(event):
                        client.approve(event_id)
                        say("approved", event_id)
                    settled.add(event_id)
                except TROUBLE as error:
                    complain(f"not approved {event_id}: {error}")
                    # What is refused stays refused; anything else is tried again with the next poll.
                    if isinstance(error, urllib.error.HTTPError) and error.code == 400:
                        settled.add(event_id)
            shown = incarnation
        if options.once:
            return
        time.sleep(1)


if __name__ == "__main__":
    main()
