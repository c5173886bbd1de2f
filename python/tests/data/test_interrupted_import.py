"""An import of tf.data that a signal ends is taken up again."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys

import headrace as tf


class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt


sys.meta_path.insert(0, Interrupt())
try:
    tf.data.Dataset
except KeyboardInterrupt:
    print("interrupted")
dataset = tf.data.Dataset.range(4).map(lambda x: x + 1).batch(2).unbatch()
print(isinstance(dataset, tf.data.Dataset), len(list(dataset)))
"""


@pytest.mark.parametrize("module", ["dataset", "sources", "transforms", "saved"])
def test_the_class_is_the_same_afterwards(module):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"headrace.data.{module}"],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "interrupted\nTrue 4\n", done.stdout + done.stderr
