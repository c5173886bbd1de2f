"""examples/serve_digits.sh, the way from training to release (S003-C61)."""

import os
import re
import subprocess
import sys

import pytest
import running

pytestmark = [running.needs_server, pytest.mark.slow]


def test_a_model_is_trained_served_and_replaced_without_a_lost_request():
    done = subprocess.run(
        ["bash", os.path.join(running.ROOT, "examples/serve_digits.sh")],
        env={**os.environ, "PYTHON_OF_DEMO": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *ways, last = done.stdout.strip().split("\n")
    assert re.fullmatch(r"asked: \d+  lost: 0  p99\.9/p50: \d+\.\d", last)
    asked = {}
    for way in ways:
        found = re.match(r"(gRPC|REST) (\w+): (\d+) asked, ([\d.]+) right", way)
        if found:
            assert float(found[4]) > 0.85, way
            asked[f"{found[1]} {found[2]}"] = int(found[3])
    assert {"gRPC v1", "REST v1", "gRPC canary", "REST canary"} <= set(asked)
    assert min(asked.values()) > 0
    (stable,) = (way for way in ways if way.startswith("gRPC v1"))
    assert "by version 1" in stable and "by version 2" in stable
