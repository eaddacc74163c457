# A client after the Python 2 sample of the 2017 pages, for the tests of notbefore; it runs under jython.
#
# What it keeps: urllib2 and json; the header "Metadata: true" on the one request that it makes; the host's
# own name, looked for in Resources exactly as it is written; NotBefore taken for a string, with its spaces
# replaced (at 2017-03-01 it has none, and is empty once the event has started; a missing or null one would be
# an error here). It never approves: the sample has no code for that.
#
# Where it differs, and why:
#   - At 2017-03-01 names carry a "_" in front, so the sample's comparison can never be true. This one takes
#     that one "_" off.
#   - The sample misspells a variable. This one was written from what it does, not from its text.
#   - The sample looks once. This one looks until an event that it has seen is gone, and prints one line for
#     each event of a new document, beginning with the incarnation.
import json
import socket
import sys
import time
import urllib2

URL = "http://169.254.169.254/metadata/scheduledevents?api-version=2017-03-01"
THIS_HOST = socket.gethostname()


def read():
    request = urllib2.Request(URL)
    request.add_header("Metadata", "true")
    return json.loads(urllib2.urlopen(request).read())


def own_name(resource):
    if resource.startswith("_"):
        return resource[1:]
    return resource


def say(*words):
    print " ".join(str(word) for word in words)
    sys.stdout.flush()


def main():
    last, seen = None, False
    while True:
        document = read()
        if document["DocumentIncarnation"] != last:
            last = document["DocumentIncarnation"]
            if not document["Events"]:
                say(last, "nothing")
                if seen:
                    return
            for event in document["Events"]:
                not_before = event["NotBefore"].replace(" ", "_")
                if THIS_HOST in [own_name(resource) for resource in event["Resources"]]:
                    seen = True
                    say(last, event["EventId"], event["EventStatus"], event["EventType"],
                        event["ResourceType"], ",".join(event["Resources"]), "[%s]" % not_before)
        time.sleep(0.1)


main()
