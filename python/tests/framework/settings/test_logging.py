"""Messages go to the error stream, or to what a program has set up for all of them."""

import subprocess
import sys

import pytest

WARN = "import headrace as tf; tf.get_logger().warning('something')"
ROOT = "import logging; logging.basicConfig(format='mine: %(message)s'); "


@pytest.mark.parametrize(
    "program, expected",
    [(WARN, "WARNING:tensorflow:something\n"), (ROOT + WARN, "mine: something\n")],
)
def test_a_message_is_written_once(program, expected):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == expected


def test_a_status_of_the_whole_task_is_an_error():
    call = "tf.compat.v1.logging.TaskLevelStatusMessage('hello %s')"
    done = subprocess.run(
        [sys.executable, "-c", f"import headrace as tf; {call}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "ERROR:tensorflow:hello %s\n"
