"""The model server beside bare servers that answer a constant, and beside Triton.

Usage: PYTHONPATH=python .venv/bin/python benchmarks/serving.py [WORDS] [--rounds N]
           [--seconds S] [--triton PYTHON]

WORDS choose parts by their names: grpc, rest, bytes, json, batches, start, tail.
--triton names a Python that has nvidia-pytriton, whose package holds the real
tritonserver (with the Python backend; the model computes with NumPy there). Needs
build/benchmarks/serving (make bench), build/bin/headrace-serving and wrk. Servers and
load share the machine and take turns; figures are medians of the rounds' ratios.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/bin/headrace-serving"
TOOL = str(ROOT / "build/benchmarks/serving")
PREDICT = "/tensorflow.serving.PredictionService/Predict"
MODELS = ("mlp", "five", "wide", "first")
INFER = "/inference.GRPCInferenceService/ModelInfer"
# What wrk runs: the request, and latencies with the last tenth of a percent.
WRK = """
wrk.method, wrk.path = "POST", os.getenv("HTTP_PATH")
local file = io.open(os.getenv("HTTP_BODY"), "rb")
wrk.body = file:read("*a")
if os.getenv("HTTP_JSON") then
  wrk.headers["Inference-Header-Content-Length"] = os.getenv("HTTP_JSON")
end
done = function(summary, latency)
  local bad = summary.errors.status + summary.errors.read + summary.errors.timeout
  print(string.format("FIGURES %f %f %f %f %d", summary.requests / summary.duration * 1e6,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), bad))
end
"""


def alone():
    """A scheduling group of its own with a raised weight, where that is allowed, for this
    process and all that it starts."""
    with contextlib.suppress(OSError):
        os.setsid()
        pathlib.Path("/proc/self/autogroup").write_text("-18")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(url):
    with contextlib.suppress(OSError):
        return urllib.request.urlopen(url, timeout=1).status == 200
    return False


def resident_mb(pid):
    """The proportional set of a process and what it started."""
    total = 0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if int(folder.name) == pid or parent == pid:
                for line in (folder / "smaps_rollup").read_text().splitlines():
                    total += int(line.split()[1]) if line.startswith("Pss:") else 0
    return total / 1024


class Server:
    """A process that answers on a gRPC and an HTTP port."""

    def __init__(self, command, ready, grpc=None, http=None, env=None):
        self.grpc, self.http = grpc, http
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            [str(c) for c in command],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=False,
        )
        while not ready(self):
            assert self.process.poll() is None, f"{command[0]} ended"
            time.sleep(0.005)
        self.start = time.perf_counter() - begin

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def headrace(folder, *flags):
    grpc, http = free_port(), free_port()
    return Server(
        [
            PROGRAM,
            f"--port={grpc}",
            f"--rest_api_port={http}",
            f"--model_config_file={folder / 'models.txt'}",
            *flags,
        ],
        lambda s: answers(f"http://127.0.0.1:{http}/v2/health/ready"),
        grpc,
        http,
    )


def floor(kind, answer):
    port = free_port()

    def there(_):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    return Server([TOOL, f"{kind}-floor", port, answer], there, port, port)


# Triton's models, in Python: the network by NumPy, and one that answers a number.
TRITON_MODELS = {
    "mlp": """
        for i, (w, b) in enumerate(self.layers):
            x = x @ w + b
            if i + 1 < len(self.layers):
                x = np.maximum(x, 0)
        return x
""",
    "first": """
        return x[:1, :1]
""",
}
TRITON_CODE = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        with np.load("{weights}") as f:
            self.layers = [(f[f"w{{i}}"], f[f"b{{i}}"]) for i in range(len(f.files) // 2)]

    def answer(self, x):{answer}
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("y", self.answer(x))]))
        return answers
"""


