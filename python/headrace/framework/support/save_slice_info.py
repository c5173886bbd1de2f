"""tf.Variable.SaveSliceInfo: which part of a larger variable one is."""

from headrace.framework.support import protos


def _integer(what, text):
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"Spec string {what}. Found '{text}', which is not an integer."
        ) from None


class SaveSliceInfo:
    """Which part of a whole variable a part is: how checkpoints keep it."""

    def __init__(
        self,
        full_name=None,
        full_shape=None,
        var_offset=None,
        var_shape=None,
        save_slice_info_def=None,
        import_scope=None,
    ):
        if save_slice_info_def is not None:
            full_name = save_slice_info_def.full_name
            if import_scope:
                full_name = f"{import_scope}/{full_name}"
            full_shape = save_slice_info_def.full_shape
            var_offset = save_slice_info_def.var_offset
            var_shape = save_slice_info_def.var_shape
        self.full_name = full_name
        self.full_shape = list(full_shape)
        self.var_offset, self.var_shape = list(var_offset), list(var_shape)

    @property
    def spec(self):
        """As checkpoints write it: the full shape, then offset and size by axis."""
        sizes = " ".join(str(d) for d in self.full_shape)
        parts = zip(self.var_offset, self.var_shape)
        return sizes + " " + ":".join(f"{o},{n}" for o, n in parts)

    @classmethod
    def from_spec(cls, spec):
        """What a `spec` says; ValueError if it is none."""
        if not spec:
            return cls(full_shape=(), var_offset=(), var_shape=())
        *sizes, parts = spec.split(" ")
        if not sizes:
            raise ValueError(
                "Spec string must contain space-separated full_shape info."
            )
        full_shape = [
            _integer("full_shape must be a sequence of integers", n) for n in sizes
        ]
        offsets, shapes = [], []
        for part in parts.split(":"):
            offset, comma, size = part.partition(",")
            if not comma:
                raise ValueError(
                    "Spec string must contain comma-separated pairs of offsets and "
                    "shapes."
                )
            offsets.append(_integer("var_offset must be an integer", offset))
            shapes.append(_integer("var_shape must be an integer", size))
        return cls(full_shape=full_shape, var_offset=offsets, var_shape=shapes)

    def renamed(self, full_name):
        """The same part of another variable."""
        return SaveSliceInfo(
            full_name, self.full_shape, self.var_offset, self.var_shape
        )

    def to_proto(self, export_scope=None):
        name = self.full_name
        if export_scope and name.startswith(export_scope + "/"):
            name = name[len(export_scope) + 1 :]
        return protos.SaveSliceInfoDef(
            full_name=name,
            full_shape=self.full_shape,
            var_offset=self.var_offset,
            var_shape=self.var_shape,
        )
