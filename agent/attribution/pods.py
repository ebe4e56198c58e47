"""Names of pods from the kubelet's log folders ``<namespace>_<pod>_<uid>``: no API server, no socket, no token."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

RESCAN_S: Final = 30.0
"""How often an unknown pod may cause the folders to be listed again."""


class PodName(NamedTuple):
    """A pod's namespace and name."""

    namespace: str
    pod: str


class PodNames:
    """Pod UID → name.

    Args:
        root: the kubelet's log folder; where it is absent or unreadable no pod has a name.
        monotonic: seconds of a clock that never steps.
    """

    def __init__(
        self, root: Path = Path("/var/log/pods"), *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root
        self._monotonic = monotonic
        self._names: dict[str, PodName] = {}
        self._scanned_s: float | None = None

    def find(self, uid: str) -> PodName | None:
        """Name of the pod with that UID, dashes or not; None while it is unknown."""
        key = uid.replace("-", "")
        if key not in self._names and self._may_scan():
            self._scan()
        return self._names.get(key)

    def _may_scan(self) -> bool:
        return self._scanned_s is None or self._monotonic() - self._scanned_s >= RESCAN_S

    def _scan(self) -> None:
        self._scanned_s = self._monotonic()
        try:
            folders = [entry.name for entry in os.scandir(self._root)]
        except OSError:
            folders = []
        self._names = {}
        for folder in folders:
            namespace, _, rest = folder.partition("_")
            pod, _, uid = rest.rpartition("_")
            if namespace and pod and uid:
                self._names[uid.replace("-", "")] = PodName(namespace, pod)
