"""A load as a running process, and what it says of itself."""

import json
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Final

from bench.workloads.agent import ROOT, with_root
from bench.workloads.loads import Load

READY_S: Final = 240.0
"""Weights of 16 GB are made on the card, kernels are loaded, a graph is captured."""
END_S: Final = 60.0


class LoadError(Exception):
    """The load did not run as it should; its text says why."""


class Running:
    """One process of a load.

    Attributes:
        ticks: (epoch ms, units so far), about once a second.
        ready_ms, done: when its warm-up was over; its last line, None while it runs.
    """

    def __init__(
        self,
        load: Load,
        *,
        seconds: float,
        device: str,
        tiny: bool = False,
        environ: dict[str, str] | None = None,
    ) -> None:
        assert load.module is not None
        words = [
            sys.executable,
            "-m",
            f"bench.workloads.{load.module}",
            "--seconds",
            str(seconds),
            "--device",
            device,
        ]
        for name, value in load.options.items():
            words += [f"--{name}", value]
        if tiny:
            words.append("--tiny")
        self.ticks: list[tuple[int, float]] = []
        self.ready_ms: int | None = None
        self.done: dict[str, Any] | None = None
        self._name = load.name
        self._seconds = seconds
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - lives as long as the process
        self._child = subprocess.Popen(
            words,
            cwd=ROOT,
            env=with_root(environ or {}),
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self) -> int:
        """When its warm-up was over, epoch ms. Raises ``LoadError``."""
        deadline = time.monotonic() + READY_S
        while not self._ready.wait(0.2):
            if self._child.poll() is not None or time.monotonic() > deadline:
                self._reader.join(2.0)
                if self._ready.is_set():
                    break
                self.kill()
                raise LoadError(f"{self._name} did not start: {self._said()}")
        assert self.ready_ms is not None
        return self.ready_ms

    def wait_done(self) -> dict[str, Any]:
        """Its last line. Raises ``LoadError``."""
        try:
            code = self._child.wait(self._seconds + END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise LoadError(f"{self._name} did not end in time") from None
        self._reader.join(5.0)
        if code != 0 or self.done is None:
            raise LoadError(f"{self._name} ended with code {code}: {self._said()}")
        return self.done

    def kill(self) -> None:
        """End it now."""
        self._child.kill()
        self._child.wait(10)

    def _read(self) -> None:
        assert self._child.stdout is not None
        for text in self._child.stdout:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # a library's own word
            if "ready" in line:
                self.ready_ms = line["ready"]
                self._ready.set()
            elif "at" in line:
                self.ticks.append((line["at"], line["units"]))
            elif "done" in line:
                self.done = line

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read().strip()[-600:] or "it said nothing"
