"""What became of a file: counts, the first problems with their lines, and what was assumed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.errors import GpuwiseError

SHOWN: Final = 20
"""Problems kept as sentences; all are counted."""


class FormatError(GpuwiseError):
    """The file is not what the importer reads; ``str(error)`` names file and line."""


@dataclass(slots=True)
class FileReport:
    """One imported file.

    Attributes:
        path: the file as it was given.
        read: rows (of CSV) or samples (of exposition text) seen.
        kept: those whose values went into readings; unknown cells among them stay unknown.
        refused: those that were wrong (see ``problems``).
        refused_values: single values of kept rows that were wrong; they are unknown, the others of the row count.
        ignored: those of metrics and sections that gpuwise has no use for.
        problems: first ``SHOWN`` sentences, each ``path:line: what is wrong``.
        notes: what was assumed or joined, and where values are unknown.
        unsaid: refused rows that have no sentence of their own.
        assumed: what other files of the import may share word for word; ``say_once`` or ``finish`` makes notes of it.
    """

    path: Path
    read: int = 0
    kept: int = 0
    refused: int = 0
    refused_values: int = 0
    ignored: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unsaid: int = 0
    assumed: list[str] = field(default_factory=list)
    _unknown: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    _refused: dict[str, int] = field(default_factory=dict)

    def refuse(self, line: int, sentence: str) -> None:
        """Count one refused row."""
        self.refused += 1
        if not self.problem(line, sentence):
            self.unsaid += 1

    def refuse_value(self, line: int, column: str, sentence: str) -> None:
        """Count one refused value of a row that is kept; the first of a column has its sentence."""
        self.refused_values += 1
        if column not in self._refused:
            self.problem(line, f"{column}: {sentence}; the value is unknown")
        self._refused[column] = self._refused.get(column, 0) + 1

    def problem(self, line: int | None, sentence: str) -> bool:
        """Keep a sentence, while there are few; whether it was kept."""
        place = f"{self.path}:{line}" if line is not None else f"{self.path}"
        fits = len(self.problems) < SHOWN
        if fits:
            self.problems.append(f"{place}: {sentence}")
        return fits

    def fail(self, sentence: str) -> None:
        """Keep the sentence that ended the reading of the file; it names the file itself."""
        self.problems.append(sentence)

    def note(self, sentence: str, line: int | None = None) -> None:
        """Keep an assumption or a finding that refuses nothing, once."""
        text = f"{self.path}: {sentence}" if line is None else f"{self.path}:{line}: {sentence}"
        if text not in self.notes and len(self.notes) < SHOWN:
            self.notes.append(text)

    def unknown(self, line: int, column: str, cell: str) -> None:
        """Count a cell that says that the value is unknown."""
        first, text, count = self._unknown.get(column, (line, cell, 0))
        self._unknown[column] = (first, text, count + 1)

    def finish(self) -> None:
        """Turn the counts of unknown cells into one sentence, and those of refused values into one per column."""
        for column, count in self._refused.items():
            if count > 1:
                self.problems.append(f"{self.path}: {column}: … and {count - 1:,} more like it")
        self._refused.clear()
        for sentence in self.assumed:
            self.note(sentence)
        self.assumed.clear()
        if self._unknown:
            line = min(first for first, _text, _count in self._unknown.values())
            columns = ", ".join(
                f"{column} {text or 'empty'} ({count}×)"
                for column, (_first, text, count) in self._unknown.items()
            )
            self.notes.append(
                f"{self.path}:{line}: unknown cells are stored as unknown, from this line on: {columns}"
            )
            self._unknown.clear()


def say_once(files: Sequence[FileReport]) -> None:
    """Make one note, in the first file's report, of what several files assume."""
    for first in files:
        for sentence in list(first.assumed):
            sharing = [file for file in files if sentence in file.assumed]
            if len(sharing) > 1:
                for file in sharing:
                    file.assumed.remove(sentence)
                first.notes.append(f"{first.path} and {len(sharing) - 1:,} more: {sentence}")
