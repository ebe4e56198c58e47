"""What ``gpuwise owners`` asks: of the database, or of a server's REST API; rows as JSON either way."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlencode

from gpuwise.commands.options import Source, open_session
from gpuwise.commands.remote import ask, fetch, send

Row: TypeAlias = dict[str, Any]
Given: TypeAlias = Mapping[str, Any]
"""Options of a rule by field of ``api.resources.owner_specs.RuleSpec``."""
Window: TypeAlias = Mapping[str, str | None]


class Calls(Protocol):
    """What can be asked and done."""

    def rules(self) -> list[Row]:
        """Every rule in its order."""

    def add(self, given: Given, position: int | None) -> Row:
        """Keep a rule."""

    def change(self, rule_id: int, changes: Given, position: int | None) -> Row:
        """Correct or move a rule."""

    def hand_over(self, rule_id: int, owner: Mapping[str, str], on: str) -> Row:
        """Another owner from a day on."""

    def rename(self, team: str, to_team: str | None, to_cost_centre: str | None, on: str) -> list[Row]:
        """Another name or cost centre of a team from a day on."""

    def remove(self, rule_id: int) -> None:
        """Remove a rule."""

    def dry_run(self, given: Given, position: int | None, window: Window) -> Row:
        """What a rule would claim."""

    def dry_run_of(self, rule_id: int, window: Window) -> Row:
        """What a stored rule claims."""

    def import_rules(self, lines: Sequence[tuple[int, Mapping[str, str]]], *, replace: bool) -> list[Row]:
        """Keep many rules: all or none."""


def calls(source: Source) -> Calls:
    """Where the command was pointed at."""
    return OfDatabase(source) if source.server is None else OfServer(source.server)


@dataclass(frozen=True, slots=True)
class OfDatabase:
    """Straight from the database."""

    source: Source

    def _open(self) -> AbstractContextManager[Any]:
        return open_session(self.source.settings)

    def rules(self) -> list[Row]:
        """Every rule in its order."""
        from api.resources import owners

        with self._open() as session:
            return _rows(owners.rows(session, _now()))

    def add(self, given: Given, position: int | None) -> Row:
        """Keep a rule."""
        from api.resources import owners

        with self._open() as session:
            return _row(owners.add(session, self.source.settings, _now(), _spec(given), position))

    def change(self, rule_id: int, changes: Given, position: int | None) -> Row:
        """Correct or move a rule."""
        from api.resources import owners

        with self._open() as session:
            return _row(
                owners.change(session, self.source.settings, _now(), rule_id, changes, position=position)
            )

    def hand_over(self, rule_id: int, owner: Mapping[str, str], on: str) -> Row:
        """Another owner from a day on."""
        from api.resources import owners

        with self._open() as session:
            return _row(
                owners.hand_over(session, self.source.settings, _now(), rule_id, to=_spec(owner), on=on)
            )

    def rename(self, team: str, to_team: str | None, to_cost_centre: str | None, on: str) -> list[Row]:
        """Another name or cost centre of a team from a day on."""
        from api.resources import owners

        with self._open() as session:
            return _rows(
                owners.rename(
                    session,
                    self.source.settings,
                    _now(),
                    team,
                    on,
                    to_team=to_team,
                    to_cost_centre=to_cost_centre,
                )
            )

    def remove(self, rule_id: int) -> None:
        """Remove a rule."""
        from api.resources import owners

        with self._open() as session:
            owners.remove(session, rule_id)

    def dry_run(self, given: Given, position: int | None, window: Window) -> Row:
        """What a rule would claim."""
        from api.resources.owner_claims import dry_run
        from api.resources.owner_specs import rule_of
        from api.resources.scope import scope_of

        with self._open() as session:
            scope = scope_of(session, self.source.settings, _now(), window["since"], window["until"])
            return _row(dry_run(scope, rule_of(_spec(given), scope.settings, scope.now_ms), position))

    def dry_run_of(self, rule_id: int, window: Window) -> Row:
        """What a stored rule claims."""
        from api.resources.owner_claims import dry_run_of_stored
        from api.resources.scope import scope_of

        with self._open() as session:
            scope = scope_of(session, self.source.settings, _now(), window["since"], window["until"])
            return _row(dry_run_of_stored(scope, rule_id))

    def import_rules(self, lines: Sequence[tuple[int, Mapping[str, str]]], *, replace: bool) -> list[Row]:
        """Keep many rules: all or none."""
        from api.resources import owners

        specs = [owners.spec_from(cells, line) for line, cells in lines]
        with self._open() as session:
            return _rows(
                owners.import_rules(session, self.source.settings, _now(), specs, replace_all=replace)
            )


@dataclass(frozen=True, slots=True)
class OfServer:
    """From another gpuwise."""

    server: str

    def rules(self) -> list[Row]:
        """Every rule in its order."""
        rows: list[Row] = fetch(self.server, "owners/rules", {})["items"]
        return rows

    def add(self, given: Given, position: int | None) -> Row:
        """Keep a rule."""
        return self._send("owners/rules", {**given, "position": position})

    def change(self, rule_id: int, changes: Given, position: int | None) -> Row:
        """Correct or move a rule."""
        return self._send(f"owners/rules/{rule_id}", {**changes, "position": position}, "PATCH")

    def hand_over(self, rule_id: int, owner: Mapping[str, str], on: str) -> Row:
        """Another owner from a day on."""
        return self._send(f"owners/rules/{rule_id}/hand-over", {**owner, "on": on})

    def rename(self, team: str, to_team: str | None, to_cost_centre: str | None, on: str) -> list[Row]:
        """Another name or cost centre of a team from a day on."""
        body = {"team": team, "to_team": to_team, "to_cost_centre": to_cost_centre, "on": on}
        rows: list[Row] = send(self.server, "owners/rename", body)
        return rows

    def remove(self, rule_id: int) -> None:
        """Remove a rule."""
        send(self.server, f"owners/rules/{rule_id}", {}, "DELETE")

    def dry_run(self, given: Given, position: int | None, window: Window) -> Row:
        """What a rule would claim."""
        return self._send(f"owners/dry-run?{_query(window)}", {**given, "position": position})

    def dry_run_of(self, rule_id: int, window: Window) -> Row:
        """What a stored rule claims."""
        row: Row = ask(self.server, f"owners/rules/{rule_id}/dry-run?{_query(window)}")
        return row

    def import_rules(self, lines: Sequence[tuple[int, Mapping[str, str]]], *, replace: bool) -> list[Row]:
        """Keep many rules: all or none."""
        from dataclasses import asdict

        from api.resources.owners import spec_from

        rules = [
            {name: value for name, value in asdict(spec_from(cells, line)).items() if value is not None}
            for line, cells in lines
        ]
        rows: list[Row] = send(self.server, "owners/import", {"rules": rules, "replace": replace})
        return rows

    def _send(self, path: str, body: Given, method: str = "POST") -> Row:
        row: Row = send(self.server, path, body, method)
        return row


def _query(window: Window) -> str:
    return urlencode({name: value for name, value in window.items() if value is not None})


def _spec(given: Given) -> Any:
    from api.resources.owner_specs import RuleSpec

    return RuleSpec(**given)


def _row(value: object) -> Row:
    from api.resources.as_json import to_json

    row: Row = to_json(value)
    return row


def _rows(values: Sequence[object]) -> list[Row]:
    return [_row(value) for value in values]


def _now() -> int:
    from core.clock import now_ms

    return now_ms()
