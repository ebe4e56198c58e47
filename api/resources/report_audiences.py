"""Whom a weekly report can be of: the whole fleet, every team that an owner rule or the ledger names, every project."""

from sqlalchemy.orm import Session

from core.errors import NotFoundError, UsageError
from core.ownership import Owner
from store.queries import ledger_sums, owners

NAMED_AT_MOST = 10


def audiences(session: Session) -> list[Owner]:
    """Teams, each before its projects, by name."""
    known = {rule.owner for rule in owners.listing(session)} | set(ledger_sums.owners(session).values())
    found = {Owner(one.team) for one in known} | {Owner(one.team, one.project) for one in known}
    return sorted(one for one in found if one.team)


def audience_of(session: Session, team: str | None, project: str | None = None) -> Owner | None:
    """The audience of that name; without a team the whole fleet.

    Raises:
        NotFoundError: nothing is called so. UsageError: a project without its team.
    """
    if not team:
        if project:
            raise UsageError(f"project is {project!r} without an owner: give the team too")
        return None
    found, known = Owner(team, project or ""), audiences(session)
    if found in known:
        return found
    names = [one.name for one in known if not one.project]
    more = " …" if len(names) > NAMED_AT_MOST else ""
    those = f"there are {', '.join(names[:NAMED_AT_MOST])}{more}" if names else "there is none yet"
    raise NotFoundError(f"no owner {found.name!r}: {those} (gpuwise owners)")


def named(session: Session, text: str) -> Owner:
    """The audience that people call so: a team, or ``team / project``. Raises ``NotFoundError``."""
    known = audiences(session)
    found = next((one for one in known if one.name == text), None)
    if found is None:
        team, _, project = text.partition("/")
        found = audience_of(session, *((text, None) if not project else (team.strip(), project.strip())))
    assert found is not None
    return found
