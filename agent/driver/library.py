"""The driver's library as a whole: opened once and held, because every opening of an idle driver re-initialises cards.

The only module that imports pynvml. Kept free of heavy imports: it runs in a process whose memory is a promise.
"""

from __future__ import annotations

import sys
from ctypes import ArgumentError, c_void_p, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = 1, 2, 3, 4
NOT_FOUND, INSUFFICIENT_SIZE, NOT_LOADED, TIMEOUT = 6, 7, 9, 10
NO_LIBRARY, NO_FUNCTION, GPU_IS_LOST, RESET_REQUIRED, VERSIONS_DIFFER = 12, 13, 15, 16, 18
ARGUMENT_VERSION, DEPRECATED, GPU_NOT_FOUND, UNKNOWN = 25, 26, 28, 999

STABLE = frozenset(
    (INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NO_FUNCTION, ARGUMENT_VERSION, DEPRECATED)
)
"""Codes that stay for this card and driver: asking again is in vain."""
STATE = frozenset(
    (UNINITIALIZED, NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, VERSIONS_DIFFER, GPU_NOT_FOUND, UNKNOWN)
)
"""Codes that say that the card or the driver is gone for now. Any other code is a value unknown this time."""

SEARCH = "ctypes.util"
SENTENCES = {
    NOT_LOADED: "the NVIDIA driver is installed but not loaded (run: nvidia-smi, or modprobe nvidia)",
    NO_LIBRARY: "no NVIDIA driver on this machine (libnvidia-ml.so.1 was not found)",
    NO_PERMISSION: "the NVIDIA driver refuses this user (check the permissions of /dev/nvidia*)",
    VERSIONS_DIFFER: "the NVIDIA driver was upgraded while it ran: reload its module or reboot",
    UNKNOWN: "the NVIDIA driver does not work here (unknown error; in a container its device rules may be lost:"
    " create it anew)",
}


class GpuLost(Exception):  # noqa: N818 - a state of the card, not a mistake
    """One GPU stopped answering, or cannot be opened; ``code`` is NVML's. The others are not concerned."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class DriverError(Exception):
    """The driver cannot be used at all; the text is a sentence for people, ``code`` NVML's (0: not one of its own)."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class _Never(Exception):  # noqa: N818 - stands for an exception that a binding does not have
    """Raised by nobody."""


def sentence(code: int) -> str:
    """Why the driver cannot be used, in one clause without a full stop."""
    return SENTENCES.get(code, f"the NVIDIA driver cannot be used (NVML error {code})")


