"""What the client answers with."""

import dataclasses


class Prediction(dict):
    """Outputs of a model by name, NumPy arrays.

    Attributes:
      model: the model's name.
      version: the version that answered, an int; None where the protocol does not tell
        (REST of version 1).
      signature: the signature that answered; None where the protocol does not tell.
    """

    def __init__(self, outputs, model, version=None, signature=None):
        super().__init__(outputs)
        self.model, self.version, self.signature = model, version, signature


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """An input or output: `dtype` as a NumPy dtype (None: no such type), `shape` a
    tuple with None for sizes that vary, or None of unknown rank."""

    dtype: object
    shape: tuple | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """A signature of a model: {name: TensorInfo} of its inputs and outputs."""

    inputs: dict
    outputs: dict
    method_name: str = ""


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """A version of a model: `state` is START, LOADING, AVAILABLE, UNLOADING or END (of
    the Open Inference Protocol: READY, LOADING, UNLOADING or UNAVAILABLE), `code` 0 or
    the number of the status code of what failed, `message` its text."""

    version: int
    state: str
    code: int = 0
    message: str = ""
