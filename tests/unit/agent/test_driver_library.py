"""The driver as a whole: what is missing is said in a sentence, handles are compared by where they point."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_nvml import FakeGpu, FakeNvml

from agent.driver import library as module
from agent.driver.library import DriverError, GpuLost, Library, address

ROOT = Path(__file__).parents[3]


def opened(*gpus: FakeGpu | None, **more: Any) -> Library:
    library = Library(FakeNvml(*gpus, **more))
    library.open()
    return library


def test_versions_are_read_once_opened() -> None:
    library = opened(FakeGpu())
    assert (library.driver_version, library.nvml_version, library.cuda_driver_version) == (
        "590.48.01",
        "12.590.48.01",
        "13.1",
    )
    assert library.count() == 1
    library.close()
    assert library.nvml.opened == 0


@pytest.mark.parametrize(
    ("code", "part"),
    [
        (9, "installed but not loaded"),
        (12, "libnvidia-ml.so.1 was not found"),
        (4, "refuses this user"),
        (18, "was upgraded while it ran"),
        (999, "unknown error"),
        (30, "NVML error 30"),
    ],
)
def test_a_driver_that_cannot_be_used_is_a_sentence(code: int, part: str) -> None:
    with pytest.raises(DriverError, match=part) as raised:
        opened(init_code=code)
    assert raised.value.code == code
    assert not str(raised.value).endswith(".")


def test_a_count_that_fails_is_the_driver_failing(monkeypatch: pytest.MonkeyPatch) -> None:
    library = opened(FakeGpu())

    def fails() -> int:
        raise FakeNvml.NVMLError(999)

    monkeypatch.setattr(library.nvml, "nvmlDeviceGetCount", fails)
    with pytest.raises(DriverError, match="its device rules"):
        library.count()


def test_closing_what_was_never_opened_does_nothing() -> None:
    Library().close()


def test_another_package_of_the_same_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(nvmlInit=lambda: None))
    with pytest.raises(DriverError, match="another package named pynvml"):
        Library().open()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DriverError, match="pip install nvidia-ml-py"):
        Library().open()


def test_a_handle_that_cannot_be_had() -> None:
    library = opened(FakeGpu(), None, FakeGpu(fails={"handle": 4}))
    assert library.handle(0) is not None
    assert library.handle(1) is None
    with pytest.raises(GpuLost) as raised:
        library.handle(2)
    assert raised.value.code == 4


def test_the_same_pointer_is_the_same_handle() -> None:
    class Opaque(ctypes.Structure):
        pass

    pointer = ctypes.POINTER(Opaque)
    here, there = Opaque(), Opaque()
    library = Library(FakeNvml())
    first = library.kept(pointer(here))
    assert library.kept(pointer(here)) is first
    assert library.kept(pointer(there)) is not first
    assert library.kept(pointer()) is None
    assert address(first) == ctypes.addressof(here)
    assert address("no pointer at all" and object()) is None


def test_a_missing_function_is_none_and_an_unopened_library_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    library = opened(FakeGpu())
    assert library.function("nvmlDeviceGetFieldValues") is not None
    assert library.function("nvmlNotThere") is None

    def shut(_name: str) -> None:
        raise FakeNvml.NVMLError(1)

    monkeypatch.setattr(library.nvml, "_nvmlGetFunctionPointer", shut)
    with pytest.raises(GpuLost):
        library.function("nvmlAnother")


def test_codes_are_stable_or_a_state_or_pass() -> None:
    assert not module.STABLE & module.STATE
    assert not {0, 6, 7, 10, 14, 17, 20, 21} & (module.STABLE | module.STATE)


def test_the_driver_process_imports_nothing_heavy() -> None:
    names = ["readings", "gpm", "processes", "health", "events", "mig", "identity"]
    imports = ", ".join(f"agent.collectors.{name}" for name in names)
    heavy = ("typing", "dataclasses", "logging", "pathlib", "json", "core", "psutil", "asyncio", "subprocess")
    code = (
        f"import sys, agent.driver.suspended, {imports}\n"
        "from agent.driver.library import _pynvml\n"
        "assert _pynvml().find_library('c')[:3] == 'lib' if sys.argv[1:] else _pynvml()\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    paths = [str(ROOT), *(path for path in sys.path if path.endswith("-packages"))]
    env = {"PYTHONPATH": ":".join(paths), "PATH": os.environ["PATH"]}
    said = [
        subprocess.run(
            [sys.executable, "-S", "-c", code, *words], env=env, capture_output=True, text=True, check=True
        )
        for words in ((), ("search",))
    ]
    assert said[0].stdout.strip() == "[]"
    assert "subprocess" in said[1].stdout  # the search is the real one, loaded when it is needed
