"""docs/examples.md, word for word: each application is started by its example and reached by its own client.

Those with a page of their own are in test_in_browser.py.
"""

from __future__ import annotations

import json
import pwd
import subprocess
from pathlib import Path

import pytest
from applications.reader import USER, Make, closing, page
from e2e.guides.far_browser import write
from e2e.installation import Service
from e2e.pages import play
from e2e.surroundings import must
from waiting import until

pytestmark = pytest.mark.timeout(1200)
SECTIONS = (
    "JupyterLab", "sshd", "PostgreSQL", "TensorBoard", "A model server", "Streamlit", "Node",
    "R, and batch scripts", "code-server",
)  # fmt: skip
RERUN = b"\x5a\x00"  # BackMsg(rerun_script=ClientState())


def test_the_list(service: Service) -> None:
    (block,) = [block for block in page("examples.md") if block.heading.startswith("Examples")]
    said = play(USER, block.text, service.env)
    assert said.code == 0 and said.out.count("docker.io/") == 10


def test_every_section_is_followed() -> None:
    headings = {block.heading for block in page("examples.md")}
    assert {heading for heading in headings if not heading.startswith("Examples")} == set(SECTIONS)


def test_sshd(reader: Make) -> None:
    """By ssh, scp and rsync, with the host key that the page says."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    make_key(home)
    box = reader("sshd", "box", "Server listening")
    said = box.follow("sshd")
    assert "/work\nroot\n" in said
    public = (home / ".ssh/id_ed25519.pub").read_text()
    assert (home / "fetched").read_text() == (home / "work/copied").read_text() == public
    assert (home / "work/copied").owner() == USER
    must(box.svc("ws", "stop", "box"))
    must(box.svc("ws", "start", "box"))
    box.wait()
    options = "-o BatchMode=yes -o StrictHostKeyChecking=yes"
    again = play(USER, f"ssh {options} -p {box.port} root@127.0.0.1 'cat copied'", box.env)
    assert again.out == public, f"the host key stays: {again.err}"
    (home / "work/.ssh/authorized_keys").unlink()
    refused = play(USER, f"ssh {options} -p {box.port} root@127.0.0.1 true", box.env)
    assert (refused.code, "Permission denied" in refused.err) == (255, True)


def make_key(home: Path) -> None:
    """The user's own key for ssh."""
    account = pwd.getpwnam(USER)
    subprocess.run(
        ["install", "-d", "-m", "0700", "-o", USER, "-g", str(account.pw_gid), home / ".ssh"], check=True
    )
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / ".ssh/id_ed25519"],
        check=True, user=account.pw_uid, group=account.pw_gid, env={"HOME": str(home)},
    )  # fmt: skip
    write(USER, home / ".ssh/known_hosts", "")


def test_postgres(reader: Make) -> None:
    """By psql; the data outlives stop, deletion and another workspace, and nothing is recovered."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    db = reader("postgres", "db", "ready to accept connections")
    assert "INSERT 0 1" in db.follow("PostgreSQL")
    password = home / "work/postgres.password"
    assert (password.stat().st_mode & 0o777, (home / "work/postgres").owner()) == (0o600, USER)
    query = (
        f'PGPASSWORD="$(cat {password})" psql -h 127.0.0.1 -p {{}} -U postgres -Atc "SELECT loss FROM runs"'
    )
    assert play(USER, query.format(db.port), db.env).out == "0.25\n"
    assert play(USER, f"PGPASSWORD=x {query[query.index('psql') :]}".format(db.port), db.env).code == 2
    must(db.svc("ws", "create", "--template", "postgres", "--name", "second"))
    try:
        outcome = db.svc("ws", "start", "second")
        said = until(lambda: db.svc("ws", "logs", "second", "--launcher", "postgres").out, 30, 0.3)
        assert "another workspace serves /work/postgres" in said, outcome
        must(db.svc("ws", "launcher", "stop", "db", "postgres"))
        must(db.svc("ws", "delete", "db", "--yes"))
        db.workspace = "second"
        must(db.svc("ws", "launcher", "start", "second", "postgres"))
        db.wait()
        assert play(USER, query.format(db.port), db.env).out == "0.25\n"
        assert "was not properly shut down" not in db.log()
    finally:
        db.workspace = "second"


def test_tensorboard(reader: Make) -> None:
    """By the addresses that its page asks."""
    board = reader("tensorboard", "board", "http://127.0.0.1:")
    board.follow("TensorBoard")
    board.wait()
    tags = until(lambda: board.fetch("/data/plugin/scalars/tags"), 60, 1)
    assert list(tags["first"]) == ["loss"]


def test_a_model_server(reader: Make) -> None:
    """By its protocol over HTTP, from the page."""
    said = reader("model-server", "models", "Uvicorn running on").follow("A model server")
    (output,) = json.loads(said[said.index('{"model_name"') :])["outputs"]
    assert output["data"] == [pytest.approx(42)]


def test_streamlit(reader: Make) -> None:
    """By its WebSocket: a session that runs the script."""
    import websocket

    app = reader("streamlit", "app", "URL:")
    app.follow("Streamlit")
    app.wait()
    address = f"ws://127.0.0.1:{app.port}/_stcore/stream"
    with closing(websocket.create_connection(address, subprotocols=["streamlit"], timeout=60)) as stream:
        stream.send_binary(RERUN)
        while b"Six times 7 is 42" not in stream.recv():
            pass


def test_node(reader: Make) -> None:
    assert '{"path":"/hello"}' in reader("node", "web", "listening").follow("Node")


def test_a_batch_script(reader: Make) -> None:
    """R's own fit of its own example."""
    stats = reader("r", "stats", "")
    assert "3.932\n" in stats.follow("R, and batch scripts")
    assert '"speed",3.93' in (Path(pwd.getpwnam(USER).pw_dir) / "work/fit.csv").read_text()


def test_rstudio() -> None:
    pytest.skip("RStudio Server is in none of Debian, PyPI and npm; its makers' sites are not reached here")
