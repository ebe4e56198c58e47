"""Which GPUs sleep, told by the kernel without touching the driver: asking a sleeping card wakes it.

NVML numbers the cards that the nvidia driver holds in PCI order, so sysfs alone tells which index is meant.
"""

from __future__ import annotations

import os

PCI_DEVICES = "/sys/bus/pci/devices"
VENDOR = b"0x10de"
DISPLAY_CLASS = b"0x03"
DRIVER = "nvidia"
ASLEEP = (b"suspended", b"suspending", b"resuming")
"""One that resumes is left alone until it is awake. ``unsupported`` and ``error`` mean that it never sleeps."""


class Suspended:
    """Looks at the cards whose runtime power management is on; on servers that is none.

    Args:
        root: folder of the PCI devices.
    """

    __slots__ = ("_root", "_watched")

    def __init__(self, root: str = PCI_DEVICES) -> None:
        self._root = root
        self._watched: list[tuple[int, str]] = []
        self.rescan()

    def rescan(self) -> None:
        """List the cards anew: cards and power settings may have changed."""
        try:
            names = sorted(os.listdir(self._root), key=_pci_order)  # noqa: PTH208 - pathlib is not loaded here
        except OSError:
            names = []
        cards = [folder for folder in (f"{self._root}/{name}" for name in names) if _is_held(folder)]
        self._watched = [
            (index, f"{folder}/power/runtime_status")
            for index, folder in enumerate(cards)
            if _read(f"{folder}/power/control") == b"auto"
        ]

    def indices(self) -> frozenset[int]:
        """NVML indices that sleep now."""
        if not self._watched:
            return NONE
        return frozenset(index for index, path in self._watched if _read(path) in ASLEEP)


NONE: frozenset[int] = frozenset()


def _is_held(folder: str) -> bool:
    """An NVIDIA display or 3D device that the nvidia driver holds; NVML does not count those given to virtual machines."""
    if _read(f"{folder}/vendor") != VENDOR or not (_read(f"{folder}/class") or b"").startswith(DISPLAY_CLASS):
        return False
    try:
        return os.path.basename(os.readlink(f"{folder}/driver")) == DRIVER  # noqa: PTH115, PTH119 - pathlib is not loaded here
    except OSError:
        return False


def _pci_order(name: str) -> tuple[int, ...]:
    """``0000:0c:00.0`` as numbers: domains may have more than four digits, so text does not sort."""
    try:
        return tuple(int(part, 16) for part in name.replace(".", ":").split(":"))
    except ValueError:
        return (1 << 62,)


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(fd, 64).strip()
    except OSError:
        return None
    finally:
        os.close(fd)
