"""Counts how many generated programs agree; shows the first that does not."""

import argparse
import importlib
import logging
import pathlib
import tempfile
import time

from . import check, load, make
from .shrink import shrink


def main():
    parser = argparse.ArgumentParser(prog="generated", description=__doc__)
    parser.add_argument("--module", default="headrace", help="what is imported as tf")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--show", type=int, default=1, help="failures to print")
    parser.add_argument("--print", action="store_true", help="print the programs only")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    if given.print:
        for seed in range(given.seed, given.seed + given.count):
            print(make(seed).source(given.module))
        return
    tf = importlib.import_module(given.module)
    tf.autograph.set_verbosity(0)
    logging.getLogger(given.module).setLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        run(tf, given, pathlib.Path(folder))


def run(tf, given, folder):
    start, agree, shown, kinds = time.time(), 0, 0, {}
    for seed in range(given.seed, given.seed + given.count):
        program = make(seed)
        source = program.source(given.module)
        ways = program.ways()

        def judge(source, name=f"program_{seed}", ways=ways):
            module = load(source, folder / f"{name}.py")
            return check(tf, module.f, **ways)

        verdict = judge(source)
        if verdict:
            agree += 1
            continue
        kinds.setdefault(verdict.kind, []).append(seed)
        if shown < given.show:
            shown += 1
            if not given.no_shrink:
                source = shrink(source, lambda text: _fails(judge, text, verdict))
            print(
                f"=== seed {seed}: {verdict.kind}\n{source}\n{verdict.text}\n",
                flush=True,
            )
    print(f"{agree} of {given.count} agree ({time.time() - start:.0f} s)")
    for kind, seeds in kinds.items():
        print(f"{kind}: {len(seeds)}: seeds {seeds[:20]}")


def _fails(judge, text, verdict):
    try:
        return judge(text).like(verdict)
    except Exception:
        return False


main()
