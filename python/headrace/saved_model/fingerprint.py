"""tf.saved_model.experimental.Fingerprint: what tells models apart."""

import os

from headrace._load import _headrace
from headrace.framework.support import protos, signatures

_PARTS = (
    "graph_def_program_hash",
    "signature_def_hash",
    "saved_object_graph_hash",
    "checkpoint_hash",
)
_HASHES = ("saved_model_checksum", *_PARTS)


class Fingerprint:
    """Hashes of a SavedModel: of all of its file, and of its parts.

    The checksum differs from save to save; the parts' hashes are the same where the
    program, its signatures, its objects and its values are.
    """

    __init__ = signatures.keeps("=None, ".join((*_HASHES, "version=None")))

    @classmethod
    def from_proto(cls, proto):
        """Of a FingerprintDef; ValueError for anything else."""
        try:
            hashes = [getattr(proto, name) for name in _HASHES]
            return cls(*hashes, proto.version)
        except AttributeError as e:
            raise ValueError(
                f"Given proto could not be deserialized as fingerprint.{e}"
            ) from None

    def singleprint(self):
        """The parts' hashes as one text; ValueError where one is missing."""
        hashes = {name: getattr(self, name) for name in _PARTS}
        if not all(isinstance(value, int) for value in hashes.values()):
            shown = ", ".join(f"{name}: {value}" for name, value in hashes.items())
            raise ValueError(
                "Encounted invalid fingerprint values when constructing singleprint: "
                + shown
            )
        return "/".join(map(str, hashes.values()))

    def _hashes(self):
        return [getattr(self, name) for name in _HASHES]

    def __eq__(self, other):
        return isinstance(other, Fingerprint) and self._hashes() == other._hashes()

    __hash__ = None

    def __str__(self):
        rows = "".join(f"\n  {name}: {getattr(self, name)}" for name in _HASHES)
        return "SavedModel Fingerprint" + rows

    def __repr__(self):
        return f"Fingerprint({', '.join(map(str, self._hashes()))})"


def read_fingerprint(export_dir):
    """The Fingerprint of the model in a folder; FileNotFoundError where the folder has
    none, RuntimeError where it is damaged."""
    found = _headrace.read_fingerprint(os.fspath(export_dir))
    return Fingerprint.from_proto(protos.FingerprintDef.FromString(found))
