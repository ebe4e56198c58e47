"""Where a server is reached whose PID is known: on this host's own network, or at the address of its container.

Everything here is world-readable below ``/proc/PID/net``, which shows the network of that process. Tables of connections
are long on a busy server, so they are read before the first try and after failures only.
"""

import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LOCAL: Final = re.compile(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised, not bound
_MAPPED: Final = "::ffff:"
_GLOBAL_SCOPE: Final = "00"


@dataclass(frozen=True, slots=True)
class Reach:
    """Where to connect; with ``host`` None ``why`` says what is in the way."""

    host: str | None
    why: str = ""


class Networks:
    """Network namespaces of processes, as seen from this one.

    Args:
        proc: a mounted procfs.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._root = proc

    def namespace(self, pid: int) -> str | None:
        """A text that is the same for processes that share a network; None for the network of this process.

        The link names it; where only root may follow that, the addresses do.
        """
        for name, read in (("ns/net", self._link), ("net/fib_trie", self._addresses_text)):
            theirs, ours = read(f"{pid}/{name}"), read(f"self/{name}")
            if theirs is not None and ours is not None:
                return None if theirs == ours else theirs
        return None

    def reach(self, pid: int, port: int, told: str | None = None) -> Reach:
        """Where the server of that process listens on that port.

        Args:
            told: address of its flags; None for every interface or its default.
        """
        listening = self.listening(pid, port)
        if listening is not None and not listening:
            return Reach(None, f"nothing listens on port {port} (yet)")
        if listening is None:  # no table to read: as the flags say
            listening = frozenset({told or "0.0.0.0"})  # noqa: S104 - compared, not bound
        if self.namespace(pid) is None:
            return Reach(_here(listening, told))
        specific = sorted(address for address in listening - _ANY if not _is_loopback(address))
        if told in specific:
            return Reach(told)
        if listening & _ANY:
            specific = self.addresses(pid)
        if specific:
            return Reach(specific[0])
        return Reach(
            None,
            f"port {port} is open only inside its container: let the server listen on 0.0.0.0, or name its address in the settings",
        )

    def listening(self, pid: int, port: int) -> frozenset[str] | None:
        """Addresses on which the network of a process listens on a port; None when that cannot be read."""
        tables = [self._read(f"{pid}/net/{name}") for name in ("tcp", "tcp6")]
        if tables == [None, None]:
            return None
        line = re.compile(rf": ([0-9A-F]{{8}}|[0-9A-F]{{32}}):{port:04X} [0-9A-F]+:0000 0A ")
        return frozenset(_address(found) for table in tables if table for found in line.findall(table))

    def addresses(self, pid: int) -> list[str]:
        """Addresses of the network of a process, other than loopback; IPv4 first."""
        found = list(local_addresses(self._read(f"{pid}/net/fib_trie") or ""))
        for line in (self._read(f"{pid}/net/if_inet6") or "").splitlines():
            words = line.split()
            if len(words) >= 4 and len(words[0]) == 32 and words[3] == _GLOBAL_SCOPE:
                found.append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0])))
        return found

    def _addresses_text(self, name: str) -> str | None:
        text = self._read(name)
        return None if text is None else " ".join(local_addresses(text))

    def _link(self, name: str) -> str | None:
        try:
            return str((self._root / name).readlink())
        except OSError:
            return None

    def _read(self, name: str) -> str | None:
        try:
            return (self._root / name).read_text(encoding="ascii", errors="replace")
        except OSError:
            return None


def local_addresses(fib_trie: str) -> tuple[str, ...]:
    """Own IPv4 addresses from the text of ``/proc/PID/net/fib_trie``, without loopback; each is there twice."""
    return tuple(dict.fromkeys(a for a in _LOCAL.findall(fib_trie) if not a.startswith("127.")))


def _here(listening: frozenset[str], told: str | None) -> str:
    """Which of the addresses of this network to take."""
    if told is not None and (told in listening or not told[0].isdigit()):
        return told
    if listening & (_ANY | {"127.0.0.1"}):
        return "127.0.0.1"
    return min(listening, key=lambda address: (not _is_loopback(address), address))


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _address(digits: str) -> str:
    """An address as the kernel prints it: 32-bit words in the order of the processor (little-endian everywhere we run)."""
    raw = b"".join(bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8))
    if len(raw) == 4:
        return socket.inet_ntop(socket.AF_INET, raw)
    return socket.inet_ntop(socket.AF_INET6, raw).removeprefix(_MAPPED)
