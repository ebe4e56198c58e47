"""The checks as text: parts under headings, names in one column, sentences wrapped to the terminal. Pure."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from agent.doctor import gpus
from agent.doctor.checks import BAD, NOTE, Check

MOST_COLUMNS: Final = 100
_STATE_COLUMNS: Final = 6
_TITLES: Final = {
    "driver": "NVIDIA driver",
    "host": "This host",
    "delivery": "Where samples go",
    "installation": "This installation",
    "server": "Server",
}


def render(checks: Sequence[Check], columns: int) -> str:
    """The whole report; GPUs that tell the same share one table.

    Args:
        checks: in order of their parts.
        columns: of the terminal; more than ``MOST_COLUMNS`` are not used.
    """
    width = max(40, min(columns, MOST_COLUMNS))
    name_columns = 2 + max((len(check.name) for check in checks if len(check.name) <= 24), default=8)
    lines: list[str] = []
    for title, rows in _parts(checks):
        lines += ["", title]
        for check in rows:
            lines += _row(check, name_columns, width)
    return "\n".join([*lines[1:], "", _sum(checks, width)])


def _row(check: Check, name_columns: int, width: int) -> list[str]:
    head = f"{check.state:<{_STATE_COLUMNS}}{check.name:<{name_columns}}"
    indent = " " * (_STATE_COLUMNS + name_columns)
    if len(check.name) > name_columns - 2:  # an address as a name gets a line of its own
        return [head.rstrip(), *_wrapped(check.finding, width, indent, indent)]
    return _wrapped(check.finding, width, head, indent)


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _parts(checks: Sequence[Check]) -> Iterator[tuple[str, list[Check]]]:
    by_part: dict[str, list[Check]] = {}
    for check in checks:
        by_part.setdefault(check.part, []).append(check)
    alike: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for part, rows in by_part.items():
        if part.startswith(f"{gpus.PART} "):
            alike.setdefault(tuple((row.name, row.state, row.finding) for row in rows), []).append(part)
    shown = {parts[0]: parts for parts in alike.values()}
    for part, rows in by_part.items():
        if part in shown:
            yield f"GPU {gpus.numbers(int(one.rpartition(' ')[2]) for one in shown[part])}", rows
        elif not part.startswith(f"{gpus.PART} "):
            yield _TITLES.get(part, part), rows


def _sum(checks: Sequence[Check], width: int) -> str:
    bad = sum(check.state == BAD for check in checks)
    notes = sum(check.state == NOTE for check in checks)
    if not bad and not notes:
        return "All is well."
    words = [f"{bad} {'thing does' if bad == 1 else 'things do'} not work"] if bad else []
    words += [f"{notes} {'thing works' if notes == 1 else 'things work'} with a limit"] if notes else []
    return "\n".join(textwrap.wrap(", ".join(words) + ".", width))
