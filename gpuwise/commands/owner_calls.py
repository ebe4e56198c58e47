"""What ``gpuwise owners`` asks and changes: in the database, or at a server; rows as JSON either way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

from gpuwise.commands.kept import changed, listed, removed
from gpuwise.commands.options import Source

if TYPE_CHECKING:
    from api.resources.owner_specs import RuleSpec

Row: TypeAlias = dict[str, Any]
Given: TypeAlias = Mapping[str, Any]
"""Options of a rule by field of ``api.resources.owner_specs.RuleSpec``."""
Window: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """The owner rules where a command was pointed at."""

    source: Source

    def listed(self) -> list[Row]:
        """Every rule in its order."""
        from api.resources import owners
        from core.clock import now_ms

        return listed(self.source, "owners/rules", lambda session: owners.rows(session, now_ms()))

    def add(self, given: Given, position: int | None) -> Row:
        """Keep a rule."""
        from api.resources import owners
        from api.resources.owner_specs import RuleSpec

        return self._row(
            "owners/rules",
            {**given, "position": position},
            lambda session, settings, now: owners.add(session, settings, now, RuleSpec(**given), position),
        )

    def change(self, rule_id: int, changes: Given, position: int | None = None) -> Row:
        """Correct or move a rule."""
        from api.resources import owners

        return self._row(
            f"owners/rules/{rule_id}",
            {**changes, "position": position},
            lambda session, settings, now: owners.change(
                session, settings, now, rule_id, changes, position=position
            ),
            "PATCH",
        )

    def hand_over(self, rule_id: int, owner: Given, on: str) -> Row:
        """Another owner from a day on."""
        from api.resources import owners
        from api.resources.owner_specs import RuleSpec

        return self._row(
            f"owners/rules/{rule_id}/hand-over",
            {**owner, "on": on},
            lambda session, settings, now: owners.hand_over(
                session, settings, now, rule_id, to=RuleSpec(**owner), on=on
            ),
        )

    def rename(self, team: str, to_team: str | None, to_cost_centre: str | None, on: str) -> list[Row]:
        """Another name or cost centre of a team from a day on."""
        from api.resources import owners

        to = {"to_team": to_team, "to_cost_centre": to_cost_centre}
        return self._rows(
            "owners/rename",
            {"team": team, "on": on, **to},
            lambda session, settings, now: owners.rename(session, settings, now, team, on, **to),
        )

    def remove(self, rule_id: int) -> None:
        """Remove a rule."""
        from api.resources import owners

        removed(self.source, "owners/rules", rule_id, owners.remove)

    def dry_run(self, given: Given, position: int | None, window: Window) -> Row:
        """What a rule would claim."""
        from api.resources.owner_claims import dry_run
        from api.resources.owner_specs import RuleSpec, rule_of
        from api.resources.scope import scope_of

        def local(session: Any, settings: Any, now_ms: int) -> Any:
            scope = scope_of(session, settings, now_ms, window["since"], window["until"])
            return dry_run(scope, rule_of(RuleSpec(**given), settings, now_ms), position)

        return self._row(f"owners/dry-run?{_query(window)}", {**given, "position": position}, local)

    def dry_run_of(self, rule_id: int, window: Window) -> Row:
        """What a stored rule claims."""
        from api.resources.owner_claims import dry_run_of_stored
        from api.resources.scope import scope_of

        def local(session: Any, settings: Any, now_ms: int) -> Any:
            scope = scope_of(session, settings, now_ms, window["since"], window["until"])
            return dry_run_of_stored(scope, rule_id)

        if self.source.server is not None:
            from gpuwise.commands.remote import ask

            row: Row = ask(self.source.server, f"owners/rules/{rule_id}/dry-run?{_query(window)}")
            return row
        return self._row("", {}, local)

    def import_rules(self, specs: Sequence["RuleSpec"], *, replace: bool) -> list[Row]:
        """Keep many rules: all or none."""
        from dataclasses import asdict

        from api.resources.owners import import_rules

        body = [{name: value for name, value in asdict(spec).items() if value is not None} for spec in specs]
        return self._rows(
            "owners/import",
            {"rules": body, "replace": replace},
            lambda session, settings, now: import_rules(session, settings, now, specs, replace_all=replace),
        )

    def _row(self, path: str, body: Given, call: Any, method: str = "POST") -> Row:
        row: Row = self._changed(path, body, call, method)
        return row

    def _rows(self, path: str, body: Given, call: Any) -> list[Row]:
        rows: list[Row] = self._changed(path, body, call, "POST")
        return rows

    def _changed(self, path: str, body: Given, call: Any, method: str) -> Any:
        """``call`` takes session, settings and now."""
        from core.clock import now_ms

        settings = self.source.settings
        return changed(self.source, path, body, lambda session: call(session, settings, now_ms()), method)


def _query(window: Window) -> str:
    return urlencode({name: value for name, value in window.items() if value is not None})
