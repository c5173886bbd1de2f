"""tf.train.TrackableView and CheckpointView: object graphs to walk."""

import os

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.framework.trackable import (
    as_trackable,
    is_for_checkpoint,
    is_trackable,
    node_of,
    owner_of,
)
from headrace.train.checkpoint_options import GRAPH_KEY


class TrackableView:
    """The objects that can be reached from one, by named edges."""

    def __init__(self, root):
        self._root = root

    root = read_only("_root", "The object that the view starts from.")

    @classmethod
    def children(cls, obj, save_type="checkpoint", **kwargs):
        """{name: object} of an object's children: those that a checkpoint holds, or,
        for another `save_type`, a SavedModel. `kwargs` are for `_trackable_children`."""
        if not is_for_checkpoint(save_type):
            found = obj._trackable_children(save_type, **kwargs)
            return {name: as_trackable(child) for name, child in found.items()}
        named = {}
        for name, child in node_of(obj).children():
            owner = owner_of(child)
            if owner is not None:
                named[name] = owner
        return named

    def descendants(self):
        """All objects, the root first, breadth first."""
        found, seen = [self._root], {id(self._root)}
        for obj in found:
            for child in self.children(obj).values():
                if id(child) not in seen:
                    seen.add(id(child))
                    found.append(child)
        return found


class CheckpointView:
    """The object graph that a checkpoint holds, its objects as numbers."""

    def __init__(self, save_path):
        self._path = os.fspath(save_path)
        reader = _headrace.open_checkpoint(self._path)
        key = GRAPH_KEY
        if not reader.has_tensor(key):
            raise ValueError(
                f'The specified checkpoint "{self._path}" does not appear to be '
                f'object-based (saved with TF2) since it is missing the key "{key}". '
                "Likely it was created with the TF1 name-based saver and does not "
                "contain an object dependency graph."
            )
        self._graph = protos.TrackableObjectGraph.FromString(
            bytes(reader.get_tensor(key))
        )

    def children(self, node_id):
        """{name: node id} of a node's children."""
        return {c.local_name: c.node_id for c in self._graph.nodes[node_id].children}

    def descendants(self):
        """The ids of all nodes, the root first, breadth first."""
        return list(self._descendants_with_paths())

    def _descendants_with_paths(self):
        """{node id: the names that lead there, as in "root.layer.kernel"}."""
        paths, queue = {0: "root"}, [0]
        for node in queue:
            for name, child in self.children(node).items():
                if child not in paths:
                    paths[child] = f"{paths[node]}.{name}"
                    queue.append(child)
        return paths

    def match(self, obj):
        """{node id: object} of what a program's object has in common."""
        if not is_trackable(obj):
            raise ValueError(f"Expected a trackable object, got {obj!r}.")
        matched, queue = {0: obj}, [0]
        for node in queue:
            ours = TrackableView.children(matched[node])
            for name, child in self.children(node).items():
                if name not in ours:
                    continue
                if child not in matched:
                    matched[child] = ours[name]
                    queue.append(child)
                elif matched[child] is not ours[name]:
                    logging.warning(
                        "Inconsistent references when matching the checkpoint into "
                        "this object graph. The referenced objects are: "
                        f"({matched[child]} and {ours[name]})."
                    )
        return matched

    def diff(self, obj):
        """(matches, ids of nodes without an object, objects without a node)."""
        matched = self.match(obj)
        nodes = [n for n in self.descendants() if n not in matched]
        known = {id(o) for o in matched.values()}
        ours = [o for o in TrackableView(obj).descendants() if id(o) not in known]
        return matched, nodes, ours
