"""Which addresses count as one client."""

from __future__ import annotations

import pytest

from svc.domain import addresses


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("127.0.0.1", "127.255.0.9", True),
        ("127.0.0.1", "::1", True),
        ("127.0.0.1", "::ffff:127.3.2.1", True),
        ("2001:db8:1::1", "2001:db8:1:ffff:ffff::9", True),
        ("2001:db8:1::1", "2001:db8:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "192.0.2.1", False),
        ("not an address", "not an address", True),
    ],
)
def test_an_address_is_what_one_client_has(one: str, other: str, same: bool) -> None:
    assert (addresses.client_of(one) == addresses.client_of(other)) is same
