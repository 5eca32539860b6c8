# An event loop of a program that ends without a signal: a call of 3 ms blocks it again and again, and all pieces of work are alike.
# Prints for how many ms it was blocked.
import asyncio
import time

slept = 0.0


def sign():
    global slept
    begin = time.monotonic()
    time.sleep(0.003)
    slept += time.monotonic() - begin


async def session():
    for _ in range(25):
        await asyncio.sleep(0.014)
        sign()


async def sessions():
    await asyncio.gather(*(session() for _ in range(4)))


asyncio.run(sessions())
print(f"{1000 * slept:.1f}")
