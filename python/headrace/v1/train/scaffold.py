"""tf.compat.v1.train.Scaffold: what a graph needs to be trained."""

from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, scopes
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.train import checkpoint
from headrace.v1 import collections, graph_summaries, saver
from headrace.v1.train import saver_hooks

GraphKeys = collections.GraphKeys


# What a scaffold takes over from the one that it is a copy of.
_COPIED = ("init_op", "ready_op", "ready_for_local_init_op", "local_init_op")
_COPIED += ("local_init_feed_dict", "summary_op", "saver", "init_feed_dict", "init_fn")


class Scaffold:
    """Operations that start, check and save a graph; those not given are made.

    `saver` may be a tf.train.Checkpoint: then checkpoints are saved by objects.
    """

    @signatures.keeping(
        "init_op=None, init_feed_dict=None, init_fn=None, ready_op=None, "
        "ready_for_local_init_op=None, local_init_op=None, summary_op=None, "
        "saver=None, copy_from_scaffold=None, local_init_feed_dict=None"
    )
    def __init__(self):
        init_fn, copied = self._init_fn, self._copy_from_scaffold
        if init_fn is not None:
            self._init_fn = lambda session: init_fn(self, session)
        if copied is None:
            return
        if not isinstance(copied, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")
        for name in _COPIED:
            if getattr(self, f"_{name}") is None:
                setattr(self, f"_{name}", getattr(copied, name))

    def finalize(self):
        """Makes what was not given and ends the graph."""
        for name, make in (
            ("init_op", _default_init_op),
            ("ready_op", collections.report_uninitialized_variables),
            ("ready_for_local_init_op", _default_ready_for_local_init_op),
            ("local_init_op", Scaffold.default_local_init_op),
            ("summary_op", graph_summaries.merge_all),
        ):
            if getattr(self, f"_{name}") is None:
                key = getattr(GraphKeys, name.upper())
                setattr(self, f"_{name}", self.get_or_default(name, key, make))
        self._finalize_saver()
        stack.default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    def _finalize_saver(self):
        if self._saver is None:
            self._saver = _saver_or_default()
        if isinstance(self._saver, checkpoint.Checkpoint):
            self._saver = saver.Saver(
                var_list=self._saver._frozen_saveables(), sharded=True
            )
        else:
            self._saver.build()

    @staticmethod
    def get_or_default(arg_name, collection_key, default_constructor):
        """What the graph's collection holds, else what the constructor makes."""
        graph = stack.default_graph()
        found = graph.get_collection(collection_key)
        if found:
            if len(found) > 1:
                raise RuntimeError(
                    f'More than one item in the collection "{collection_key}". Please '
                    "indicate which one to use by passing it to the tf.Scaffold "
                    f"constructor as:  tf.Scaffold({arg_name}=item to use)"
                )
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op():
        """Initializes local variables, tables and the like."""
        return scopes.group(
            [
                collections.local_variables_initializer(),
                collections.tables_initializer(),
                *_initializers(GraphKeys.LOCAL_RESOURCES),
            ],
            None,
        )

    init_fn = read_only(
        "_init_fn", "A function of the session that runs after init_op, or None."
    )

    init_op = read_only(
        "_init_op",
        """The operation that initializes the global variables;
        None until finalize().""",
    )
    ready_op = read_only(
        "_ready_op",
        """Gives the names of variables without a value, an empty list when all are
        ready.
        """,
    )
    ready_for_local_init_op = read_only(
        "_ready_for_local_init_op",
        "Gives the names of variables that local_init_op still waits for.",
    )

    local_init_op = read_only(
        "_local_init_op",
        """The operation that initializes local variables and tables, also after a
        restore.
        """,
    )
    local_init_feed_dict = read_only(
        "_local_init_feed_dict", "What is fed when local_init_op runs, or None."
    )
    summary_op = read_only(
        "_summary_op",
        "The merged summaries of the graph, or None where there are none.",
    )
    saver = read_only(
        "_saver",
        "The Saver of the checkpoints; None until finalize() where none was given.",
    )
    init_feed_dict = read_only(
        "_init_feed_dict", "What is fed when init_op runs, or None."
    )


def _initializers(key):
    """The operations that make the resources of a collection."""
    found = stack.default_graph().get_collection(key)
    return [r.create for r in found]


def _default_init_op():
    found = stack.default_graph().get_collection("saved_model_initializers")
    return scopes.group(
        [
            collections.global_variables_initializer(),
            *_initializers(GraphKeys.RESOURCES),
            *found,
        ],
        None,
    )


def _default_ready_for_local_init_op():
    variables = collections.global_variables()
    if not variables:
        return conversion.constant([], dtypes.string)
    return collections.report_uninitialized_variables(variables)


def _saver_or_default():
    """The graph's one saver; one of all its variables where it has none."""
    found = saver_hooks.saver_of_collection()
    if found is None:
        found = saver.Saver(sharded=True, allow_empty=True)
        stack.default_graph().add_to_collection(GraphKeys.SAVERS, found)
    return found
