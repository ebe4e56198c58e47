"""Who may change state, and under which names the server answers."""

import pytest
from starlette.datastructures import Headers

from api.security import CSP, Security, odd_letter
from core.settings import Settings

GUARD = Security(lambda *_: None, Settings(base_url="https://gpuwise.example"))  # type: ignore[arg-type]
JSON = {"content-type": "application/json"}


def refused(
    method: str, path: str = "/api/v1/prices", host: str = "127.0.0.1:8787", **headers: str
) -> int | None:
    sent = Headers({"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}})
    found = GUARD.refusal(method, path, sent)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8787", "localhost", "[::1]:8787", "gpu-node-01:8787", "10.0.0.7", "gpuwise.example"]
)
def test_own_names_addresses_and_names_without_a_dot_are_answered(host: str) -> None:
    assert refused("GET", host=host) is None


@pytest.mark.parametrize("host", ["evil.example:8787", "127.0.0.1.evil.example", ""])
def test_a_name_that_a_stranger_can_point_here_is_not_answered(host: str) -> None:
    assert refused("GET", host=host) == 421


def test_reading_needs_no_origin() -> None:
    assert refused("GET", sec_fetch_site="cross-site") is None


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
def test_a_foreign_page_changes_nothing(method: str) -> None:
    assert refused(method, sec_fetch_site="cross-site", **JSON) == 403
    assert refused(method, sec_fetch_site="same-site", **JSON) == 403
    assert refused(method, origin="https://evil.example", **JSON) == 403
    assert refused(method, origin="null", **JSON) == 403


def test_own_pages_change_state() -> None:
    assert refused("POST", "/recommendations/1/claim", sec_fetch_site="same-origin") is None
    assert refused("POST", origin="http://127.0.0.1:8787") is None


def test_a_program_says_json_or_names_itself_to_post_to_the_api() -> None:
    assert refused("POST") == 403
    assert refused("POST", content_type="text/plain") == 403
    assert refused("POST", content_type="application/json; charset=utf-8") is None
    assert refused("POST", x_gpuwise_client="cron") is None
    assert refused("DELETE") is None


def test_pages_may_load_only_what_we_serve() -> None:
    assert "unsafe" not in CSP
    assert "default-src 'none'" in CSP
    assert "http" not in CSP


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/gpus/a", b"since=7d", None),
        ("/gpus/a\0b", b"", 404),
        ("/costs", b"host=a%00b", 400),
        ("/costs", b"host=a%2500b", None),
    ],
)
def test_an_address_with_a_nul_never_reaches_the_database(
    path: str, query: bytes, status: int | None
) -> None:
    found = odd_letter({"path": path, "query_string": query})
    assert (None if found is None else found[0]) == status
