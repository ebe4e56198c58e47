"""The text part of a mail: plain lines of 78 columns from a template."""

import textwrap
from typing import Any, Final

from api import formats
from api.templating import environment

COLUMNS: Final = 78


def plain(template: str, **values: Any) -> str:
    """A template of ``templates/mail`` as text: no two empty lines in a row, none at its ends."""
    text = environment().get_template(template).render(**values, fill=fill)
    lines = [line.rstrip() for line in text.replace(formats.NBSP, " ").splitlines()]
    kept = [line for i, line in enumerate(lines) if line or (i > 0 and lines[i - 1])]
    return "\n".join(kept).strip() + "\n"


def fill(text: str, indent: int = 0, first: str = "") -> str:
    """Prose in lines of 78 columns; words longer than a line (addresses, names) are left whole."""
    return textwrap.fill(
        " ".join(text.replace(formats.NBSP, "\u2007").split(" ")),
        COLUMNS,
        initial_indent=" " * indent + first,
        subsequent_indent=" " * (indent + len(first)),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\u2007", " ")
