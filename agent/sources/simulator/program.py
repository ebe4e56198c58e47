"""What a GPU of the simulated fleet runs: a load and the process behind it, at any instant."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agent.sources.simulator.calendar import in_office, in_weekend_pause
from agent.sources.simulator.load import EMPTY, Load
from core.units import DAY_MS, HOUR_MS


class Process(NamedTuple):
    """The process that holds a GPU: its id and start tell one run of a program from the next."""

    pid: int
    start_ms: int
    name: str
    user: str


class Program(Protocol):
    """Something that runs on one or several GPUs."""

    def load(self, ts_ms: int) -> Load:
        """What it asks of each of its GPUs."""
        ...

    def process(self, ts_ms: int) -> Process | None:
        """Who runs it; None while nobody does."""
        ...


Shift = Callable[[int], int | None]
"""When a program runs: the start of the run that is under way at an instant; None between runs (UTC epoch ms)."""
Work = Callable[[int, int], Load]
"""What a job asks of each of its GPUs: at an instant, of the run that began at another (UTC epoch ms)."""


@dataclass(frozen=True, slots=True)
class Since:
    """From one instant to another, in one run."""

    from_ms: int
    to_ms: int | None = None

    def __call__(self, ts_ms: int) -> int | None:
        """Start of that run."""
        running = self.from_ms <= ts_ms and (self.to_ms is None or ts_ms < self.to_ms)
        return self.from_ms if running else None


@dataclass(frozen=True, slots=True)
class Office:
    """Every weekday between two hours (UTC), until an instant; a new run each day."""

    from_h: float
    to_h: float
    until_ms: int | None = None

    def __call__(self, ts_ms: int) -> int | None:
        """Start of that day's run."""
        if self.until_ms is not None and ts_ms >= self.until_ms:
            return None
        if not in_office(ts_ms, self.from_h, self.to_h):
            return None
        return ts_ms // DAY_MS * DAY_MS + int(self.from_h * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Nights:
    """Every night from one hour to another of the next morning (UTC), until an instant."""

    from_h: int
    to_h: int
    until_ms: int

    def __call__(self, ts_ms: int) -> int | None:
        """Start of that night's run."""
        midnight = ts_ms // DAY_MS * DAY_MS
        hour = (ts_ms - midnight) / HOUR_MS
        if ts_ms >= self.until_ms or self.to_h <= hour < self.from_h:
            return None
        return midnight + self.from_h * HOUR_MS - (DAY_MS if hour < self.to_h else 0)


@dataclass(frozen=True, slots=True)
class WorkWeek:
    """From Monday 06:00 to Friday 20:00 (UTC) without a break: nobody restarts it over the weekend."""

    def __call__(self, ts_ms: int) -> int | None:
        """Start of that week's run."""
        if in_weekend_pause(ts_ms):
            return None
        monday = (ts_ms // DAY_MS + 3) // 7 * 7 - 3
        return monday * DAY_MS + 6 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Job:
    """A program with a shift: its process while it runs, an empty GPU between runs.

    Attributes:
        name: executable as the process list shows it. user: who started it. pid: process id of its first run.
        shift: when it runs. work: its load while it does, given the instant and the run's start.
    """

    name: str
    user: str
    pid: int
    shift: Shift
    work: Work

    def load(self, ts_ms: int) -> Load:
        """Load of each of its GPUs."""
        start = self.shift(ts_ms)
        return EMPTY if start is None else self.work(ts_ms, start)

    def process(self, ts_ms: int) -> Process | None:
        """The run's process."""
        start = self.shift(ts_ms)
        if start is None:
            return None
        return Process(self.pid + start // HOUR_MS % 997 * 31, start, self.name, self.user)


@dataclass(frozen=True, slots=True)
class InTurn:
    """Several programs, one after the other: the first that runs has the GPU."""

    programs: tuple[Program, ...]

    def load(self, ts_ms: int) -> Load:
        """Load of the program that has the GPU."""
        for program in self.programs:
            if program.process(ts_ms) is not None:
                return program.load(ts_ms)
        return EMPTY

    def process(self, ts_ms: int) -> Process | None:
        """Process of the program that has the GPU."""
        for program in self.programs:
            found = program.process(ts_ms)
            if found is not None:
                return found
        return None
