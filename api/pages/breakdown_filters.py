"""Filters of pages of money and energy: what there is to choose from."""

from api.pages.filters import OF_REPORTS, FilterBar, filter_bar
from api.pages.view import View
from store.known import known_gpus
from store.queries import ledger_sums


def filters_of(view: View) -> FilterBar:
    """Team, host and GPU model as fields; the others are shown where a drill-down set them."""
    session = view.scope.session
    gpus = [known.identity for known in known_gpus(session.connection())]
    teams = {owner.team for owner in ledger_sums.owners(session).values()} - {""}
    choices = {
        "owner": sorted(teams),
        "host": sorted({gpu.host for gpu in gpus if gpu.host}),
        "model": sorted({gpu.model for gpu in gpus if gpu.model}),
    }
    return filter_bar(view.address, choices, also=[name for name in OF_REPORTS if name not in choices])