def triton(python, folder):
    """The server from the wheel, with the models above."""
    site = pathlib.Path(
        subprocess.check_output(
            [python, "-c", "import pytriton; print(pytriton.__path__[0])"], text=True
        ).strip()
    )
    home = site / "tritonserver"
    backends = folder / "backends"
    if not backends.exists():
        shutil.copytree(home / "backends", backends)
        shutil.copy(
            home / "python_backend_stubs/3.11/triton_python_backend_stub",
            backends / "python",
        )
    for name, answer in TRITON_MODELS.items():
        model = folder / "triton" / name
        (model / "1").mkdir(parents=True, exist_ok=True)
        code = TRITON_CODE.format(weights=folder / "mlp.npz", answer=answer)
        (model / "1/model.py").write_text(code)
        (model / "config.pbtxt").write_text(
            f'name: "{name}" backend: "python" max_batch_size: 0\n'
            'input { name: "x" data_type: TYPE_FP32 dims: [-1, -1] }\n'
            'output { name: "y" data_type: TYPE_FP32 dims: [-1, -1] }\n'
        )
    grpc, http, metrics = free_port(), free_port(), free_port()
    env = {
        **os.environ,
        "PYTHONPATH": str(site.parent),
        "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(next(site.parent.glob("*pytriton.libs"))),
    }
    return Server(
        [
            home / "bin/tritonserver",
            f"--model-repository={folder / 'triton'}",
            f"--backend-directory={backends}",
            f"--grpc-port={grpc}",
            f"--http-port={http}",
            f"--metrics-port={metrics}",
        ],
        lambda s: answers(f"http://127.0.0.1:{http}/v2/health/ready"),
        grpc,
        http,
        env,
    )


# --- Models and requests.


def save_network(tf, folder, sizes, weights_file=None):
    """A SavedModel of dense layers with relu between them, input x, output y."""
    random = np.random.default_rng(0)
    layers = [
        (
            random.standard_normal((m, n)).astype(np.float32) / m**0.5,
            np.zeros(n, np.float32),
        )
        for m, n in itertools.pairwise(sizes)
    ]
    module = tf.Module()
    module.layers = [(tf.Variable(w), tf.Variable(b)) for w, b in layers]

    @tf.function(
        input_signature=[tf.TensorSpec([None, sizes[0]], tf.float32, name="x")]
    )
    def serve(x):
        for i, (w, b) in enumerate(module.layers):
            x = x @ w + b
            if i + 1 < len(layers):
                x = tf.nn.relu(x)
        return {"y": x}

    module.serve = serve
    tf.saved_model.save(module, str(folder), signatures=serve)
    if weights_file:
        flat = {f"w{i}": w for i, (w, _) in enumerate(layers)}
        np.savez(
            weights_file, **flat, **{f"b{i}": b for i, (_, b) in enumerate(layers)}
        )


def save_identity(tf, folder):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def serve(x):
        return {"y": x[:1, :1]}

    module.serve = serve
    tf.saved_model.save(module, str(folder), signatures=serve)


def predict_bytes(model, array):
    from headrace.framework.support import protos

    request = protos.message("tensorflow.serving.PredictRequest")()
    request.model_spec.name = model
    tensor = request.inputs["x"]
    tensor.dtype = 1
    for n in array.shape:
        tensor.tensor_shape.dim.add().size = n
    tensor.tensor_content = array.tobytes()
    return request.SerializeToString()


def infer_bytes(model, array):
    from headrace.framework.support import protos

    request = protos.message("inference.ModelInferRequest")()
    request.model_name = model
    tensor = request.inputs.add()
    tensor.name, tensor.datatype = "x", "FP32"
    tensor.shape.extend(array.shape)
    request.raw_input_contents.append(array.tobytes())
    return request.SerializeToString()


def binary_body(array):
    """An HTTP body of the Open Inference Protocol with bytes, and the JSON's length."""
    head = {
        "inputs": [
            {
                "name": "x",
                "shape": list(array.shape),
                "datatype": "FP32",
                "parameters": {"binary_data_size": array.nbytes},
            }
        ],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    }
    head = json.dumps(head).encode()
    return head + array.tobytes(), len(head)


