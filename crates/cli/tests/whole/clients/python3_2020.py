# A client after the Python sample of the 2020 pages, for the tests of notbefore.
#
# What it keeps: urllib; "Metadata: true" on every request; the host's own name, looked for in Resources
# exactly as it is written; Description and EventSource must be there, and NotBefore must be a string; an
# approval that names nothing but the event, with the content type that urllib adds by itself.
#
# Where it differs, and why:
#   - The sample is wrongly indented and does not run. This one was written from what it does.
#   - The sample leaves the handling to its reader. This one approves its own host's event as soon as it is
#     scheduled, because an event that nobody approves would take a quarter of an hour.
#   - The sample looks once. This one looks until an event that it has seen is gone, and prints one line for
#     each event of a new document, beginning with the incarnation.
import json
import socket
import time
import urllib.request

URL = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
THIS_HOST = socket.gethostname()


def ask(data=None):
    request = urllib.request.Request(URL, data=data, headers={"Metadata": "true"})
    with urllib.request.urlopen(request) as answer:
        return answer.status, answer.read()


def approve(event_id):
    approval = {"StartRequests": [{"EventId": event_id}]}
    status, body = ask(json.dumps(approval).encode())
    say("approved", event_id, status, "%d bytes" % len(body))


def say(*words):
    print(*words, flush=True)


def main():
    last, seen = None, False
    while True:
        document = json.loads(ask()[1])
        if document["DocumentIncarnation"] != last:
            last = document["DocumentIncarnation"]
            if not document["Events"]:
                say(last, "nothing")
                if seen:
                    return
            for event in document["Events"]:
                not_before = event["NotBefore"].replace(" ", "_")
                description = event["Description"].replace(" ", "_")
                if THIS_HOST not in event["Resources"]:
                    continue
                seen = True
                say(last, event["EventId"], event["EventStatus"], event["EventType"], event["ResourceType"],
                    event["EventSource"], "[%s]" % description, "[%s]" % not_before)
                if event["EventStatus"] == "Scheduled":
                    approve(event["EventId"])
        time.sleep(0.1)


main()
