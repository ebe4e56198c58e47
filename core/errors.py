"""Errors that are sentences: what, where, what to do. The command line prints them and exits 1."""


class GpuwiseError(Exception):
    """Something a user can act on; ``str(error)`` is the whole sentence."""


class UsageError(GpuwiseError):
    """The call itself is off (flag, value, file that does not exist); exit code 2."""


class NotFoundError(UsageError):
    """The thing that was named does not exist; on the web a 404."""


class SettingsError(UsageError):
    """A setting has a bad value; names the key and where it came from."""


class CatalogueError(GpuwiseError):
    """A shipped or user-given fact file has a bad row; names file, line and column."""


class StoreError(GpuwiseError):
    """The database cannot do what was asked (not upgraded, not reachable, read-only)."""