class Work:
    """Files of requests, servers, and the way they are asked."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def call(
        self, server, method, request, connections, rate=None, seconds=None, by="ask"
    ):
        """(calls a second, p50, p99, p99.9) over gRPC."""
        command = [TOOL, by, f"127.0.0.1:{server.grpc}", method, str(request)]
        command += [str(connections), str(seconds or self.options.seconds)]
        command += [str(rate)] if rate else []
        return tuple(map(float, subprocess.check_output(command, text=True).split()))

    def post(self, server, path, body, connections, json_bytes=None):
        """The same over HTTP."""
        env = {**os.environ, "HTTP_PATH": path, "HTTP_BODY": str(body)}
        if json_bytes is not None:
            env["HTTP_JSON"] = str(json_bytes)
        command = ["wrk", "-t1", f"-c{connections}", f"-d{self.options.seconds}s"]
        command += ["-s", str(self.folder / "load.lua")]
        text = subprocess.check_output(
            [*command, f"http://127.0.0.1:{server.http}"], text=True, env=env
        )
        figures = text.partition("FIGURES ")[2].split()
        assert int(figures[4]) == 0, text
        return tuple(map(float, figures[:4]))

    def turns(self, title, ours, others):
        """Rounds in which all are asked; others are {name: (aim for the rate, ask)}."""
        rows = []
        for _ in range(self.options.rounds):
            rows.append([ours(), *(ask() for _, ask in others.values())])
        rates = np.array([[r[0] for r in row] for row in rows])
        medians = np.array([[r[1] for r in row] for row in rows])
        own = np.median(rates[:, 0]), np.median(medians[:, 0])
        print(f"{title}: {own[0]:.0f} a second, p50 {own[1]:.0f} us")
        for i, (name, (aim, _)) in enumerate(others.items(), 1):
            print(
                f"  {name}: {np.median(rates[:, i]):.0f} a second, p50 "
                f"{np.median(medians[:, i]):.0f} us; ours to it: rate "
                f"{np.median(rates[:, 0] / rates[:, i]):.2f} (aim {aim}), p50 "
                f"{np.median(medians[:, 0] / medians[:, i]):.2f}",
                flush=True,
            )


def small_row():
    return np.linspace(0, 3.1, 32, dtype=np.float32).reshape(1, 32)


def part_grpc(work, ours, rival):
    predict = work.file("predict.bin", predict_bytes("mlp", small_row()))
    infer = work.file("infer.bin", infer_bytes("mlp", small_row()))
    bare = floor("grpc", predict)
    for connections in (1, 8):
        others = {
            "floor": ("0.7", lambda c=connections: work.call(bare, PREDICT, predict, c))
        }
        if rival:
            others["Triton"] = (
                "2" if connections == 1 else "2.5",
                lambda c=connections: work.call(rival, INFER, infer, c),
            )
        work.turns(
            f"gRPC Predict, {connections} connections",
            lambda c=connections: work.call(ours, PREDICT, predict, c),
            others,
        )
    bare.stop()


def part_rest(work, ours, rival):
    rows = json.dumps({"instances": small_row().tolist()}).encode()
    body = work.file("predict.json", rows)
    binary, head = binary_body(small_row())
    infer = work.file("infer.json", binary)
    bare = floor("http", work.file("constant.json", b'{"predictions": [[0.5]]}'))
    for connections in (1, 8):
        others = {
            "floor": ("0.5", lambda c=connections: work.post(bare, "/", body, c)),
        }
        if rival:
            others["Triton"] = (
                "3",
                lambda c=connections: work.post(
                    rival, "/v2/models/mlp/infer", infer, c, head
                ),
            )
        work.turns(
            f"REST predict, {connections} connections",
            lambda c=connections: work.post(ours, "/v1/models/mlp:predict", body, c),
            others,
        )
    bare.stop()


def part_bytes(work, ours, rival):
    big = np.ones((150, 1000), np.float32)
    content, head = binary_body(big)
    body = work.file("big.bin", content)
    bare = floor("http", work.file("constant.bin", b"{}"))
    work.turns(
        "600 KB of binary tensor over HTTP",
        lambda: work.post(ours, "/v2/models/first/infer", body, 1, head),
        {"floor": ("0.7", lambda: work.post(bare, "/", body, 1))},
    )
    bare.stop()


def part_json(work, ours, rival):
    values = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
    rows = json.dumps({"instances": [values.tolist()]}).encode()
    body = work.file("floats.json", rows)
    others = {}
    if rival:
        shape = {"name": "x", "shape": [1, 100_000], "datatype": "FP32"}
        infer = json.dumps({"inputs": [{**shape, "data": values.tolist()}]}).encode()
        path = work.file("floats_infer.json", infer)
        others["Triton"] = (
            "3",
            lambda: work.post(rival, "/v2/models/first/infer", path, 1),
        )
    work.turns(
        "JSON of 100,000 floats",
        lambda: work.post(ours, "/v1/models/first:predict", body, 1),
        others,
    )


def part_batches(work, ours, rival):
    """64 connections, so that one batch of 32 fills while the other one runs. The load
    is one thread without gRPC, whose client takes as much as its server; what it and the
    transport take of the processors the bare server tells."""
    import headrace as tf

    batch, connections = 32, 64
    (work.folder / "batching.txt").write_text(
        f"max_batch_size {{ value: {batch} }} batch_timeout_micros {{ value: 2000 }}\n"
        "num_batch_threads { value: 2 } max_enqueued_batches { value: 100 }\n"
    )
    flags = [f"--batching_parameters_file={work.folder}/batching.txt"]
    server = headrace(work.folder, "--enable_batching", *flags)
    request = work.file("wide.bin", predict_bytes("wide", small_row()))
    bare = floor("grpc", request)
    model = tf.saved_model.load(str(work.folder / "wide/1")).signatures[
        "serving_default"
    ]
    x = tf.constant(np.ones((batch, 32), np.float32))

    def press(what):
        return work.call(what, PREDICT, request, connections, by="press")

    def engine():
        model(x=x)
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < work.options.seconds:
            model(x=x)
            count += 1
        took = (time.perf_counter() - begin) / count
        return batch / took, took * 1e6, 0, 0

    def both():
        """What engine and transport would come to, one after the other."""
        calls = press(bare)[0]
        rate = 1 / (1 / calls + 1 / engine()[0])
        return rate, batch / rate * 1e6, 0, 0

    work.turns(
        f"batches of {batch}, {connections} connections",
        lambda: press(server),
        {"engine alone": ("0.9", engine), "engine behind the floor": ("1", both)},
    )
    bare.stop()
    server.stop()


def part_start(work, ours, rival):
    for name, make in (
        ("headrace", lambda: headrace(work.only_mlp)),
        ("Triton", lambda: triton(work.options.triton, work.folder)),
    ):
        if name == "Triton" and not rival:
            continue
        starts, sizes = [], []
        for _ in range(3):
            server = make()
            starts.append(server.start)
            sizes.append(resident_mb(server.process.pid))
            server.stop()
        print(
            f"start, {name}: ready in {np.median(starts):.3f} s, "
            f"{np.median(sizes):.0f} MB (aims of ours to Triton's: 0.2, 0.4)",
            flush=True,
        )


def part_tail(work, ours, rival):
    """A model of 500 MB is loaded and unloaded beside the one that is asked at a quarter
    of its top rate, by turns with rest, and with the floor's own tail."""
    big = work.folder / "big/1"
    big.parent.mkdir()
    import headrace as tf

    save_network(tf, big, [4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000])
    load = f"http://127.0.0.1:{ours.http}/v2/repository/models/big"

    def ask(what):
        urllib.request.urlopen(
            urllib.request.Request(load + what, method="POST")
        ).read()

    urllib.request.urlopen(
        urllib.request.Request(
            f"http://127.0.0.1:{ours.http}/v1/config",
            data=config_of(work.folder, *MODELS, "big").encode(),
            headers={"Content-Type": "text/plain"},
        )
    ).read()
    for name, columns in (("five", 2048), ("mlp", 32)):
        row = np.ones((1, columns), np.float32)
        request = work.file(f"{name}.bin", predict_bytes(name, row))
        top, rest_p50, *_ = work.call(ours, PREDICT, request, 1)
        bare = floor("grpc", request)
        bare_top = work.call(bare, PREDICT, request, 1)[0]
        rows = []
        while len(rows) < work.options.rounds:
            quiet = work.call(ours, PREDICT, request, 2, top / 4, 4)
            quiet_floor = work.call(bare, PREDICT, request, 2, bare_top / 4, 4)
            helper = subprocess.Popen(
                [sys.executable, __file__, "--reload", load], stdout=subprocess.DEVNULL
            )
            busy = work.call(ours, PREDICT, request, 2, top / 4, 4)
            busy_floor = work.call(bare, PREDICT, request, 2, bare_top / 4, 4)
            helper.terminate()
            helper.wait()
            rows.append((quiet[3], busy[3], quiet_floor[3], busy_floor[3]))
        bare.stop()
        rows = np.array(rows)
        calm = rows[rows[:, 3] <= 2 * rows[:, 2]]
        used = calm if len(calm) else rows
        print(
            f"tail, {name}: p50 at rest {rest_p50:.0f} us; p99.9 at rest "
            f"{np.median(used[:, 0]):.0f}, beside loads {np.median(used[:, 1]):.0f} us "
            f"({len(calm)} of {len(rows)} rounds in which the floor's own did not double); "
            f"to p50 at rest {np.median(used[:, 1]) / rest_p50:.2f}, to p99.9 at rest "
            f"{np.median(used[:, 1] / used[:, 0]):.2f}; the floor's p99.9 beside loads to its "
            f"own at rest {np.median(rows[:, 3] / rows[:, 2]):.2f}",
            flush=True,
        )


