"""Writes tests/golden/programs with real TensorFlow; run from anywhere:

PYTHON python/tests/programs/record.py [NAME ...]

The output of each program with tf_keras, as Keras 2 is what headrace.keras is, or with
Keras 3 where the program's first line says so. Programs whose first line names 2.15 use
estimators, which TensorFlow had until then: that version's PYTHON records these alone.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parents[2] / "tests" / "golden" / "programs"
OLD = importlib.util.find_spec("tensorflow_estimator") is not None


def main(names):
    for name in names or sorted(p.stem for p in HERE.glob("*.py")):
        if name == "record" or name.startswith("test_"):
            continue
        with open(HERE / f"{name}.py") as f:
            line = f.readline()
        if ("2.15" in line) != OLD:
            continue
        legacy = "0" if OLD or "Keras 3" in line else "1"
        environment = dict(
            os.environ, TF_USE_LEGACY_KERAS=legacy, TF_CPP_MIN_LOG_LEVEL="3"
        )
        environment.pop("PYTHONPATH", None)
        result = subprocess.run(
            [sys.executable, HERE / f"{name}.py"],
            env=environment,
            capture_output=True,
            text=True,
        )
        if result.returncode:
            print(name, result.stderr[-2000:])
            continue
        (GOLDEN / f"{name}.txt").write_text(result.stdout)
        print(name, len(result.stdout.splitlines()))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    main(sys.argv[1:])
