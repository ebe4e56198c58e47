"""Names of users, remembered: a directory service behind the user database may take long to answer."""

import pwd


class Users:
    """User ids as names."""

    def __init__(self) -> None:
        self._names: dict[int, str | None] = {}

    def known_name(self, uid: int) -> str | None:
        """Name of a user of this host; None when it has none here."""
        if uid not in self._names:
            try:
                self._names[uid] = pwd.getpwuid(uid).pw_name
            except (KeyError, OverflowError):
                self._names[uid] = None
        return self._names[uid]

    def name(self, uid: int) -> str:
        """Name of a user of this host, or the number as text."""
        return self.known_name(uid) or str(uid)