class Library:
    """The binding and the open driver behind it.

    A process can never pick up a new libnvidia-ml: after a driver upgrade it has to be replaced.

    Args:
        module: has pynvml's names; default pynvml itself, imported when opened.

    Attributes:
        nvml: the module, once open.
        error: what its calls raise; ``mismatch`` what they raise besides (no ``NVMLError``) when a symbol is missing.
        driver_version, nvml_version, cuda_driver_version: None when unknown.
    """

    __slots__ = (
        "_functions",
        "_handles",
        "cuda_driver_version",
        "driver_version",
        "error",
        "mismatch",
        "nvml",
        "nvml_version",
        "shared",
    )

    def __init__(self, module: Any = None) -> None:
        self.nvml: Any = module
        self.error: Any = _Never
        self.mismatch: Any = _Never
        self.driver_version: str | None = None
        self.nvml_version: str | None = None
        self.cuda_driver_version: str | None = None
        self.shared: dict[str, Any] = {}
        """Buffers that collectors of one thread share: one GPM query is 19 KB, and there may be 56 instances."""
        self._functions: dict[str, Any] = {}
        self._handles: dict[int, Any] = {}

    def open(self) -> None:
        """Initialise the driver. May hang for ever: the caller is watched from outside.

        Raises:
            DriverError: no driver, or none that works; says which.
        """
        if self.nvml is None:
            self.nvml = _pynvml()
        nvml = self.nvml
        self.error = nvml.NVMLError
        self.mismatch = getattr(nvml, "NVMLLibraryMismatchError", _Never)
        try:
            nvml.nvmlInit()
        except self.error as error:
            raise DriverError(error.value, sentence(error.value)) from None
        except self.mismatch as error:
            raise DriverError(NO_FUNCTION, f"the NVIDIA driver cannot be used ({error})") from None
        self.driver_version = self._text("nvmlSystemGetDriverVersion")
        self.nvml_version = self._text("nvmlSystemGetNVMLVersion")
        cuda = self._ask("nvmlSystemGetCudaDriverVersion")
        self.cuda_driver_version = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None

    def close(self) -> None:
        """Let go of the driver: handles, event sets and samples are void afterwards. May hang like any call."""
        self._handles.clear()
        self.shared.clear()
        if self.error is not _Never:
            self._ask("nvmlShutdown")

    def count(self) -> int:
        """GPUs of this machine, those that may not be opened included. Raises ``DriverError``."""
        try:
            return int(self.nvml.nvmlDeviceGetCount())
        except self.error as error:
            raise DriverError(error.value, sentence(error.value)) from None

    def handle(self, index: int) -> Any:
        """The handle of a GPU by NVML index; None when the driver hands out NULL, which no call may be given.

        Raises:
            GpuLost: not there, lost, or not to be opened by this user (``code`` 4).
        """
        try:
            return self.kept(self.nvml.nvmlDeviceGetHandleByIndex(index))
        except self.error as error:
            raise GpuLost(error.value) from None

    def kept(self, handle: Any) -> Any:
        """The same object for the same handle, so that two looks can be compared; None for NULL.

        The binding makes a new pointer object for every look-up, and pointer objects compare by identity.
        """
        if not handle:
            return None
        where = address(handle)
        return handle if where is None else self._handles.setdefault(where, handle)

    def function(self, name: str) -> Callable[..., int] | None:
        """The library's own function, which returns an NVML code; None where this driver lacks the symbol.

        For calls whose wrapper asks the driver twice. Raises ``GpuLost`` when the library is not open.
        """
        try:
            return self._functions[name]  # type: ignore[no-any-return]
        except KeyError:
            pass
        try:
            found = self.nvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - the binding's only door to its symbols
        except self.error as error:
            if error.value != NO_FUNCTION:
                raise GpuLost(error.value) from None
            found = None
        self._functions[name] = found
        return found  # type: ignore[no-any-return]

    def _ask(self, name: str) -> Any:
        try:
            return getattr(self.nvml, name)()
        except (self.error, self.mismatch, AttributeError, UnicodeDecodeError):
            return None

    def _text(self, name: str) -> str | None:
        value = self._ask(name)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def address(handle: Any) -> int | None:
    """Where a handle points to; None when it is no pointer."""
    try:
        return cast(handle, c_void_p).value
    except (ArgumentError, TypeError):
        return None


def _pynvml() -> Any:
    try:
        pynvml = _imported()
    except ImportError as error:
        raise DriverError(0, "the NVIDIA binding is not installed (pip install nvidia-ml-py)") from error
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):
        # Another distribution called pynvml can lie over the real one.
        raise DriverError(
            0,
            "another package named pynvml hides nvidia-ml-py: pip uninstall pynvml, then reinstall nvidia-ml-py",
        )
    return pynvml


def _imported() -> Any:
    """pynvml, without the 2 MB that ctypes.util loads (subprocess, shutil, compression) for its search of a library.

    The binding imports that search and does not use it on Linux; a call would still find the real one.
    """
    if "pynvml" in sys.modules or SEARCH in sys.modules:
        import pynvml

        return pynvml
    light: Any = type(sys)(SEARCH)
    light.find_library = _find_library
    sys.modules[SEARCH] = light
    try:
        import pynvml
    finally:
        sys.modules.pop(SEARCH, None)
    return pynvml


def _find_library(name: str) -> str | None:
    from ctypes.util import find_library

    return find_library(name)
