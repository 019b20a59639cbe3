# SPDX-License-Identifier: Apache-2.0
"""Every touch of PyTorch that is not public API, in one place.

Tried on PyTorch 2.13. What moved between versions is looked up by name here, so that another version fails
in this file with a message that says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

# Kept by PyTorch, so that operators outlive this module where a program imports it anew.
_LIBRARIES: dict[str, torch.library.Library] = vars(torch.library).setdefault("_millstream_libraries", {})
_UNIT = "CompositeExplicitAutograd"  # one kernel for every device; works for operators without tensors


def library(space: str) -> torch.library.Library:
    """The library of a name space, which lives as long as the process."""
    if space not in _LIBRARIES:
        _LIBRARIES[space] = torch.library.Library(space, "FRAGMENT")
    return _LIBRARIES[space]


def define(schema: str, kernel: Callable[..., Any], fake: Callable[..., Any], *, side_effect: bool,
           space: str = "millstream", backward: Callable[..., Any] | None = None) -> None:
    """Defines `space::schema` once in this process; a second import finds it and leaves it alone."""
    name = schema.split("(")[0]
    if hasattr(getattr(torch.ops, space), name):
        return
    lib = library(space)
    lib.define(schema)
    lib.impl(name, kernel, _UNIT)
    torch.library.register_fake(f"{space}::{name}", fake, lib=lib)
    if backward is not None:
        torch.library.register_autograd(f"{space}::{name}", backward, lib=lib)
    if side_effect:
        keep(getattr(getattr(torch.ops, space), name).default)


def keep(op: Callable[..., Any]) -> None:
    """Dead-code elimination leaves calls of `op` alone."""
    try:
        from torch.fx.node import has_side_effect
    except ImportError:
        from torch.fx.node import _side_effectful_functions
        _side_effectful_functions.add(op)
        return
    has_side_effect(op)


def aot(gm: fx.GraphModule, inputs: Sequence[Any], *, forward: Callable[..., Any], backward: Callable[..., Any],
        inference: Callable[..., Any], before_partition: Callable[[fx.GraphModule], None],
        decompositions: dict[Any, Any]) -> Callable[..., Any]:
    """AOTAutograd over Dynamo's graph. `before_partition` sees the joint graph of training."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import default_partition

    def partition(joint: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        before_partition(joint)
        return default_partition(joint, *args, **kwargs)

    return aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=inference,
                        decompositions=decompositions, partition_fn=partition,
                        keep_inference_input_mutations=True)(gm, inputs)


def is_recomputed(node: fx.Node) -> bool:
    """True for operators of a checkpoint, which the backward graph may run again."""
    return node.meta.get("recompute") is not None


def is_replayed(node: fx.Node) -> bool:
    """True for views that functionalisation takes again because their base was written to."""
    return bool(node.meta.get("is_functional_regenerated"))


def complete(graph: fx.Graph) -> None:
    """Gives the nodes that passes of users added without a value their (fake) value, in graph order."""
    from torch._guards import detect_fake_mode
    mode = detect_fake_mode([t for node in graph.nodes for t in tensors_of(node)])
    for node in graph.nodes:
        if node.op != "call_function" or "val" in node.meta:
            continue
        if mode is None or any("val" not in n.meta for n in node.all_input_nodes):
            node.meta["val"] = None
            continue
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        with mode:
            node.meta["val"] = node.target(*args, **kwargs)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Marks a function that takes its arguments as one list, which it may empty."""
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def below_autograd() -> Any:
    """A guard: operators called inside record nothing for a backward pass."""
    return torch._C._AutoDispatchBelowAutograd()


set_grad_mode: Callable[[bool], None] = torch._C._set_grad_enabled


def _thread_setters() -> tuple[Callable[[int], Any], Callable[[int], Any]]:
    """(OpenMP's, MKL's) calls that set the threads of the calling thread only; torch.set_num_threads would also
    change what threads that start later begin with. Without one of these libraries that call does nothing."""
    import ctypes
    import pathlib
    found: list[Callable[[int], Any]] = []
    for name in ("omp_set_num_threads", "MKL_Set_Num_Threads_Local"):
        try:
            found.append(getattr(ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")), name))
        except (OSError, AttributeError):
            found.append(lambda threads: None)
    return found[0], found[1]


_set_openmp, _set_mkl = _thread_setters()


def set_own_threads(openmp: int, mkl: int) -> None:
    """The threads of operators that this thread calls; for MKL 0 means the number of the process."""
    torch.get_num_threads()  # PyTorch sets a thread's number when it first asks, which must not come later
    _set_openmp(openmp)
    _set_mkl(mkl)


def tensors_of(node: fx.Node) -> Iterator[torch.Tensor]:
    """The (fake) tensors that a node of a traced graph stands for, in order."""
    value = node.meta.get("val")
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, torch.Tensor):
            yield top
        elif isinstance(top, (list, tuple)):
            stack.extend(reversed(top))


def storage_key(tensor: torch.Tensor) -> int | None:
    """One number for all tensors over one storage; None for tensors without one."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def written_arguments(op: Any) -> list[tuple[int, str]]:
    """(position, name) of the arguments that an operator writes to."""
    schema = getattr(op, "_schema", None)
    if schema is None:
        return []
    return [(i, a.name) for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]


