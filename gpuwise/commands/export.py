"""``gpuwise export focus|csv``: files of the ledger for other systems, and a check of a FOCUS file."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import click

from api.resources.by import DESCRIPTION, Keys, keys_of
from core.clock import now_ms
from core.errors import GpuwiseError, UsageError
from gpuwise.commands.display import bar, print_json
from gpuwise.commands.options import Source, database_options, open_session

if TYPE_CHECKING:
    from api.resources.exports import Export

SHOWN: Final = 50
"""Problems of a checked file that are printed one by one."""


@click.group()
def export() -> None:
    """Files of the ledger for other systems: FOCUS 1.2, or CSV."""


def _days(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--from``, ``--to`` and ``--out``."""
    for option in (
        click.option(
            "--out",
            type=click.Path(path_type=Path, dir_okay=False),
            help="File to write; it appears when it is whole. Default: standard output.",
        ),
        click.option("--to", metavar="D", help="First day (or month) that is left out."),
        click.option("--from", "from_", metavar="D", help="First day, or month such as 2026-10."),
    ):
        command = option(command)
    return command


@export.command()
@_days
@click.option(
    "--account", metavar="NAME", help="BillingAccountId and BillingAccountName.  [default: gpuwise]"
)
@click.option(
    "--provider",
    metavar="NAME",
    help="ProviderName of hosts without a label provider.  [default: Self-managed]",
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Check a FOCUS file instead of writing one.",
)
@database_options
def focus(
    source: Source,
    *,
    from_: str | None,
    to: str | None,
    out: Path | None,
    account: str | None,
    provider: str | None,
    checked: Path | None,
) -> int:
    """Charges of whole days in FOCUS 1.2, the FinOps Open Cost and Usage Specification.

    Days are those of the accounting time zone. GPU-hours without a price have no row; how many is said on stderr.
    """
    if checked is not None:
        return _check(checked)
    start, end = _given(from_, to)
    if source.as_json and out is None:
        raise UsageError("--json is for what there is to know of the file: give --out FILE as well")
    if source.server is not None:
        query = {"from": start, "to": end, "account": account, "provider": provider}
        _write(_from_server(source.server, "exports/focus", query), out)
        from gpuwise.commands.remote import ask

        _say(ask(source.server, f"exports/focus/summary?{_query(query)}"), out, as_json=source.as_json)
        return 0
    from api.resources.as_json import to_json
    from api.resources.export_files import focus_file
    from ledger.focus import DEFAULT_ACCOUNT, DEFAULT_PROVIDER, Issuer

    issuer = Issuer(account or DEFAULT_ACCOUNT, provider or DEFAULT_PROVIDER)
    with _made(source, start, end, issuer) as made:
        with bar("Writing", "days") as progress:
            _write(focus_file(made, progress), out)
        _say(to_json(made.summary), out, as_json=source.as_json)
    return 0


@export.command("csv")
@_days
@click.option(
    "--by",
    metavar="KEY[,KEY]",
    multiple=True,
    help=f"Costs by these keys. {DESCRIPTION} Default: every line of the ledger.",
)
@database_options
def csv_(source: Source, *, from_: str | None, to: str | None, out: Path | None, by: tuple[str, ...]) -> int:
    """Lines of the ledger of whole days as CSV, those without a price among them; or costs by one or two keys."""
    if source.as_json:
        raise UsageError("--json and a CSV file are two forms: use gpuwise costs --json")
    start, end = _given(from_, to)
    if by:
        _write([_costs(source, start, end, keys_of(by))], out)
    elif source.server is not None:
        _write(_from_server(source.server, "exports/lines", {"from": start, "to": end}), out)
    else:
        from api.resources.export_files import line_file

        with _made(source, start, end) as made:
            _write(line_file(made), out)
    if out is not None:
        click.echo(f"ledger in {out}", err=True)
    return 0


def _given(from_: str | None, to: str | None) -> tuple[str, str]:
    if from_ is None or to is None:
        raise UsageError(
            f"--{'from' if from_ is None else 'to'} is not given: name the days, such as --from 2026-10 --to 2026-11"
        )
    return from_, to


@contextmanager
def _made(source: Source, from_: str, to: str, issuer: Any = None) -> Iterator["Export"]:
    from api.resources.exports import export as export_of

    with open_session(source.settings) as session:
        yield export_of(session, source.settings, now_ms(), from_, to, issuer=issuer)


def _costs(source: Source, from_: str, to: str, by: Keys) -> str:
    """Costs by one or two keys, as the table command and REST give them."""
    from api.paging import to_csv
    from api.resources import costs
    from api.resources.exports import window_of
    from api.resources.scope import scope_of
    from core.clock import iso

    window = window_of(source.settings, from_, to)
    since, until = iso(window.from_ms), iso(window.to_ms)
    if source.server is not None:
        from gpuwise.commands.remote import ask_text

        query = {"by": ",".join(by), "since": since, "until": until, "format": "csv"}
        return ask_text(source.server, f"costs?{_query(query)}")
    with open_session(source.settings) as session:
        scope = scope_of(session, source.settings, now_ms(), since, until)
        return to_csv(costs.rows(scope, by), costs.CostRow)


def _from_server(server: str, path: str, query: dict[str, str | None]) -> Iterator[str]:
    from gpuwise.commands.remote import ask_text

    yield ask_text(server, f"{path}?{_query(query)}")


def _query(values: dict[str, str | None]) -> str:
    return urlencode({name: value for name, value in values.items() if value is not None})


def _write(pieces: Iterable[str], out: Path | None) -> None:
    """Pieces to standard output, or to a file that is there when it is whole and not before."""
    if out is None:
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: the folder {out.parent} does not exist")
    try:
        _write_whole(pieces, out)
    except OSError as error:
        raise GpuwiseError(
            f"--out {out} cannot be written ({error.strerror}): nothing was changed; name another place"
        ) from error


def _write_whole(pieces: Iterable[str], out: Path) -> None:
    """Under another name beside it first, which is taken away again when something fails."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="", dir=out.parent, prefix=f".{out.name}.", delete=False
    ) as file:
        whole = Path(file.name)
        try:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            whole.chmod(0o666 & ~_umask())
            whole.replace(out)
        except BaseException:
            whole.unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _say(summary: dict[str, Any], out: Path | None, *, as_json: bool) -> None:
    """What to know of the file, on stderr: standard output may be the file."""
    if as_json:
        print_json(summary)
        return
    where = "" if out is None else f" in {out}"
    click.echo(
        f"{summary['rows']:,} rows{where}: {summary['billed_usd']} USD billed, {summary['effective_usd']} USD effective "
        f"(GPUs {summary['ledger_usd']}, energy billed apart {summary['energy_usd']}, unused commitments {summary['unused_usd']})",
        err=True,
    )
    for note in summary["notes"]:
        click.echo(f"Note: {note}", err=True)


def _check(file: Path) -> int:
    from ledger.focus_check import check

    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            problems = check(text)
            found = list(islice(problems, SHOWN))
            more = sum(1 for _ in problems)
    except UnicodeDecodeError as error:
        raise UsageError(f"--check {file} is not UTF-8: save it as UTF-8") from error
    for problem in found:
        click.echo(str(problem))
    if found:
        raise GpuwiseError(f"{file} departs from FOCUS 1.2 in {len(found) + more} places")
    click.echo(f"{file} keeps to FOCUS 1.2", err=True)
    return 0
