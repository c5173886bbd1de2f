"""tf.train.Checkpoint."""

import os
import weakref

from headrace._load import _headrace
from headrace.framework import errors
from headrace.framework.trackable import AutoTrackable, is_trackable, node_of
from headrace.train import load_status


class CheckpointOptions:
    """How checkpoints are written and read."""

    def __init__(
        self,
        experimental_io_device=None,
        experimental_enable_async_checkpoint=False,
        experimental_write_callbacks=None,
        enable_async=False,
        experimental_skip_slot_variables=False,
        experimental_sharding_callback=None,
    ):
        for name, value in (
            (
                "experimental_enable_async_checkpoint",
                experimental_enable_async_checkpoint,
            ),
            ("enable_async", enable_async),
            ("experimental_skip_slot_variables", experimental_skip_slot_variables),
            ("experimental_sharding_callback", experimental_sharding_callback),
        ):
            if value:
                raise errors.UnimplementedError(
                    None, None, f"CheckpointOptions: {name} is not supported"
                )
        self.experimental_io_device = experimental_io_device  # all files are local
        self.experimental_write_callbacks = experimental_write_callbacks

    def _after_write(self, path):
        for callback in self.experimental_write_callbacks or ():
            if callback.__code__.co_argcount:
                callback(path)
            else:
                callback()


def _assert_trackable(value, name):
    if not is_trackable(value):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object (an object "
            f"derived from `Trackable`), got {value}. If you believe this object should be "
            "trackable (i.e. it is part of the TensorFlow Python API and manages state), "
            "please open an issue."
        )


def _assert_eager(method):
    if not _headrace.is_eager():
        raise errors.UnimplementedError(
            None, None, f"Checkpoint.{method} inside a graph or traced function"
        )


class Checkpoint(AutoTrackable):
    """Saves and restores the values of the objects that are its attributes."""

    def __init__(self, root=None, **kwargs):
        self._save_counter = None
        set_here = object.__setattr__
        set_here(self, "_attached", [])  # children beside those of root
        if isinstance(root, weakref.ref):
            root = root()
        if root is not None:
            _assert_trackable(root, "root")
        set_here(self, "_root", root)
        for name, value in sorted(kwargs.items()):
            if isinstance(value, weakref.ref):
                value = value()
            setattr(self, name, value)
            value = getattr(self, name)
            _assert_trackable(value, name)
            if root is None:
                continue
            existing = node_of(root).child(name)
            if existing is None:
                self._attached.append((name, value))
            elif existing.owner() is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if "
                    f"root.{name} already exists."
                )

    @property
    def root(self):
        return self if self._root is None else self._root

    @property
    def save_counter(self):
        """How often this was saved: an int64 variable, restored with the rest."""
        if self._save_counter is None:
            self._make_save_counter()
        return self._save_counter

    def _make_save_counter(self):
        from headrace.framework import variables

        set_here = object.__setattr__
        if self._root is not None:
            existing = node_of(self._root).child("save_counter")
            if existing is not None:
                set_here(self, "_save_counter", existing.owner())
                return
        counter = variables.Variable(
            0, trainable=False, name="save_counter", dtype="int64"
        )
        # It must live before a restored value that waits for it arrives.
        set_here(self, "_save_counter", counter)
        if self._root is None:
            node_of(self).attach("save_counter", node_of(counter))
        else:
            self._attached.append(("save_counter", counter))

    def _trackable_items(self):
        items = [i for i in super()._trackable_items() if i[0][0] != "_"]
        if self._save_counter is not None and self._root is None:
            items.append(("save_counter", self._save_counter))
        return items

    def _extra_nodes(self):
        return [(name, node_of(value)) for name, value in self._attached]

    def write(self, file_prefix, options=None):
        """Writes the values to FILE_PREFIX.index and .data-*; returns the prefix."""
        _assert_eager("write")
        path = os.fspath(file_prefix)
        _headrace.save_graph(node_of(self.root), self._extra_nodes(), path)
        if options is not None:
            options._after_write(path)
        return path

    def save(self, file_prefix, options=None):
        """Writes FILE_PREFIX-N, N counting up, and makes it the folder's newest."""
        _assert_eager("save")
        prefix = os.fspath(file_prefix)
        self.save_counter.assign_add(1)
        path = self.write(f"{prefix}-{self.save_counter.numpy()}")
        _headrace.write_checkpoint_state(
            os.path.dirname(path), path, [path], "checkpoint"
        )
        if options is not None:
            options._after_write(path)
        return path

    def read(self, save_path, options=None):
        """Gives the objects the values of a checkpoint that `write` wrote."""
        _assert_eager("read")
        path = os.fspath(save_path)
        restoration = _headrace.restore_graph(
            path, node_of(self.root), self._extra_nodes()
        )
        return load_status.of(restoration, self.root)

    def restore(self, save_path, options=None):
        """Gives the objects the values of a checkpoint; those that are attached later
        get theirs then. The result says what was matched."""
        if save_path is None:
            return load_status.InitializationOnlyStatus(self.root)
        # The counter exists from here on and is restored with the rest.
        _assert_eager("restore")
        self.save_counter  # noqa: B018
        try:
            return self.read(save_path, options)
        except errors.NotFoundError as e:
            raise errors.NotFoundError(
                None,
                None,
                f"Error when restoring from checkpoint or SavedModel at {save_path}: "
                f"{e.message}\nPlease double-check that the path is correct. You may be "
                "missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').",
            ) from None

    def sync(self):
        """Waits for writes that are still under way: there are none."""
