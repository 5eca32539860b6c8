"""Eight tasks of one event loop share an asyncio.Semaphore with two slots. Prints how long the loop ran, in ns."""

import asyncio
import time


async def look_up(slots):
    async with slots:
        await asyncio.sleep(0.015)


async def scrape(slots):
    for _ in range(8):
        await look_up(slots)
        await asyncio.sleep(0.010)


async def scrape_all():
    slots = asyncio.Semaphore(2)
    await asyncio.gather(*(scrape(slots) for _ in range(8)))


begin = time.monotonic_ns()
asyncio.run(scrape_all())
print(time.monotonic_ns() - begin)
