"""TAB in bash, zsh and fish of this machine, with the completion that the installation brought.

usage: tab.py USER TYPED WHOLE...: what is typed, and what TAB makes of it; exits 1 when it is otherwise.
"""

import sys

sys.path.insert(0, "/root/checkout/tests")
from e2e import shells

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
user, *texts = sys.argv[1:]
pairs = list(zip(texts[::2], texts[1::2], strict=True))
wrong = []
for name in ("bash", "zsh"):
    shell = shells.Interactive(name, user, ENV, None)
    try:
        for typed, whole in pairs:
            found = shell.completed(typed)
            print(f"{name}: {typed!r} -> {found!r}")
            if found.rstrip(" ") != whole:
                wrong.append(f"{name}: {found!r}, not {whole!r}; on the screen: {shell.screen!r}")
            shell.forget()
    finally:
        shell.close()
for typed, whole in pairs:
    offered = shells.fish_offers(user, ENV, None, typed)
    print(f"fish: {typed!r} -> {offered}")
    if offered != [whole.rpartition(" ")[2]]:
        wrong.append(f"fish: {offered}, not {whole!r}")
sys.exit("\n".join(wrong) or None)
