"""The card that a MIG slice is part of, where its price, power and health are; and the slices of a card."""

from sqlalchemy.orm import Session

from api.resources.idle_subject import is_slice_of
from core.readings import SLICE_PREFIX
from store.queries import idle_now


def card_of(session: Session, slice_uuid: str) -> str | None:
    """UUID of the only card that the slice can be part of; None where several could be, or none is known."""
    inner, slash, _ = slice_uuid.removeprefix(SLICE_PREFIX).partition("/")
    if slash:
        return inner if idle_now.gpus_of_uuid(session, inner) else None
    (own,) = idle_now.gpus_of_uuid(session, slice_uuid)
    near = [] if own.host_id is None else idle_now.gpus_of_hosts(session, [own.host_id])
    cards = [one.gpu_uuid for one in near if is_slice_of(own, one)]
    return cards[0] if len(cards) == 1 else None


def slices_of(session: Session, card_uuid: str, from_ms: int) -> tuple[str, ...]:
    """UUIDs of the slices of a card that were seen since; one that may be of another card too is left out."""
    (own,) = idle_now.gpus_of_uuid(session, card_uuid)
    if own.is_slice:
        return ()
    if own.host_id is None:
        near = [own, *idle_now.slices_of_nowhere(session, card_uuid)]
    else:
        near = idle_now.gpus_of_hosts(session, [own.host_id])
    return tuple(
        one.gpu_uuid
        for one in near
        if one.is_slice
        and (one.seen_until_ms or 0) > from_ms
        and [card.gpu_uuid for card in near if is_slice_of(one, card)] == [card_uuid]
    )
