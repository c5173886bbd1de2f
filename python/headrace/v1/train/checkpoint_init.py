"""Variables whose first values are those of a checkpoint."""

import re

from headrace._load import raw
from headrace.context import stack
from headrace.framework import dtypes
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.train import checkpoint_reader, saver_graph
from headrace.train.checkpoint_options import GRAPH_KEY
from headrace.v1 import collections
from headrace.v1.train import vocabularies


def _parts(variable):
    if isinstance(variable, (list, tuple)):
        return list(variable)
    return saver_graph.parts_of(variable)


def start_from(variable, path, name, vocabulary=None):
    """What a checkpoint calls `name` is the first value of a graph's variable;
    `vocabulary`, a VocabInfo, says what its rows or columns stand for."""
    stored = checkpoint_reader.load_checkpoint(path).get_variable_to_shape_map()
    if name not in stored:
        raise ValueError(f"Tensor {name} is not found in {path} checkpoint {stored}")
    for part in _parts(variable):
        info = getattr(part, "_save_slice_info", None)
        if vocabulary is not None:
            _start_part(part, path, name, "", vocabularies.Remapping(vocabulary, part))
            continue
        shape = part.shape.as_list() if info is None else list(info.full_shape)
        if part.shape.is_fully_defined() and shape != list(stored[name]):
            raise ValueError(
                f"Shape of variable {part.name} ({tuple(shape)}) doesn't match with "
                f"shape of tensor {name} ({stored[name]}) from checkpoint reader."
            )
        _start_part(part, path, name, "" if info is None else info.spec)


def _start_part(part, path, name, slice_spec, remapping=None):
    scope = f"{part._shared_name}/checkpoint_initializer"
    with saver_graph.apart(part.graph, scope):
        value = raw.RestoreV2(
            path, [name], [slice_spec], dtypes=[dtypes.as_dtype(part.dtype).base_dtype]
        )[0]
        if remapping is not None:
            value = remapping(value)
        part._starts_with(saver_graph.assigned(part, value, False))


def _variables_by_name():
    """{name: variable} of the graph; parts of one variable are a list."""
    named = {}
    for variable in collections.global_variables():
        info = getattr(variable, "_save_slice_info", None)
        if info is None:
            named[variable._shared_name] = variable
        else:
            named.setdefault(info.full_name, []).append(variable)
    return named


def init_from_checkpoint(ckpt_dir_or_file, assignment_map):
    """Gives variables of the graph first values by {name there: name or variable
    here}; names that end in a slash are scopes, "/" is all."""
    path = checkpoint_reader.prefix_of(ckpt_dir_or_file)
    stored = checkpoint_reader.load_checkpoint(path).get_variable_to_shape_map()
    named = _variables_by_name()
    pairs = (
        assignment_map.items() if isinstance(assignment_map, dict) else assignment_map
    )
    for there, here in pairs:
        if not isinstance(here, str):
            start_from(here, path, there or _parts(here)[0]._shared_name)
        elif not there.endswith("/"):
            if here not in named:
                raise ValueError(
                    f"Assignment map with name: {here} does not exist among the "
                    "variables of the graph"
                )
            start_from(named[here], path, there)
        else:
            _start_scope(path, stored, named, there, here)


def _start_scope(path, stored, named, there, here):
    if not here.endswith("/"):
        raise ValueError(
            f"Assignment map with scope only name {there} should map to scope only "
            f'{here}. Should be "scope/": "other_scope/".'
        )
    old, new = there.lstrip("/"), here.lstrip("/")
    for name, variable in named.items():
        if not name.startswith(new):
            continue
        wanted = old + name[len(new) :]
        if wanted not in stored:
            raise ValueError(
                f"Tensor {wanted} ({there} in {here}) is not found in {path} checkpoint"
            )
        start_from(variable, path, wanted)


def _chosen(vars_to_warm_start):
    """{name: variable} that names, patterns or variables choose."""
    named = _variables_by_name()
    if vars_to_warm_start is None:
        return {}
    if isinstance(vars_to_warm_start, str):
        trainable = stack.default_graph().get_collection(
            collections.GraphKeys.TRAINABLE_VARIABLES, vars_to_warm_start
        )
        ids = {id(v) for v in trainable}
        return {n: v for n, v in named.items() if any(id(p) in ids for p in _parts(v))}
    if all(isinstance(v, str) for v in vars_to_warm_start):
        patterns = [re.compile(p) for p in vars_to_warm_start]
        return {
            n: v
            for n, v in named.items()
            if any(p.match(part.name) for p in patterns for part in _parts(v))
        }
    return {_parts(v)[0]._shared_name: v for v in vars_to_warm_start}


def _keys_of_objects(path, names):
    """{name: key} of a checkpoint with an object graph; empty for others."""
    reader = checkpoint_reader.load_checkpoint(path)
    if not reader.has_tensor(GRAPH_KEY):
        return {}
    graph = protos.TrackableObjectGraph.FromString(bytes(reader.get_tensor(GRAPH_KEY)))
    keys = {
        attribute.full_name: attribute.checkpoint_key
        for node in graph.nodes
        for attribute in node.attributes
    }
    missing = sorted(set(names) - set(keys))
    if missing:
        raise ValueError(
            "Attempting to warm-start from an object-based checkpoint, but found that "
            "the checkpoint did not contain values for all variables. The following "
            f"variables were missing: {missing}"
        )
    return keys


def warm_start(
    ckpt_to_initialize_from,
    vars_to_warm_start=".*",
    var_name_to_vocab_info=None,
    var_name_to_prev_var_name=None,
):
    """Gives variables of the graph the first values that a checkpoint has for them.

    `vars_to_warm_start` are names, patterns or variables, or None for those of
    `var_name_to_vocab_info` alone; `var_name_to_vocab_info` has
    VocabInfos for those whose rows or columns stand for words, of which there may be
    others now; `var_name_to_prev_var_name` says what the checkpoint calls them.
    ValueError for names of the latter two that are not used, and for values that are
    not in the checkpoint.
    """
    path = checkpoint_reader.prefix_of(ckpt_to_initialize_from)
    previous = dict(var_name_to_prev_var_name or {})
    vocabulary_of = dict(var_name_to_vocab_info or {})
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    chosen = _chosen(vars_to_warm_start)
    if vars_to_warm_start is None:
        named = _variables_by_name()
        chosen = {n: v for n, v in named.items() if n in vocabulary_of}
    keys = _keys_of_objects(path, set(chosen) - set(previous))
    for name, variable in chosen.items():
        there = previous.pop(name, None) or keys.get(name, name)
        start_from(variable, path, there, vocabulary_of.pop(name, None))
    for argument, left in (
        ("var_name_to_prev_var_name", previous),
        ("var_name_to_vocab_info", vocabulary_of),
    ):
        if left:
            raise ValueError(
                f"You provided the following variables in {argument} that were not "
                f"used: {sorted(left)}.  Perhaps you misspelled them?  Here is the list "
                f"of viable variable names: {sorted(chosen)}"
            )
    logging.info("Warm-started %d variables.", len(chosen))
