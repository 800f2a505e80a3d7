#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What bench/bytes.lua does, in Python's asyncio; files by a thread pool, as asyncio does it."""
import asyncio
import os
import tempfile
import time


async def echo(size):
    async def serve(reader, writer):
        while data := await reader.read(size):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=size)
    reader, writer = await asyncio.open_connection(
        *server.sockets[0].getsockname(), limit=size)
    count = max(4, min(2000, (32 << 20) // size))
    piece = b"x" * size
    start = time.monotonic()

    async def send():
        for _ in range(count):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()

    sender = asyncio.create_task(send())
    back = 0
    while data := await reader.read(size):
        back += len(data)
    seconds = time.monotonic() - start
    await sender
    writer.close()
    server.close()
    assert back == count * size
    return back / seconds / 1e6


def whole(path):
    with open(path, "rb") as file:
        return file.read()


async def read(size):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(b"x" * size)
    count = 200
    start = time.monotonic()
    for _ in range(count):
        assert len(await asyncio.to_thread(whole, file.name)) == size
    seconds = time.monotonic() - start
    os.remove(file.name)
    return seconds / count * 1e6


async def main():
    for size in 4096, 65536, 1 << 20:
        await echo(size)
        print("echo in pieces of %7d: %6.0f MB/s    a file of that size: %6.0f us"
              % (size, await echo(size), await read(size)))


asyncio.run(main())
