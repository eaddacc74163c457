"""Runs dask-cloudprovider's AzurePreemptibleWorkerPlugin in real dask workers.

Two workers share a scheduler. `spot` has the plugin, unmodified, with its own default address; `steady` has
none. A value is put on `spot` alone. When the VM is preempted the plugin must retire `spot` so gently that the
value moves to `steady`; when the VM runs again a new worker with the plugin must join and stay.

Prints a line for each thing that it sees.
"""

import asyncio
import sys
import warnings

warnings.simplefilter("ignore")

from dask_cloudprovider.azure import AzurePreemptibleWorkerPlugin
from distributed import Client, Scheduler, Worker


def say(*words):
    print(*words, flush=True)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.05)


async def polled(plugin):
    """Waits until the plugin has asked at least once."""
    await until(lambda: plugin._session is not None and not plugin._lock.locked())


async def main():
    loopback = {"host": "127.0.0.1", "dashboard": False}
    async with Scheduler(port=0, **loopback) as scheduler:
        steady = await Worker(scheduler.address, name="steady", nthreads=1, **loopback)
        spot = await Worker(scheduler.address, name="spot", nthreads=1, **loopback)
        async with Client(scheduler.address, asynchronous=True) as client:
            plugin = AzurePreemptibleWorkerPlugin()
            await spot.plugin_add(plugin, name="preemptible")
            future = await client.scatter("precious", workers=[spot.address])
            await polled(plugin)
            say("working", *sorted(scheduler.aliases))

            await until(lambda: plugin.not_before is not None or plugin.terminating)
            say("noticed", plugin.not_before.isoformat() if plugin.not_before else "nothing")
            await spot.finished()
            held_by = (await client.who_has(future))[future.key]
            say("retired", *sorted(scheduler.aliases), "value", await client.gather(future))
            assert list(held_by) == [steady.address], held_by

            # The test starts the VM again, and says so.
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            again = await Worker(scheduler.address, name="again", nthreads=1, **loopback)
            plugin = AzurePreemptibleWorkerPlugin()
            await again.plugin_add(plugin, name="preemptible")
            await polled(plugin)
            answer = await client.submit(lambda x: x + 1, 41, workers=[again.address])
            say("recovered", *sorted(scheduler.aliases), "answer", answer, "terminating", plugin.terminating)
            await again.close()
        await steady.close()


asyncio.run(main())
