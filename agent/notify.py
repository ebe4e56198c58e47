"""What systemd is told of the agent's state, over the datagram socket that ``NOTIFY_SOCKET`` names (sd_notify(3)).

Without that variable nothing is sent, so the same agent runs in a shell, in a container and as a service.
"""

import os
import socket
from typing import Final

MICROSECONDS_PER_S: Final = 1_000_000


def ready() -> None:
    """The agent samples: a unit of ``Type=notify`` counts as started."""
    _send("READY=1")


def watchdog() -> None:
    """Still alive; owed at least once each ``WatchdogSec``, best at half of it."""
    _send("WATCHDOG=1")


def status(text: str) -> None:
    """One line for ``systemctl status``."""
    _send("STATUS=" + text.replace("\n", " "))


def stopping() -> None:
    """The agent is on its way out: hand over what is there, then end."""
    _send("STOPPING=1")


def watchdog_interval_s() -> float | None:
    """Seconds between two signs of life: half of ``WatchdogSec``. None: nobody waits for one from this process."""
    limit, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not limit.isdecimal() or int(limit) == 0:
        return None
    if pid.isdecimal() and int(pid) != os.getpid():
        return None
    return int(limit) / MICROSECONDS_PER_S / 2


def _send(message: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return  # unset, or vsock: a virtual machine's init, not a service manager
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            # A manager that does not read must not hold up sampling: a lost message is repeated by the next one.
            channel.setblocking(False)
            channel.sendto(message.encode(), address)
    except OSError:
        return
