"""code-server as its official image has it: /usr/bin/code-server, and a user 1000 named coder.

The program comes from npm. Its install scripts would download from elsewhere: they are left out, what is
written in C++ is built with Debian's node and its headers, and Debian's ripgrep stands in its place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VERSION = "4.22.0"  # the newest for Debian 12's node, which has number 18
TOOLS = ("nodejs", "libnode-dev", "node-gyp", "g++", "make", "python3")
BUILD = """\
set -eu
cd /usr/lib/code-server
for module in node_modules/argon2 lib/vscode/node_modules/@vscode/spdlog \\
    lib/vscode/node_modules/native-watchdog lib/vscode/node_modules/node-pty; do
    (cd "$module" && node-gyp --nodedir=/usr rebuild --module_name=argon2 --module_path=./lib/binding/napi-v3)
done
mkdir -p node_modules/argon2/lib/binding/napi-v3 lib/vscode/node_modules/@vscode/ripgrep/bin
cp node_modules/argon2/build/Release/argon2.node node_modules/argon2/lib/binding/napi-v3/
ln -s /usr/bin/rg lib/vscode/node_modules/@vscode/ripgrep/bin/rg
ln -s node_modules lib/vscode/node_modules.asar
ln -s code-linux.sh lib/vscode/bin/remote-cli/code-server
ln -s browser-linux.sh lib/vscode/bin/helpers/browser.sh
ln -s ../lib/code-server/out/node/entry.js /usr/bin/code-server
chmod 0755 out/node/entry.js
"""
INSTALL = ("install", "--omit=dev", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund")


def make(path: Path, sources: Path) -> None:
    """Write the layer with the program; raises CalledProcessError where npm or Debian is not reached."""
    folder = path.with_suffix(".npm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        _call(folder, "npm", "pack", "--silent", f"code-server@{VERSION}")
        _call(folder, "tar", "-xzf", f"code-server-{VERSION}.tgz")
        for place in ("package", "package/lib/vscode", "package/lib/vscode/extensions"):
            _call(folder / place, "npm", *INSTALL)
        (folder / "build").write_text(BUILD)
        hooks = [
            f'cp -a {folder}/package "$1/usr/lib/code-server" && cp {folder}/build "$1/tmp/build"',
            'chroot "$1" env -i PATH=/usr/bin:/bin HOME=/tmp sh /tmp/build',
            f'tar -C "$1" -cf {path} usr/lib/code-server usr/bin/code-server',
        ]
        argv = ["mmdebstrap", "--quiet", "--format=null", "--variant=minbase", "--mode=root"]
        argv += [f"--include={','.join(TOOLS)}", *(f"--customize-hook={hook}" for hook in hooks)]
        _call(folder, *argv, "bookworm", "/dev/null", str(sources))
    finally:
        shutil.rmtree(folder)


def _call(folder: Path, *argv: str) -> None:
    """Run a program there, with the variables of this process: npm may need a proxy."""
    subprocess.run(argv, cwd=folder, env=os.environ, check=True, capture_output=True, text=True)
