"""The driver as the kernel shows it: PCI devices, module, device files, parameters. NVML is not touched here."""

import os
import re
from pathlib import Path
from typing import Final

from agent.doctor.checks import BAD, NOTE, OK, Check, looks

PART: Final = "driver"
_VERSION: Final = re.compile(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b")
_NVIDIA: Final = "0x10de"
_DISPLAY: Final = ("0x0300", "0x0302")
_CAP_SYS_ADMIN: Final = 1 << 21


def checks(root: Path = Path("/")) -> list[Check]:
    """Looks that need no answer from the driver; ``root`` for tests."""
    return looks(
        PART,
        {
            "cards": lambda: cards(root),
            "module": lambda: module(root),
            "device files": lambda: device_files(root),
            "counters": lambda: counters(root),
        },
    )


def card_count(root: Path = Path("/")) -> int:
    """NVIDIA display and 3D controllers on the PCI buses."""
    return len(_cards(root))


def module_version(root: Path = Path("/")) -> str | None:
    """Version of the loaded kernel module; None when it is not loaded."""
    found = _VERSION.search(_text(root / "proc/driver/nvidia/version").partition("\n")[0])
    return found[1] if found else None


def cards(root: Path) -> tuple[str, str]:
    """How many cards the PCI buses show, and which of them sleep."""
    found = _cards(root)
    if not found:
        return NOTE, "no NVIDIA card on the PCI buses (some containers and virtual machines hide them)"
    asleep = [card.name for card in found if _text(card / "power/runtime_status").strip() == "suspended"]
    many = f"{len(found)} NVIDIA card{'s' if len(found) > 1 else ''}"
    if asleep:
        return OK, f"{many}; {', '.join(asleep)} is suspended to save power, and the agent lets it sleep"
    return OK, f"{many} on the PCI buses"


def module(root: Path) -> tuple[str, str]:
    """Whether the kernel module is loaded."""
    version = module_version(root)
    if version is not None:
        return OK, f"kernel module {version} is loaded"
    if card_count(root):
        return (
            BAD,
            "there are cards but the kernel module is not loaded: run nvidia-smi or modprobe nvidia, see dmesg",
        )
    return NOTE, "no kernel module is loaded: no live GPUs here, imports and the demo work"


def device_files(root: Path) -> tuple[str, str]:
    """Whether this user may open ``/dev/nvidia*``; only the control device is opened, which wakes no card."""
    control = root / "dev/nvidiactl"
    numbered = sorted(path for path in (root / "dev").glob("nvidia[0-9]*"))
    loaded = module_version(root) is not None
    if not control.exists() or not numbered:
        if not loaded:
            return NOTE, "none, as there is no driver"
        return BAD, (
            "the driver is loaded but /dev/nvidia* is missing: run nvidia-modprobe -c0 -u; in a container give it the GPUs "
            "(docker: --gpus all; Kubernetes: runtimeClassName nvidia and NVIDIA_VISIBLE_DEVICES=all)"
        )
    closed = [path.name for path in (control, *numbered) if not os.access(path, os.R_OK | os.W_OK)]
    if closed:
        return (
            BAD,
            f"user {os.geteuid()} may not open {', '.join(closed)}: add it to their group (video or render)",
        )
    try:
        os.close(os.open(control, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return BAD, (
            "/dev/nvidiactl has the right permissions but may not be opened: the container's or unit's device rules are lost "
            "(systemctl daemon-reload does that); create the container anew, or add DeviceAllow to the unit"
        )
    except OSError as error:
        return BAD, f"/dev/nvidiactl cannot be opened ({error.strerror}): see dmesg"
    return OK, f"{len(numbered)} GPU device files can be opened"


def counters(root: Path) -> tuple[str, str]:
    """Whether the driver keeps SM counters from ordinary users (``RmProfilingAdminOnly``)."""
    text = _text(root / "proc/driver/nvidia/params")
    if not text:
        return NOTE, "/proc/driver/nvidia/params is not readable: whether counters need root cannot be told"
    found = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", text, re.MULTILINE)
    if found is None or found[1] == "0":
        return OK, "SM counters are open to every user"
    if _is_admin(root):
        return OK, "SM counters are kept for administrators, and this user is one"
    return NOTE, (
        "SM counters are kept for administrators: if they are refused below, load the module with "
        "NVreg_RestrictProfilingToAdminUsers=0, or give the agent CAP_SYS_ADMIN"
    )


def _is_admin(root: Path) -> bool:
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", _text(root / "proc/self/status"), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & _CAP_SYS_ADMIN)


def _cards(root: Path) -> list[Path]:
    folder = root / "sys/bus/pci/devices"
    if not folder.is_dir():
        return []
    return [
        path
        for path in sorted(folder.iterdir())
        if _text(path / "vendor").strip() == _NVIDIA and _text(path / "class").startswith(_DISPLAY)
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
