"""tf.train.Checkpoint."""

import os
import weakref

from headrace._load import _headrace
from headrace.context import errors, sessions, stack
from headrace.framework import variables
from headrace.framework.execution import inside_function
from headrace.framework.trackable import AutoTrackable, is_trackable, node_of, owner_of
from headrace.train import (
    checkpoint_options,
    graph_checkpoint,
    load_status,
    traced_write,
)
from headrace.train.async_write import AsyncWrites
from headrace.train.checkpoint_options import CheckpointOptions

_DEFAULT = CheckpointOptions()


def _assert_trackable(value, name):
    if not is_trackable(value):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object (an object "
            f"derived from `Trackable`), got {value}. If you believe this object should be "
            "trackable (i.e. it is part of the TensorFlow Python API and manages state), "
            "please open an issue."
        )


def _make_folder_of(path):
    """The folder, made where it is not there."""
    folder = os.path.dirname(path)
    if folder:
        _headrace.make_folder(folder)
    return folder


def _in_plain_graph(method):
    """False where operations run at once, True in a graph that sessions run."""
    if _headrace.is_eager():
        return False
    if stack.plain_graph() is None:
        raise errors.UnimplementedError._of(
            f"Checkpoint.{method} inside a traced function"
        )
    return True


class Checkpoint(AutoTrackable):
    """Saves and restores the values of the objects that are its attributes."""

    _save_counter = None
    _attached = ()
    _root_of = staticmethod(lambda: None)

    def __init__(self, root=None, **kwargs):
        self._save_counter = None
        set_here = object.__setattr__
        # Children beside those of root; None is root itself, which files list too.
        set_here(self, "_attached", [])
        set_here(self, "_writes", AsyncWrites())
        set_here(self, "_session_writer", None)  # of a plain graph
        # A weak reference stays one: it does not keep the root.
        held = None if isinstance(root, weakref.ref) else root
        set_here(self, "_root_of", (lambda: held) if held is root else root)
        root = self._root
        if root is not None:
            _assert_trackable(root, "root")
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
            elif owner_of(existing) is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if "
                    f"root.{name} already exists."
                )
        if root is not None and node_of(root).child("root") is None:
            self._attached.append(("root", None))

    @property
    def _root(self):
        return self._root_of()

    @property
    def root(self):
        """`root` of the constructor, or what was assigned."""
        found = self.__dict__.get("root", self._root)
        if found is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'root'"
            )
        return found

    @root.setter
    def root(self, value):
        self.__dict__["root"] = value

    @property
    def _start(self):
        """The object that saving starts from: `root` of the constructor,
        else this one."""
        return self if self._root is None else self._root

    @property
    def save_counter(self):
        """How often this was saved: an int64 variable, restored with the rest."""
        if self._save_counter is None:
            self._make_save_counter()
        return self._save_counter

    def _make_save_counter(self):
        set_here = object.__setattr__
        if self._root is not None:
            existing = node_of(self._root).child("save_counter")
            if existing is not None:
                set_here(self, "_save_counter", owner_of(existing))
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
        return [
            (name, node_of(self._root if value is None else value))
            for name, value in self._attached
        ]

    def _gather(self):
        return _headrace.gather_graph(node_of(self._start), self._extra_nodes())

    def _write(self, path, options, after=None):
        """Writes to `path`, then calls after(path) and the options' callbacks, here
        or on the thread that writes."""
        options = options or _DEFAULT
        self._writes.wait()
        values = self._gather()
        callback = options.experimental_sharding_callback

        def write():
            checkpoint_options.write(values, path, callback)
            if after is not None:
                after(path)
            options._after_write(path)

        if options.enable_async:
            self._writes.start(write)
        else:
            write()

    def _write_by_session(self, path, session, options=None):
        if self._session_writer is None:
            writer = graph_checkpoint.SessionWriter()
            object.__setattr__(self, "_session_writer", writer)
        session = sessions.of_checkpoint(session)
        options = options or _DEFAULT
        sharding = options.experimental_sharding_callback
        self._session_writer.write(self._gather(), path, session, sharding)
        return path

    def _frozen_saveables(self):
        """What a Saver needs to save by objects what is there now."""
        return graph_checkpoint.saveables(self._gather())

    def write(self, file_prefix, options=None, session=None):
        """Writes the values to FILE_PREFIX.index and .data-*; returns the prefix.
        `session` is what runs the graph that the objects belong to."""
        if not _headrace.is_eager():
            if not isinstance(file_prefix, _headrace.Tensor):
                _make_folder_of(os.fspath(file_prefix))
            if stack.plain_graph() is None:
                return traced_write.write(self._gather, file_prefix)
            path = self._write_by_session(os.fspath(file_prefix), session, options)
            (options or _DEFAULT)._after_write(path)
            return path
        path = os.fspath(file_prefix)
        self._write(path, options)
        return path

    def _count_by_session(self, session):
        session = sessions.of_checkpoint(session)
        with session.graph.as_default():
            is_new = self._save_counter is None
            counter = self.save_counter
            if is_new:
                session.run(counter.initializer)
            if "_count" not in self.__dict__:
                object.__setattr__(self, "_count", counter.assign_add(1))
        return int(session.run(self._count))

    def save(self, file_prefix, options=None, session=None):
        """Writes FILE_PREFIX-N, N counting up, and makes it the folder's newest."""
        in_graph = not _headrace.is_eager()
        if in_graph and inside_function():
            raise NotImplementedError(
                "Calling tf.train.Checkpoint.save() from a function is not supported, "
                "as save() modifies saving metadata in ways not supported by "
                "TensorFlow Operations. Consider using tf.train.Checkpoint.write(), a "
                "lower-level API which does not update metadata. "
                "tf.train.latest_checkpoint and related APIs will not see this "
                "checkpoint."
            )
        prefix = os.fspath(file_prefix)
        folder = _make_folder_of(prefix)
        if in_graph:
            path = f"{prefix}-{self._count_by_session(session)}"
            self._write_by_session(path, session, options)
            _headrace.write_checkpoint_state(folder, path, [path], "checkpoint")
            (options or _DEFAULT)._after_write(path)
            return path
        self.save_counter.assign_add(1)
        path = f"{prefix}-{int(self.save_counter)}"

        def record(path):
            _headrace.write_checkpoint_state(folder, path, [path], "checkpoint")

        self._write(path, options, record)
        return path

    def read(self, save_path, options=None):
        """Gives the objects the values of a checkpoint that `write` wrote."""
        if save_path is None:
            return load_status.InitializationOnlyStatus(self._start)
        operations = None
        in_graph = _in_plain_graph("read")
        self._writes.wait()
        path = os.fspath(save_path)
        if in_graph:
            operations = graph_checkpoint.begin(path)
        restoration = _headrace.restore_graph(
            path,
            node_of(self._start),
            self._extra_nodes(),
            bool((options or _DEFAULT).experimental_skip_slot_variables),
        )
        return load_status.of(restoration, self._start, operations)

    def restore(self, save_path, options=None):
        """Gives the objects the values of a checkpoint; those that are attached later
        get theirs then. The result says what was matched."""
        if save_path is None:
            return load_status.InitializationOnlyStatus(self._start)
        # The counter exists from here on and is restored with the rest.
        _in_plain_graph("restore")
        self.save_counter  # noqa: B018
        try:
            return self.read(save_path, options)
        except errors.NotFoundError as e:
            raise errors.NotFoundError._of(
                f"Error when restoring from checkpoint or SavedModel at {save_path}: "
                f"{e.message}\nPlease double-check that the path is correct. You may be "
                "missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1')."
            ) from None

    def sync(self):
        """Returns when asynchronous writes are done; raises what they raised."""
        self._writes.wait()
