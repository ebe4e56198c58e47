"""Keeps a driver process running and notices from outside when it hangs.

A GPU whose call does not return is left alone: its process is killed, a fresh one goes on with the other GPUs, and a
probe in a process of its own asks the silent one from time to time. Nothing piles up: one probe at a time, doubling
waits, and no new process while killed ones still wait inside the kernel.
"""

import logging
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.driver.board import DRIVER, EVENTS, IDLE, MAIN, QUICK, SLOW
from agent.driver.frames import Frame
from agent.driver.process import KILL_WAIT_S, DriverProcess, probe

log = logging.getLogger(__name__)

START_HANG_S: Final = 20.0
"""nvmlInit itself was seen to hang (H200, driver 570.148.08: NVIDIA/go-nvml issue 152); healthy ones take under 5 s."""
CALL_HANG_S: Final = 2.0
"""A round over one GPU takes milliseconds; with persistence mode off the first call after a pause up to a second."""
SLOW_HANG_S: Final = 10.0
EVENTS_HANG_S: Final = 20.0
PROBE_S: Final = 5.0
FIRST_WAIT_S: Final = 10.0
LONGEST_WAIT_S: Final = 600.0
RESTART_S: Final = 1.0
STEADY_S: Final = 60.0
"""A process that ran this long is started again without waiting longer than the first time."""
UNKILLABLE: Final = 3
"""Killed processes that may wait inside the kernel before no more are started."""
CRASHES: Final = 2
"""Crashes on the same GPU before it is left alone, and of a process that never gave a reading before GPUs are unknown."""
BEHIND_S: Final = {QUICK: 1.0, SLOW: 6.0}
"""A thread that waits for the driver's lock began to at most one round of its own after the one that holds it."""
VERSION_FILE: Final = Path("/proc/driver/nvidia/version")
VERSION_LOOK_S: Final = 10.0
MISMATCH: Final = 18
STOP_S: Final = 2.0
UPGRADED: Final = (
    "the NVIDIA driver was upgraded under the agent: reload its module or reboot;"
    " until library and module fit, the agent starts its driver process anew"
)


@dataclass(slots=True)
class _Silent:
    """A GPU that is left alone, and when it is asked again."""

    wait_s: float
    due_s: float
    probe: "subprocess.Popen[bytes] | None" = None
    probe_until_s: float = 0.0


