"""What is in work at once is bounded, and who came first goes first."""

from __future__ import annotations

import asyncio

import pytest
from fastapi import HTTPException

from epochzero.web.room import Room


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_who_comes_with_more_waits_and_who_came_first_goes_first() -> None:
    async def play() -> list[int]:
        room, begun, over = Room(10), [], asyncio.Event()

        async def work(size: int) -> None:
            async with room.taken("red", size):
                begun.append(size)
                await over.wait()

        async with asyncio.TaskGroup() as group:
            for size in (4, 5, 25, 1):
                group.create_task(work(size))
            await _settled()
            assert begun == [4, 5]  # One more would fit, but one who came before it waits.
            async with room.taken("blue", 10):
                over.set()
        assert not room._lines
        return begun

    assert asyncio.run(play()) == [4, 5, 25, 1]


def test_what_fails_gives_its_room_back() -> None:
    async def play() -> None:
        room = Room(1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                async with room.taken():
                    raise ZeroDivisionError

    asyncio.run(asyncio.wait_for(play(), 5))


def test_who_gives_up_waiting_leaves_no_gap() -> None:
    async def play() -> None:
        room = Room(1)

        async def one() -> None:
            async with room.taken():
                pass

        async with room.taken():
            waiting = [asyncio.create_task(one()) for _ in range(3)]
            await _settled()
            waiting[0].cancel()
            waiting[1].cancel()
            await _settled()
        await waiting[2]

    asyncio.run(asyncio.wait_for(play(), 5))


def test_too_many_are_told_to_come_again() -> None:
    async def play() -> HTTPException:
        room = Room(1)

        async def one() -> None:
            async with room.taken():
                pass

        async with asyncio.TaskGroup() as group, room.taken():
            for _ in range(256):
                group.create_task(one())
            await _settled()
            with pytest.raises(HTTPException) as refused:
                await one()
        return refused.value

    refused = asyncio.run(asyncio.wait_for(play(), 5))
    assert refused.status_code == 429
    assert refused.headers == {"Retry-After": "6"}