def is_view(op: Any) -> bool:
    """True for operators whose result shares its first argument's storage and that write nothing."""
    schema = getattr(op, "_schema", None)
    if schema is None or not schema.returns:
        return False
    return not schema.is_mutable and all(r.alias_info is not None for r in schema.returns)


def flops_of(node: fx.Node, op: Any) -> int | None:
    """Floating-point operations of a call, for the operators that PyTorch's own counter knows; None for others."""
    from torch.utils.flop_counter import flop_registry
    packet = getattr(op, "overloadpacket", None)
    name = str(packet)
    if name.startswith("aten._scaled_dot_product_flash_attention_for_cpu"):
        packet = getattr(torch.ops.aten, name.removeprefix("aten.").replace("_for_cpu", ""))
    formula = flop_registry.get(packet)
    if formula is None:
        return None
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    return int(formula(*args, **kwargs, out_val=node.meta["val"]))


def is_random(node: fx.Node) -> bool:
    """True for calls that draw from a generator, or set one for a draw: operators that do, and what calls them, which
    has them among its arguments or in the graph of a branch or a loop body."""
    return any(torch.Tag.nondeterministic_seeded in getattr(op, "tags", ()) for op in _called(node))


def _called(node: fx.Node) -> Iterator[Any]:
    """What a call calls, down to the operators of branches and loop bodies."""
    yield node.target
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return
    for argument in _leaves((node.args, node.kwargs)):
        if isinstance(argument, torch._ops.OpOverload):
            yield argument
        elif isinstance(argument, fx.Node) and argument.op == "get_attr":
            body = attribute_of(node.graph.owning_module, argument)
            if isinstance(body, fx.GraphModule):
                for inner in body.graph.nodes:
                    if inner.op == "call_function":
                        yield from _called(inner)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def attribute_of(gm: Any, node: fx.Node) -> Any:
    """What a get_attr node names."""
    value = gm
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def compile_id() -> str | None:
    """Dynamo's name of the compilation in progress, such as 0/0."""
    from torch._guards import CompileContext
    found = CompileContext.current_compile_id()
    return None if found is None else str(found)


def compile_ids_of(compiled: Any) -> list[str]:
    """The names of the compilations that a function or module from torch.compile holds now. PyTorch keeps them by code:
    modules of one class have one list, and so have all those of torch.nn."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list, innermost_fn
    targets = [compiled]
    if isinstance(compiled, torch.nn.Module):
        # The forward of a user's class is compiled itself; of torch's classes, what calls it.
        targets = [getattr(compiled, "_orig_mod", compiled).forward, compiled.forward]
    codes = {getattr(innermost_fn(target), "__code__", None) for target in targets} - {None}
    return [str(entry.compile_id) for code in codes for entry in _debug_get_cache_entry_list(code)]


def in_dispatch_mode() -> bool:
    """True while something traces operators instead of running them."""
    return torch._C._len_torch_dispatch_stack() > 0


def region() -> tuple[Any, dict[str, Any]] | None:
    """The back-end and the options of the torch.compile call that this thread is in, None outside of all: code
    that runs inside and is not compiled fell out at a graph break."""
    try:
        from torch._C._dynamo.eval_frame import get_eval_frame_callback
    except ImportError:
        return None
    found: Any = get_eval_frame_callback()
    if found is None or isinstance(found, bool):
        return None
    while hasattr(found, "_torchdynamo_orig_backend"):
        found = found._torchdynamo_orig_backend
    options = getattr(found, "kwargs", {}).get("options") or {}
    return getattr(found, "compiler_fn", found), options


def leave_untraced(*functions: Callable[..., Any]) -> None:
    """Dynamo runs these functions as they are; what they call it may still look at. It would compile kernels that eager
    code calls behind a graph break, with the back-end at hand."""
    from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    for function in functions:
        set_code_exec_strategy(function.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.DEFAULT))


leave_untraced(in_dispatch_mode, region)
