"""Several logs as one series in the order of time: each is opened only when its time has come."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from agent.sources.series import Thing
from core.readings import EngineIdentity, GpuIdentity, GpuReading


@dataclass(frozen=True, slots=True)
class Stream:
    """A log that nobody opened yet: about when it begins, and its things in the order of time."""

    first_ms: int
    things: Iterator[Thing]


def merged(streams: Iterable[Stream]) -> Iterator[Thing]:
    """Things of all streams by time; of equal times those of the stream that was named first come first.

    Only streams that overlap in time are open together.
    """
    waiting = sorted(enumerate(streams), key=lambda pair: pair[1].first_ms, reverse=True)
    heap: list[tuple[int, int, int, Thing]] = []
    running: dict[int, Iterator[Thing]] = {}
    count = 0

    def push(number: int, before_ms: int) -> None:
        nonlocal count
        thing = next(running[number], None)
        if thing is None:
            del running[number]
            return
        count += 1
        # An identity has no time of its own: it stays in its place.
        ts_ms = before_ms if isinstance(thing, GpuIdentity | EngineIdentity) else thing.ts_ms
        heappush(heap, (ts_ms, number, count, thing))

    while waiting or heap:
        while waiting and (not heap or waiting[-1][1].first_ms <= heap[0][0]):
            number, stream = waiting.pop()
            running[number] = stream.things
            push(number, stream.first_ms)
        if heap:
            ts_ms, number, _count, thing = heappop(heap)
            yield thing
            push(number, ts_ms)


def joined(things: Iterable[Thing]) -> Iterator[Thing]:
    """Readings of one GPU at the same instant as one reading; where both know a value the later one counts."""
    held: dict[str, GpuReading] = {}
    now_ms = -1
    for thing in things:
        if not isinstance(thing, GpuReading):
            yield thing
            continue
        if thing.ts_ms != now_ms:
            yield from held.values()
            held, now_ms = {}, thing.ts_ms
        uuid = thing.gpu_uuid
        before = held.get(uuid)
        held[uuid] = thing if before is None else GpuReading(uuid, now_ms, {**before.values, **thing.values})
    yield from held.values()
