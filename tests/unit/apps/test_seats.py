"""Places of connections: a client's before it has opened an app, a user's after it, and who goes."""

from __future__ import annotations

from svc.apps.seats import Bounds, Seats

BOUNDS = Bounds(total=10, strangers=6, strangers_of_client=3, of_user=2)


class One:
    """Has a place until it is closed."""

    def __init__(self, seats: Seats, client: str) -> None:
        self.seats, self.is_open = seats, True
        seats.enter(self, client)

    def close(self) -> None:
        self.is_open = False
        self.seats.leave(self)


def test_a_client_with_too_many_loses_its_oldest() -> None:
    seats = Seats(BOUNDS)
    other = One(seats, "b")
    ones = [One(seats, "a") for _ in range(5)]
    assert [one.is_open for one in ones] == [False, False, True, True, True]
    assert other.is_open


def test_of_too_many_strangers_the_client_with_most_loses_one() -> None:
    seats = Seats(BOUNDS)
    crowd = [One(seats, "a") for _ in range(3)]
    single = [One(seats, name) for name in "bcde"]
    assert [one.is_open for one in crowd] == [False, True, True]
    assert all(one.is_open for one in single)
    assert len(seats) == 6


def test_who_has_opened_an_app_is_no_stranger() -> None:
    seats = Seats(BOUNDS)
    ones = [One(seats, "a") for _ in range(2)]
    for one in ones:
        seats.admit(one, "ada")
    more = [One(seats, "a") for _ in range(3)]
    assert all(one.is_open for one in (*ones, *more))
    seats.admit(ones[0], "ada")  # used again: the other one is the oldest now
    seats.admit(more[0], "ada")
    assert [one.is_open for one in ones] == [True, False]


def test_the_house_is_full() -> None:
    seats = Seats(BOUNDS)
    ones = [One(seats, str(number)) for number in range(10)]
    for number, one in enumerate(ones):
        seats.admit(one, f"user {number // 2}")
    assert len(seats) == 6, "strangers gave way before they could show who they are"
    for number in range(6, 10):
        seats.admit(One(seats, "x"), f"user {number}")
    assert seats.is_full
    next(one for one in ones if one.is_open).close()
    assert not seats.is_full


def test_ends_leave_nothing() -> None:
    seats = Seats(BOUNDS)
    one = One(seats, "a")
    one.close()
    one.close()
    seats.admit(one, "ada")
    assert (seats.strangers, seats.visitors, seats.places) == ({}, {}, {})
