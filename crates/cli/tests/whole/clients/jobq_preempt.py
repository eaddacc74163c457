"""Runs ai4s-jobq's PreemptionEventHandler, unmodified: it shuts work down when a Preempt event appears, and
takes it up again when the event is gone.

It makes a dataclass of exactly the nine fields of an event, so one too many or too few ends its poller.
Prints a line for each change that it sees, and ends after two preemptions.
"""

import asyncio
import os

# What the library takes for a sign that it runs on Azure.
os.environ["AZ_BATCH_TASK_ID"] = "task"

from ai4s.jobq.scheduled_events import PreemptionEventHandler


async def main():
    shutdown = asyncio.Event()
    async with PreemptionEventHandler(shutdown, poll_interval_seconds=0.1) as handler:
        print("working", flush=True)
        for _ in range(2):
            while not shutdown.is_set():
                assert not handler._polling_task.done(), handler._polling_task
                await asyncio.sleep(0.02)
            print("retired", flush=True)
            while shutdown.is_set():
                assert not handler._polling_task.done(), handler._polling_task
                await asyncio.sleep(0.02)
            print("recovered", flush=True)


asyncio.run(main())
