"""Logical processors: a process of its own each, for they are chosen at its start."""

import subprocess
import sys

PROGRAM = """
import headrace as tf

config = tf.config
cpu = config.list_physical_devices("CPU")[0]
two = [config.LogicalDeviceConfiguration()] * 2
config.set_logical_device_configuration(cpu, two)
tf.constant(1)
config.set_logical_device_configuration(cpu, two)
with tf.device("cpu:1"):
    x = tf.identity(1.0)
    text = tf.constant(["a"])
with tf.device("cpu:0"):
    y = tf.identity(x)
print(x.device[-6:], text.device[-6:], y.device[-6:], (x + 1).device[-6:])
print(x.cpu().device[-6:], x.cpu() is x, float(x.cpu()))
config.set_soft_device_placement(False)
with tf.device("cpu:1"):
    print(tf.constant(1).device[-6:])
try:
    with tf.device("cpu:2"):
        pass
except tf.errors.InvalidArgumentError as error:
    print("Could not satisfy" in str(error), "CPU:1]" in str(error))
"""


def test_tensors_name_the_processor_that_made_them():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        ":CPU:1 :CPU:1 :CPU:0 :CPU:0",
        ":CPU:0 False 1.0",
        ":CPU:1",
        "True True",
    ]
