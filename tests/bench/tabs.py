"""What TAB costs: names of one's own workspaces, in bash, against Podman's own completion."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.pairs import Row, Shell, Side, pair
from e2e.installation import PREFIX, ROOT, SVC

TAB_MS = 50.0  # "completed within 50 ms"
# The last word is what is being typed; nothing offered is a failure.
ASKED = """
PATH={bin}:$PATH; source {script}
COMP_WORDS=({line}); COMP_CWORD=3; _svc svc
[ ${{#COMPREPLY[@]}} -gt 0 ]
"""


def rows(shell: Shell) -> Iterator[Row]:
    """Whole: a bash that loads the script and presses TAB once. Then svc's own part of it, and Podman's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        subprocess.run([PREFIX / "bin/python3", ROOT / "packaging/completion", folder], check=True)

        def pressed(line: str) -> Side:
            asked = ASKED.format(bin=SVC.parent, script=folder / "svc.bash", line=line)
            return shell.side("bash", "--norc", "-c", asked)

        listing = shell.side("podman", "ps")
        whole = pair("TAB after ws start, in bash | podman ps", pressed("svc ws start ''"), listing, bar=1.0)
        yield whole
        yield Row("TAB after ws start, in bash | bar", whole.ours, TAB_MS, whole.ours / TAB_MS, 1.0)
        shell(str(SVC), "fs", "mkdir", "work/tabs/deep", "--parents")
        yield pair("TAB after fs ls work/, in bash | podman ps", pressed("svc fs ls work/"), listing)
        ours = shell.side(str(SVC), "__complete", "workspace", "")
        theirs = shell.side("podman", "__completeNoDesc", "start", "")
        yield pair("names of workspaces | podman's of containers", ours, theirs, bar=1.0)
    finally:
        shutil.rmtree(folder)
