"""What an XID says, in a few words, and whether the application or the card is at fault.

Texts after NVIDIA's XID catalogue; the faults of applications are those that NVIDIA's device plugin does not count
against the card (NVIDIA/k8s-device-plugin issue 1340).
"""

from typing import Final

OF_APPLICATIONS: Final = frozenset({13, 31, 43, 45, 68, 109})
UNKNOWN: Final = 999
_TEXTS: Final = {
    8: "GPU stopped processing",
    13: "graphics engine exception",
    31: "GPU memory page fault",
    32: "corrupted push buffer",
    38: "driver firmware error",
    43: "GPU stopped processing a channel",
    44: "graphics engine fault during a context switch",
    45: "preemptive cleanup after an error",
    48: "double-bit ECC error",
    56: "display engine error",
    61: "internal microcontroller breakpoint",
    62: "internal microcontroller halt",
    63: "ECC page retirement or row remapping recorded",
    64: "ECC page retirement or row remapping failed",
    68: "video processor exception",
    69: "graphics engine class error",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "high rate of single-bit ECC errors",
    94: "contained ECC error",
    95: "uncontained ECC error",
    109: "context switch timeout",
    119: "GSP firmware does not answer",
    120: "GSP firmware error",
    121: "C2C link error",
    140: "unrecovered ECC error",
    143: "GPU could not be initialised",
    154: "GPU recovery action changed",
}


def message(code: int) -> str:
    """One sentence for people."""
    if code == UNKNOWN:
        return "The driver reported a critical error without a number."
    text = _TEXTS.get(code)
    fault = " (usually the application's fault)" if code in OF_APPLICATIONS else ""
    return f"XID {code}: {text}{fault}." if text else f"XID {code}."