def reload_for_ever(url):
    while True:
        for what in ("/unload", "/load"):
            request = urllib.request.Request(url + what, method="POST")
            urllib.request.urlopen(request).read()


def config_of(folder, *names):
    """The text of a server's config of models."""
    rows = "".join(
        f'  config {{ name: "{name}" base_path: "{folder / name}" '
        'model_platform: "tensorflow" }\n'
        for name in names
    )
    return f"model_config_list {{\n{rows}}}\n"


PARTS = {
    "grpc": part_grpc,
    "rest": part_rest,
    "bytes": part_bytes,
    "json": part_json,
    "batches": part_batches,
    "start": part_start,
    "tail": part_tail,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--triton", metavar="PYTHON")
    parser.add_argument("--reload", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reload:
        reload_for_ever(options.reload)
    alone()
    import headrace as tf

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        work = Work(folder, options)
        save_network(tf, folder / "mlp/1", [32, 64, 64, 8], folder / "mlp.npz")
        save_network(tf, folder / "five/1", [2048, 2048, 2048, 2048, 2048])
        save_network(tf, folder / "wide/1", [32, 2048, 2048, 2048])
        save_identity(tf, folder / "first/1")
        work.only_mlp = folder / "one"
        work.only_mlp.mkdir()
        (work.only_mlp / "models.txt").write_text(config_of(folder, "mlp"))
        (folder / "models.txt").write_text(config_of(folder, *MODELS))
        (folder / "load.lua").write_text(WRK)
        ours = headrace(folder)
        rival = triton(options.triton, folder) if options.triton else None
        try:
            for part, run in PARTS.items():
                if not options.words or part in options.words:
                    run(work, ours, rival)
        finally:
            for server in filter(None, (ours, rival)):
                server.stop()


if __name__ == "__main__":
    main()
