"""Entry point: ``gpuwise COMMAND``. The agent starts without loading the server's libraries."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from core.errors import GpuwiseError, UsageError

FAILED = 1
USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 failed, 2 usage. Errors are one sentence on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["agent"]:
            return _agent(words[1:])
        return _doctor(words[1:]) if words[:1] == ["doctor"] else _server(words)
    except UsageError as error:
        return _say(error, USAGE)
    except GpuwiseError as error:
        return _say(error, FAILED)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away: not an error, and nothing may be printed about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _agent(words: list[str]) -> int:
    from agent.cli import main as agent_main

    return agent_main(words, prepare=_prepare)


def _prepare(database_url: str) -> None:
    """Create and upgrade a SQLite database on first use, in a process of its own: the agent never loads SQLAlchemy."""
    if not database_url.startswith("sqlite") or find_spec("alembic") is None:
        return
    # Not multiprocessing: its resource tracker would stay, and cost ten megabytes beside an agent of forty.
    words = [sys.executable, "-m", "gpuwise", "db", "upgrade", "--database-url", database_url]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode:  # noqa: S603 - ourselves
        raise GpuwiseError(
            "the database could not be prepared: see the message above, then start the agent again"
        )


def _doctor(words: list[str]) -> int:
    """The agent's looks at this host, and the server's where that part is installed."""
    from agent.doctor.cli import main as doctor_main

    if find_spec("click") is None or find_spec("sqlalchemy") is None:
        return doctor_main(words)
    from gpuwise.commands.doctor import checks

    return doctor_main(words, more=checks)


def _server(words: list[str]) -> int:
    try:
        from gpuwise.commands.cli import run
    except ModuleNotFoundError as error:
        if error.name in {"gpuwise", "gpuwise.commands", "gpuwise.commands.cli"}:
            raise
        raise GpuwiseError(
            f"this command needs the server part ({error.name} is not installed): pip install 'gpuwise[server]'; "
            "'gpuwise agent' runs without it"
        ) from error
    return run(words)


def _say(error: GpuwiseError, code: int) -> int:
    print(f"gpuwise: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
