"""Tokens of the REST API, on both databases."""

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from core.errors import StoreError
from store.queries import tokens

T0 = 1_791_158_400_000


def made(session: Session, token_hash: str = "h" * 64, **given: object) -> tokens.TokenRecord:
    wanted: dict[str, object] = {"name": "rack 7", "prefix": "gw_Ab3dE", "created_ms": T0}
    return tokens.create(session, token_hash=token_hash, **(wanted | given))  # type: ignore[arg-type]


def test_a_token_is_found_by_its_hash_and_only_by_that(session: Session) -> None:
    given = made(session, host_name="gpu-node-01", expires_ms=T0 + 1_000)
    session.commit()
    assert tokens.by_hash(session, "h" * 64) == given
    assert (given.host_name, given.scope, given.prefix) == ("gpu-node-01", "ingest", "gw_Ab3dE")
    assert tokens.by_hash(session, "H" * 64) is None
    assert tokens.by_hash(session, "gw_Ab3dE") is None


def test_tokens_are_listed_in_the_order_they_were_made(session: Session) -> None:
    given = [made(session, "a"), made(session, "b", name="rack 8")]
    tokens.revoke(session, given[0].id, T0 + 5)
    session.commit()
    assert [one.name for one in tokens.listing(session)] == ["rack 7", "rack 8"]
    assert [one.revoked_ms for one in tokens.listing(session)] == [T0 + 5, None]


def test_the_same_hash_is_refused_and_the_rest_of_the_transaction_stays(session: Session) -> None:
    kept = made(session)
    with pytest.raises(StoreError, match="token 'rack 7' cannot be kept"):
        made(session)
    session.commit()
    assert tokens.listing(session) == [kept]


def test_an_unknown_scope_is_refused(session: Session) -> None:
    with pytest.raises(StoreError, match="cannot be kept"):
        made(session, scope="admin")
    assert tokens.listing(session) == []


def test_a_token_is_valid_until_it_expires_or_is_revoked(session: Session) -> None:
    endless, ending = made(session, "a"), made(session, "b", expires_ms=T0 + 10)
    assert endless.valid_at(T0 + 10**12)
    assert ending.valid_at(T0 + 9)
    assert not ending.valid_at(T0 + 10)
    assert not tokens.revoke(session, endless.id, T0 + 1).valid_at(T0 + 2)


def test_revoking_again_keeps_the_first_time(session: Session) -> None:
    token = made(session)
    tokens.revoke(session, token.id, T0 + 1)
    assert tokens.revoke(session, token.id, T0 + 2).revoked_ms == T0 + 1
    with pytest.raises(StoreError, match="there is no token 99"):
        tokens.revoke(session, 99, T0)


def test_last_use_is_noted_once_a_minute(session: Session) -> None:
    token, other = made(session, "a"), made(session, "b")
    session.commit()
    noted = [tokens.touch(session, token.id, T0 + after_ms) for after_ms in (0, 59_999, 60_000, 60_001)]
    session.commit()
    assert noted == [True, False, True, False]
    found = tokens.by_hash(session, "a")
    assert found is not None
    assert found.last_used_ms == T0 + 60_000
    assert tokens.by_hash(session, "b") == other
    assert not tokens.touch(session, 99, T0)


def test_the_hash_is_all_that_is_kept(session: Session) -> None:
    made(session)
    (row,) = session.execute(text("SELECT * FROM api_token")).mappings()
    assert {name for name, value in row.items() if value == "h" * 64} == {"token_hash"}
