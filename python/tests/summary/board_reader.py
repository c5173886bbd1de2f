"""Asks TensorBoard for each kind of data: board_reader.py LOGDIR prints its answers as
JSON, {what was asked: answer}. Runs where the tensorboard package is."""

import json
import os
import sys
import urllib.error
import urllib.request

from google.protobuf import text_format
from tensorboard import default, program
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

SINGLE = {
    "loss": "scalars/scalars?run=values&tag=loss",
    "old": "scalars/scalars?run=session&tag=old",
    "histogram": "histograms/histograms?run=values&tag=spread",
    "old histogram": "histograms/histograms?run=session&tag=old_spread",
    "distribution": "distributions/distributions?run=values&tag=spread",
    "images": "images/images?run=values&tag=picture&sample=0",
    "sounds": "audio/audio?run=values&tag=sound&sample=0",
    "text": "text/text?run=values&tag=note",
    "curve": "pr_curves/pr_curves?run=pr&tag=curve%2Fpr_curves",
    "graphs": "graphs/info",
}
GRAPHS = {
    "session graph": "run=session&conceptual=false",
    "function graph": "run=functions&conceptual=false",
    "traced graph": "run=functions&tag=product&conceptual=false",
    "model": "run=keras%2Ftrain&tag=keras&conceptual=true",
    "step graph": "run=keras%2Ftrain&conceptual=false",
}


def launched(logdir):
    """A function that asks the TensorBoard of a folder."""
    board = program.TensorBoard(plugins=default.get_plugins())
    board.configure(
        argv=[None, "--logdir", logdir, "--port", "0", "--load_fast", "false"]
    )
    url = board.launch()

    def ask(path, data=None):
        kind = {"Content-Type": "application/json"}
        question = urllib.request.Request(f"{url}data/{path}", data, kind)
        try:
            with urllib.request.urlopen(question, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{path}: {e} {e.read()}") from e

    return ask


def main():
    ask = launched(sys.argv[1])
    found = {"plugins": json.loads(ask("plugins_listing"))}
    found["runs"] = json.loads(ask("runs"))
    for name, path in SINGLE.items():
        found[name] = json.loads(ask(f"plugin/{path}"))
    for name, path in GRAPHS.items():
        found[name] = ask(f"plugin/graphs/graph?{path}").decode()
    query = found["images"][0]["query"]
    picture = ask(f"plugin/images/individualImage?{query}")
    found["picture"] = picture[:4].decode("latin-1")
    question = {
        "experimentName": "",
        "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_RUNNING"],
        "colParams": [
            {"hparam": "units"},
            {"metric": {"group": "", "tag": "accuracy"}},
        ],
        "startIndex": 0,
        "sliceSize": 10,
    }
    found["hparams"] = json.loads(
        ask("plugin/hparams/session_groups", json.dumps(question).encode())
    )
    # (The projector's page itself reads checkpoints by TensorFlow alone.)
    with open(os.path.join(sys.argv[1], "keras", "projector_config.pbtxt")) as file:
        config = text_format.Parse(file.read(), ProjectorConfig())
    found["embeddings"] = [[e.tensor_name, e.metadata_path] for e in config.embeddings]
    print("ANSWERS" + json.dumps(found))


main()
