"""The fuzz run: `python -m tests.fuzz bundles 300`, for so many seconds, guided by coverage (atheris).

Not part of any suite, and atheris is no requirement of the tests: `pip install atheris` beside them.
Begins with the kept seeds (tests/fuzz/corpus/, replayed by tests/unit/domain/test_fuzz_corpus.py), ends
at the first input for which an oracle's promise fails, whose name it prints, or when the time is over:
then `--keep` adds the smallest inputs that reach something new to the corpus, by their outcome's name.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]
CORPUS = HERE / "corpus"
READER_FILES = (
    "bundles.py", "bundle_headers.py", "bundle_manifests.py", "bundle_paths.py",
    "dockerfiles.py", "dockerfile_review.py", "registries.py",
)  # fmt: skip
SIZE_MAX = {"bundles": 24 * 1024, "dockerfiles": 2048}
KEPT_MAX = {"bundles": 5 * 1024, "dockerfiles": 512}  # bytes of a seed that is kept


def fuzz(kind: str, arguments: list[str]) -> None:
    """Be libFuzzer for one reader; does not return."""
    import atheris

    with atheris.instrument_imports(include=["svc"]):
        from fuzz import mutations, oracles

    def change(data: bytes, most: int, seed: int) -> bytes:
        return mutations.MUTATIONS[kind](data, most, random.Random(seed), atheris.Mutate)

    atheris.Setup([sys.argv[0], *arguments], oracles.ORACLES[kind], custom_mutator=change)
    atheris.Fuzz()


def run(kind: str, seconds: int, keep: bool) -> int:
    """A whole run in processes of its own; the exit code is libFuzzer's."""
    from fuzz import mutations

    with tempfile.TemporaryDirectory(prefix="svc-fuzz-") as folder:
        work = Path(folder)
        for name in ("work", "begin"):
            (work / name).mkdir()
        begin = [path.read_bytes() for path in sorted(CORPUS.glob(f"{kind}/*"))] + mutations.seeds(kind)
        for number, seed in enumerate(begin):
            (work / "begin" / f"{number:04}").write_bytes(seed)
        values = [
            sys.executable, str(HERE / "__main__.py"), kind, "--libfuzzer", f"-artifact_prefix={HERE}/found-",
            f"-max_len={SIZE_MAX[kind]}", "-timeout=20", "-rss_limit_mb=1024",
        ]  # fmt: skip
        first = [*values, f"-max_total_time={seconds}", "-print_final_stats=1", work / "work", work / "begin"]
        code = subprocess.run(first).returncode
        if code == 0 and keep:
            inputs = [path.read_bytes() for path in (work / "work").iterdir()]
            print(f"{kind}: {_keep(kind, begin + inputs)} seeds kept", flush=True)
        return code


def _keep(kind: str, inputs: list[bytes]) -> int:
    """Make the corpus of the inputs, small ones first, that take a way through the readers none took before.

    Each is named by how the reader ends with it. Returns how many.
    """
    from fuzz import oracles

    shutil.rmtree(CORPUS / kind, ignore_errors=True)
    (CORPUS / kind).mkdir(parents=True)
    known: set[object] = set()
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        outcome, ways = _traced(oracles.ORACLES[kind], data)
        if len(data) <= KEPT_MAX[kind] and not known >= ways | {outcome}:
            known |= ways | {outcome}
            (CORPUS / kind / f"{outcome}-{hashlib.sha256(data).hexdigest()[:8]}").write_bytes(data)
    return len(os.listdir(CORPUS / kind))


def _traced(oracle: Callable[[bytes], str], data: bytes) -> tuple[str, set[object]]:
    """How an input ends, and each step from line to line that the readers took with it."""
    ways: set[object] = set()
    before: dict[FrameType, int] = {}

    def step(frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.endswith(READER_FILES):
            return None
        ways.add((frame.f_code, before.get(frame, 0), frame.f_lineno))
        before[frame] = frame.f_lineno
        return step

    sys.settrace(step)
    try:
        return oracle(data), ways
    finally:
        sys.settrace(None)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kind", choices=sorted(SIZE_MAX))
    parser.add_argument("seconds", nargs="?", type=int, default=60)
    parser.add_argument("--keep", action="store_true")
    if sys.argv[2:3] == ["--libfuzzer"]:
        fuzz(sys.argv[1], sys.argv[3:])
    value = parser.parse_args()
    return run(value.kind, value.seconds, value.keep)


if __name__ == "__main__":
    sys.exit(main())