class Reader:
    """Frames of the driver process, whatever happens to it.

    Besides the process's own frames it gives ``("stuck", mono_ns, index | None)``: a call on that GPU (None: on the
    driver as a whole) does not return; and ``("down", mono_ns, sentence)``: the driver cannot be used for now.

    Args:
        interval_s: distance of readings. gpm_s: distance of GPM samples.
        version_file: where the loaded kernel module says its version.
    """

    def __init__(self, *, interval_s: float, gpm_s: float = 10.0, version_file: Path = VERSION_FILE) -> None:
        self._interval, self._gpm = interval_s, gpm_s
        self._version_file = version_file
        self._process: DriverProcess | None = None
        self._dying: list[DriverProcess] = []
        self._silent: dict[int, _Silent] = {}
        self._returned: dict[int, tuple[float, float]] = {}
        self._crashes: dict[int, int] = {}
        self._early_ends = 0
        self._deaf_due_s, self._deaf_wait_s = 0.0, EVENTS_HANG_S
        self._due_s = 0.0
        self._wait_s = RESTART_S
        self._failed: tuple[int, str] | None = None
        self._said: str | None = None
        self._version: str | None = None
        self._version_due_s = 0.0
        self.paused = False

    @property
    def pids(self) -> list[int]:
        """Processes that belong to this reader now."""
        held = [self._process, *self._dying]
        probes = [silent.probe.pid for silent in self._silent.values() if silent.probe is not None]
        return [process.pid for process in held if process is not None] + probes

    @property
    def silent(self) -> list[int]:
        """NVML indices that are left alone because a call on them did not return."""
        return sorted(self._silent)

    def poll(self, timeout_s: float) -> list[Frame]:
        """What came within ``timeout_s``; starts, watches and replaces the process on the way."""
        now = time.monotonic()
        frames: list[Frame] = []
        self._tend(now, frames)
        process = self._process
        if process is None:
            time.sleep(min(timeout_s, 0.2))
            return frames
        ready, _, _ = select.select([process.fd], [], [], 0 if frames else timeout_s)
        if ready:
            frames += self._take(process)
        return frames

    def pause(self) -> bool:
        """Let go of the driver; whether its process is gone."""
        self.paused = True
        gone = self._end(STOP_S)
        return self._end_probes() and gone and not self._dying

    def resume(self) -> None:
        """Start again."""
        self.paused = False
        self._due_s, self._wait_s = 0.0, RESTART_S

    def rescan(self) -> None:
        """Look for GPUs now."""
        if self._process is not None:
            self._process.order("rescan")

    def close(self) -> None:
        """End everything, without waiting for what hangs."""
        self._end(0.5)
        for silent in self._silent.values():
            if silent.probe is not None:
                silent.probe.kill()

    def _end_probes(self) -> bool:
        """A probe holds the driver too; whether none is left."""
        for silent in self._silent.values():
            if silent.probe is not None:
                silent.probe.kill()
                try:
                    silent.probe.wait(KILL_WAIT_S)
                except subprocess.TimeoutExpired:
                    continue
                silent.probe = None
        return all(silent.probe is None for silent in self._silent.values())

    def _end(self, seconds: float) -> bool:
        process, self._process = self._process, None
        if process is not None and not process.stop(seconds):
            self._dying.append(process)
            return False
        return True

    def _take(self, process: DriverProcess) -> list[Frame]:
        frames = process.read()
        for frame in frames:
            if frame[0] == "failed":
                self._failed = frame[1], frame[2]
            elif frame[0] == "tick":
                self._early_ends = 0
                if self._said is not None:
                    log.info("driver answers again")
                    self._said = None
        return [frame for frame in frames if frame[0] != "failed"]

    def _tend(self, now: float, frames: list[Frame]) -> None:
        self._dying = [process for process in self._dying if process.exit_code() is None]
        if self.paused:
            return
        process = self._process
        if process is not None:
            code = process.exit_code()
            if process.frames.closed or code is not None:
                self._ended(process, now, frames)
            else:
                self._watch(process, now, frames)
        self._look_at_version(now)
        if self._process is None and now >= self._due_s and len(self._dying) < UNKILLABLE:
            self._start()
        self._probe(now)

    def _start(self) -> None:
        self._version = self._module_version()
        self._failed = None
        self._process = DriverProcess(interval_s=self._interval, gpm_s=self._gpm, skip=set(self._silent))

    def _ended(self, process: DriverProcess, now: float, frames: list[Frame]) -> None:
        """It died by itself: say why, wait, and leave a GPU alone that brings it down each time."""
        while not process.frames.closed:  # what it said at last
            frames += self._take(process)
        at = {index for index, _since in process.board.look()[:EVENTS] if index >= 0}
        process.stop(KILL_WAIT_S)
        self._process = None
        code = process.exit_code()
        self._back_off(process, now)
        if self._failed is not None:
            sentence = UPGRADED if self._failed[0] == MISMATCH else self._failed[1]
            frames.append(("down", time.monotonic_ns(), sentence))
        else:
            sentence = f"the driver process ended unexpectedly (exit code {code})"
            for index in at:
                self._crashes[index] = self._crashes.get(index, 0) + 1
                if self._crashes[index] >= CRASHES:
                    self._leave_alone(index, now)
                    frames.append(("stuck", time.monotonic_ns(), index))
            self._early_ends += 1
            if self._early_ends >= CRASHES and not at:
                frames.append(("down", time.monotonic_ns(), sentence))
        self._say(sentence)

    def _watch(self, process: DriverProcess, now: float, frames: list[Frame]) -> None:
        now_ns = time.monotonic_ns()
        quick_s = max(CALL_HANG_S, min(2 * self._interval, SLOW_HANG_S))
        limits = {MAIN: START_HANG_S, QUICK: quick_s, SLOW: SLOW_HANG_S, EVENTS: EVENTS_HANG_S}
        looks = process.board.look()
        over = [
            slot
            for slot, (index, since) in enumerate(looks)
            if index != IDLE and now_ns - since > limits[slot] * 1e9
        ]
        if not over:
            return
        if over == [EVENTS]:
            self._deafened(process, now)
            return
        slot = min((one for one in over if one != EVENTS), key=lambda one: looks[one][1])
        since, index = self._culprit(looks, slot)
        self._kill(process)
        if index == DRIVER:
            self._back_off(process, now, least_s=FIRST_WAIT_S)
            self._say("the NVIDIA driver does not answer: a call on the driver as a whole hangs")
            frames.append(("stuck", now_ns, None))
            return
        log.warning(
            "gpu does not answer, left alone",
            extra={"gpu_index": index, "for_s": round((now_ns - since) / 1e9, 1)},
        )
        self._leave_alone(index, now)
        self._due_s = 0.0
        frames.append(("stuck", now_ns, index))

    def _culprit(self, looks: list[tuple[int, int]], slot: int) -> tuple[int, int]:
        """Since when and at which GPU the call hangs that holds up the thread of ``slot``: its own, or the one before it.

        Calls serialise on a lock of the driver, so a thread may wait for another one's. Whoever began long before
        does not hold that lock: the waiting thread came round since.
        """
        behind_s = BEHIND_S.get(slot, 0.0) + (self._interval if slot == QUICK else 0.0)
        earliest = looks[slot][1] - behind_s * 1e9
        return min((since, index) for index, since in looks if index != IDLE and since >= earliest)

    def _deafened(self, process: DriverProcess, now: float) -> None:
        """The wait for events alone hangs: readings go on, and a fresh process may hear again."""
        if now < self._deaf_due_s:
            return
        self._deaf_due_s = now + self._deaf_wait_s
        self._deaf_wait_s = min(self._deaf_wait_s * 2, LONGEST_WAIT_S)
        log.warning("the wait for driver events does not return, driver process started anew")
        self._kill(process)
        self._due_s = 0.0

    def _kill(self, process: DriverProcess) -> None:
        self._process = None
        if not process.kill():
            self._dying.append(process)
            log.warning("driver process cannot be killed yet", extra={"pid": process.pid})

    def _look_at_version(self, now: float) -> None:
        """A module loaded anew: only a fresh process can use the library that belongs to it."""
        if now < self._version_due_s:
            return
        self._version_due_s = now + VERSION_LOOK_S
        version = self._module_version()
        if version is None or version == self._version:
            return
        known, self._version = self._version, version
        if known is None:
            return
        self._due_s = now
        if self._process is not None:
            self._say(UPGRADED)
            self._end(STOP_S)

    def _leave_alone(self, index: int, now: float) -> None:
        wait_s, at_s = self._returned.pop(index, (0.0, 0.0))
        again = bool(wait_s) and now - at_s < max(STEADY_S, wait_s)
        wait_s = min(wait_s * 2, LONGEST_WAIT_S) if again else FIRST_WAIT_S
        self._silent[index] = _Silent(wait_s, now + wait_s)

    def _back_off(self, process: DriverProcess, now: float, *, least_s: float = RESTART_S) -> None:
        steady = now - process.started_s >= STEADY_S
        self._wait_s = least_s if steady else max(least_s, min(self._wait_s * 2, LONGEST_WAIT_S))
        self._due_s = now + self._wait_s

    def _probe(self, now: float) -> None:
        """Ask GPUs that were left alone, one at a time; one that answers comes back."""
        for index, silent in list(self._silent.items()):
            if silent.probe is None:
                continue
            code = silent.probe.poll()
            if code == 0:
                del self._silent[index]
                self._returned[index] = silent.wait_s, now
                self._crashes.pop(index, None)
                if self._process is not None:
                    self._process.order(f"admit {index}")
            elif code is not None or now > silent.probe_until_s:
                if code is None:
                    silent.probe.kill()
                    if now < silent.probe_until_s + PROBE_S:
                        return  # give the kill its time; until it is gone no other probe starts
                silent.probe = None if silent.probe.poll() is not None else silent.probe
                if silent.probe is None:
                    silent.wait_s = min(silent.wait_s * 2, LONGEST_WAIT_S)
                    silent.due_s = now + silent.wait_s
            return
        due = [index for index, silent in self._silent.items() if now >= silent.due_s]
        if due and self._process is not None and not self._dying:
            silent = self._silent[due[0]]
            silent.probe = probe(due[0])
            silent.probe_until_s = now + PROBE_S

    def _say(self, sentence: str) -> None:
        """One log line per change of state."""
        if sentence != self._said:
            self._said = sentence
            log.warning("driver not usable", extra={"why": sentence})

    def _module_version(self) -> str | None:
        """Version line of the loaded kernel module; None where there is none to read."""
        try:
            with self._version_file.open(encoding="ascii", errors="replace") as file:
                return file.readline()
        except OSError:
            return None
