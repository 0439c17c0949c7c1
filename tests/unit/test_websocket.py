"""WebSocket frames: the examples of RFC 6455, every rule that may be broken, any cut of the bytes."""

from __future__ import annotations

import random

import pytest

from svc import websocket
from svc.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Broken, Receiver, frame

MASK = bytes.fromhex("37fa213d")


def received(data: bytes, *, masked: bool = False, most: int = 1 << 20) -> list[tuple[int, bytes]]:
    return list(Receiver(most, masked=masked).feed(data))


def refused(data: bytes, code: int, *, masked: bool = False, most: int = 1 << 20) -> None:
    with pytest.raises(Broken) as raised:
        received(data, masked=masked, most=most)
    assert raised.value.code == code
    assert len(websocket.closing(code, raised.value.reason)) <= 125


def test_the_handshake_of_the_rfc() -> None:
    assert websocket.answer_to("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert websocket.is_key(websocket.new_key())
    for wrong in ("", "x", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ==\n", "YQ==", "ü"):
        assert not websocket.is_key(wrong)


@pytest.mark.parametrize(
    ("masked", "text", "message"),
    [
        (False, "810548656c6c6f", (TEXT, b"Hello")),
        (True, "818537fa213d7f9f4d5158", (TEXT, b"Hello")),
        (False, "010348656c80026c6f", (TEXT, b"Hello")),
        (False, "890548656c6c6f", (PING, b"Hello")),
        (True, "8a8537fa213d7f9f4d5158", (PONG, b"Hello")),
        (False, "827e0100" + "61" * 256, (BINARY, b"a" * 256)),
        (False, "827f0000000000010000" + "61" * 65536, (BINARY, b"a" * 65536)),
    ],
)
def test_the_examples_of_the_rfc(masked: bool, text: str, message: tuple[int, bytes]) -> None:
    assert received(bytes.fromhex(text), masked=masked) == [message]


@pytest.mark.parametrize("size", [0, 1, 3, 4, 125, 126, 127, 65535, 65536, 200_000])
@pytest.mark.parametrize("mask", [False, True])
def test_what_is_sent_is_received(size: int, mask: bool) -> None:
    content = random.Random(size).randbytes(size)
    assert received(frame(BINARY, content, mask=mask), masked=mask) == [(BINARY, content)]
    if mask and size > 8:
        assert content not in frame(BINARY, content, mask=True)


def test_any_cut_of_the_bytes_and_of_the_messages() -> None:
    chance = random.Random(6455)
    for _ in range(50):
        expected, data = [], b""
        for _ in range(chance.randint(1, 6)):
            content = chance.randbytes(chance.choice([0, 5, 125, 126, 300, 70_000]))
            expected.append((BINARY, content))
            pieces = [content]
            while chance.random() < 0.5:
                last = pieces.pop()
                at = chance.randint(0, len(last))
                pieces += [last[:at], last[at:]]
            for number, piece in enumerate(pieces):
                one = bytearray(frame(BINARY if number == 0 else CONTINUATION, piece, mask=True))
                if number < len(pieces) - 1:
                    one[0] &= 0x7F
                    if chance.random() < 0.5:  # control frames may come between
                        one += frame(PING, b"?", mask=True)
                        expected.insert(-1, (PING, b"?"))
                data += one
        receiver, found = Receiver(1 << 20, masked=True), []
        while data:
            step = chance.choice([1, 2, 3, 100, 10_000])
            found += (
                receiver.feed(data[:step]) if step > 2 or len(data) < 3000 else receiver.feed(data[:3000])
            )
            data = data[step if step > 2 or len(data) < 3000 else 3000 :]
        assert found == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("c100", 1002), ("a100", 1002), ("9100", 1002), ("8300", 1002), ("8b00", 1002), ("8f00", 1002),
        ("8180" + "00" * 4, 1002),  # masked by a server
        ("0900", 1002), ("0800", 1002), ("897e0080" + "00" * 128, 1002),  # control: in parts, too long
        ("8000", 1002), ("0000", 1002),  # a continuation of nothing
        ("01008100", 1002), ("01008200", 1002),  # a message within a message
        ("827e007d" + "00" * 125, 1002), ("827f000000000000ffff", 1002),  # lengths not in the shortest form
        ("827fffffffffffffffff", 1009), ("827f7fffffffffffffff", 1009),
        ("8101ff", 1007), ("0101c3" "800128", 1007),
        ("880103", 1002), ("880203e7", 1002), ("880203ed", 1002), ("880203ee", 1002), ("880203f7", 1002),
        ("88021388", 1002), ("88020bb7", 1002), ("880403e8ff41", 1007),
    ],
)  # fmt: skip
def test_what_breaks_the_protocol(text: str, code: int) -> None:
    refused(bytes.fromhex(text), code)


def test_a_client_that_does_not_mask() -> None:
    refused(frame(BINARY, b"x"), 1002, masked=True)


def test_the_longest_message() -> None:
    """Refused by its length alone, in one frame or in many: nothing is kept for it."""
    assert received(frame(BINARY, bytes(1000)), most=1000)
    refused(frame(BINARY, bytes(1001))[:4], 1009, most=1000)
    part = bytearray(frame(BINARY, bytes(600)))
    part[0] &= 0x7F
    refused(bytes(part) + frame(CONTINUATION, bytes(401))[:4], 1009, most=1000)
    assert received(bytes(part) + frame(CONTINUATION, bytes(400)), most=1000) == [(BINARY, bytes(1000))]


def test_close_frames() -> None:
    assert websocket.close_code(b"") == websocket.NO_CODE
    for code in (1000, 1001, 1003, 1011, 1012, 3000, 4999):
        content = websocket.closing(code, "über" * 100)
        assert len(content) <= 125
        assert received(frame(CLOSE, content)) == [(CLOSE, content)]
        assert (websocket.close_code(content), websocket.close_reason(content)[:4]) == (code, "über")
