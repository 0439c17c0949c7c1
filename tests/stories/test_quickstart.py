"""The closing words of packaging/quickstart are enough: from the sign-in to a command, in both schemes."""

from __future__ import annotations

import hashlib
import re
import shlex
import ssl
from collections.abc import Iterator

import pytest
from e2e.installation import ROOT
from e2e.processes.host_copies import Host, copied
from e2e.sshd import listens
from pages.chromium import Driver, press, says
from stories.signing_in import sign_in
from stories.test_first_workspace import from_the_form_to_the_output

PORT = 24680
PASSWORD = "seven quiet herons over mud\n"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """host(*argv, stdin=) runs a command as root on a copy of this host; its output."""
    with copied(tmp_path_factory.mktemp("host")) as copy:
        yield copy


@pytest.fixture(scope="module")
def words(host: Host) -> str:
    """What the quickstart says at its end."""
    if listens(PORT):
        pytest.skip(f"something listens on port {PORT} of this host")
    quickstart = str(ROOT / "packaging/quickstart")
    host(quickstart, "--remove", "--yes")  # what an earlier one left on this host is in the copy
    said = host(quickstart)
    return said[said.index("svc is running.") :]


def test_the_link_of_its_words_leads_to_a_page_without_a_password(browser: Driver, words: str) -> None:
    """Before anything else: it works for five minutes."""
    found = re.search(r"Open: (http://web-\S+)", words)
    assert found, words
    browser.get(found[1])
    says(browser, "web of the workspace first, as demo")
    press(browser, "button")
    says(browser, "hello from inside", "h1")


@pytest.fixture(scope="module")
def address(words: str, host: Host) -> str:
    """The address in the words, once its fingerprint is compared and the password is set, as they say."""
    found = re.search(r"In a browser: (https://localhost:\d+)/ here", words)
    assert found, words
    pem = ssl.get_server_certificate(("localhost", PORT))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    assert ":".join(re.findall("..", digest.upper())) in words.upper()
    (command,) = re.findall(r"(svc admin set-password demo) +as root", words)
    host(*shlex.split(command), stdin=PASSWORD)
    return str(found[1])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_from_its_words_to_the_output_of_a_command(browser: Driver, address: str, theme: str) -> None:
    """A second workspace, from the template that the quickstart has made; no command line."""
    browser.set_window_size(1440, 900)
    sign_in(browser, address, "/workspaces", theme, who=("demo", PASSWORD))
    from_the_form_to_the_output(browser, address, f"mine-{theme}", theme)
