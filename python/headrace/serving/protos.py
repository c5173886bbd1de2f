"""The messages of the protocols: protos.PredictRequest, protos.ModelInferRequest, or
by full name, protos.message("tensorflow.serving.PredictRequest").

They live in a descriptor pool of their own, so that tensorflow-serving-api and
tritonclient can be imported beside them. `descriptors()` gives them to generators of
other languages.
"""

from headrace import _protos
from headrace._protos import message


def descriptors():
    """The bytes of a google.protobuf.FileDescriptorSet with all the files."""
    with open(_protos.FILE, "rb") as f:
        return f.read()


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    for package in ("tensorflow.serving.", "inference.", "tensorflow."):
        try:
            made = globals()[name] = message(package + name)
        except KeyError:
            continue
        return made
    raise AttributeError(f"there is no proto message '{name}'")
