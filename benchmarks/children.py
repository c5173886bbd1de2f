"""Processes that answer a benchmark's requests, one a library, so that ours and
TensorFlow run the same calls by turns."""

import contextlib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def serve(module, threads, begin):
    """Answers requests, JSON lines, by what begin(tf, np) gives: a function from a
    request to an answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import numpy as np

    tf = __import__(module)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if module == "tensorflow":
        tf.config.threading.set_inter_op_parallelism_threads(1)
    answer_to = begin(tf, np)
    for line in sys.stdin:
        try:
            answer = answer_to(json.loads(line))
        except Exception as e:  # told in the table
            answer = {"error": f"{type(e).__name__}: {e}"[:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Child:
    """`program --serve module threads`, run by a Python that has the module."""

    def __init__(self, python, program, module, threads):
        environment = {
            **os.environ,
            "HEADRACE_NUM_THREADS": str(threads),
            "OMP_NUM_THREADS": str(threads),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        package = os.path.join(os.path.dirname(HERE), "python")
        environment["PYTHONPATH"] = package if module == "headrace" else ""
        self._process = subprocess.Popen(
            [python, os.path.abspath(program), "--serve", module, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )

    def ask(self, **request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (ValueError, OSError):
            return {"error": f"the process ended: {self._process.wait()}"}

    def close(self):
        self._process.stdin.close()
        self._process.wait()


@contextlib.contextmanager
def of_libraries(program, tensorflow, threads):
    """A child of ours, and one of TensorFlow's where `tensorflow` is a Python that has
    it."""
    found = [Child(sys.executable, program, "headrace", threads)]
    if tensorflow:
        found.append(Child(tensorflow, program, "tensorflow", threads))
    yield found
    for child in found:
        child.close()
