"""Variables whose first values are those of a checkpoint."""

import os
import re

from headrace._load import _headrace
from headrace.framework import dtypes, logging
from headrace.graph import collections, stack
from headrace.train import checkpoint_reader, checkpoint_state, saver_graph


def checkpoint_of(folder_or_prefix):
    """The prefix of a checkpoint that a folder, or itself, names."""
    path = os.fspath(folder_or_prefix)
    if os.path.isdir(path):
        latest = checkpoint_state.latest_checkpoint(path)
        if latest is None:
            raise ValueError(
                f"Couldn't find 'checkpoint' file or checkpoints in {path}"
            )
        return latest
    return path


def _parts(variable):
    if hasattr(variable, "_get_variable_list"):
        return list(variable._get_variable_list())
    return list(variable) if isinstance(variable, (list, tuple)) else [variable]


def start_from(variable, path, name):
    """What a checkpoint calls `name` is the first value of a graph's variable."""
    stored = checkpoint_reader.load_checkpoint(path).get_variable_to_shape_map()
    for part in _parts(variable):
        info = getattr(part, "_save_slice_info", None)
        shape = part.shape.as_list() if info is None else list(info.full_shape)
        if name not in stored:
            raise ValueError(
                f"Tensor {name} is not found in {path} checkpoint {stored}"
            )
        if part.shape.is_fully_defined() and shape != list(stored[name]):
            raise ValueError(
                f"Shape of variable {part.name} ({tuple(shape)}) doesn't match with "
                f"shape of tensor {name} ({stored[name]}) from checkpoint reader."
            )
        _start_part(part, path, name, "" if info is None else info.spec)


def _start_part(part, path, name, slice_spec):
    graph = part.graph
    with (
        graph.as_default(),
        graph.control_dependencies(None),
        graph.name_scope(f"{part._shared_name}/checkpoint_initializer"),
    ):
        value = _headrace.raw_op("RestoreV2")(
            prefix=path,
            tensor_names=[name],
            shape_and_slices=[slice_spec],
            dtypes=[dtypes.as_dtype(part.dtype).base_dtype],
        )[0]
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
    path = checkpoint_of(ckpt_dir_or_file)
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


def warm_start(
    ckpt_to_initialize_from,
    vars_to_warm_start=".*",
    var_name_to_vocab_info=None,
    var_name_to_prev_var_name=None,
):
    """Gives variables of the graph the first values that a checkpoint has for them."""
    if var_name_to_vocab_info:
        raise NotImplementedError("warm_start: var_name_to_vocab_info is not supported")
    path = checkpoint_of(ckpt_to_initialize_from)
    previous = dict(var_name_to_prev_var_name or {})
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    chosen = _chosen(vars_to_warm_start)
    for name, variable in chosen.items():
        start_from(variable, path, previous.pop(name, name))
    if previous:
        raise ValueError(
            "You provided the following variables in var_name_to_prev_var_name that "
            f"were not used: {sorted(previous)}.  Perhaps you misspelled them?"
        )
    logging.info("Warm-started %d variables.", len(chosen))
