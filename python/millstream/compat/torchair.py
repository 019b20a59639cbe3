# SPDX-License-Identifier: Apache-2.0
"""Programs written for torchair, run by this back-end: `install()` puts the names they import into sys.modules.

    from millstream.compat import torchair
    torchair.install()
    import torchair as tng                     # scopes, ops, CompilerConfig, get_npu_backend

No package named torchair is shipped. Where the real one is installed, install() refuses to hide it.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from .. import _markers
from .. import _torch_compat as compat
from .. import ops as our_ops
from .. import scope as our_scope
from .._plan import CompiledGraph
from ..backend import Backend
from ..config import CompilerConfig
from ..errors import ScopeWarning, warn
from .graph_view import GraphDef

__all__ = ["GeConcreteGraph", "get_compiler", "get_npu_backend", "install", "uninstall"]

logger = logging.getLogger("torchair")
_installed: dict[str, types.ModuleType] = {}


class GeConcreteGraph:
    """A compiled graph under its old name. Tests replace its methods on the class, before a graph is made."""

    def __init__(self, compiled: CompiledGraph) -> None:
        self._compiled = compiled
        self._graph = GraphDef(compiled.lowered)

    @property
    def graph(self) -> GraphDef:
        """The graph definition, with the attributes of all scopes."""
        return self._graph

    def optimize_graph_without_runtime(self, *_: Any, **__: Any) -> None:
        """Called once for each graph, before its first run; there is nothing left to do."""

    def __call__(self, arguments: list[Any]) -> Any:
        return self._compiled(arguments)


class _Backend(Backend):
    def runnable(self, graph: CompiledGraph) -> Callable[[list[Any]], Any]:
        concrete = GeConcreteGraph(graph)
        concrete.optimize_graph_without_runtime()
        return lambda arguments: concrete(arguments)


def get_npu_backend(*, compiler_config: CompilerConfig | None = None,
                    custom_decompositions: dict[Any, Any] | None = None) -> Backend:
    """A back-end for torch.compile, as millstream.get_backend gives it."""
    config = CompilerConfig() if compiler_config is None else compiler_config.copy()
    return _Backend(config, dict(custom_decompositions or {}))


def get_compiler(compiler_config: CompilerConfig | None = None) -> Callable[..., Any]:
    """The same as a function of a graph module and its example inputs."""
    return get_npu_backend(compiler_config=compiler_config)


def use_internal_format_weight(model: torch.nn.Module) -> None:
    """Weights have no device formats here: nothing to do."""


def cache_compile(func: Callable[..., Any], *, config: CompilerConfig | None = None, backend: Any = None,
                  dynamic: bool = True, custom_decompositions: dict[Any, Any] | None = None, **_: Any) -> Callable[..., Any]:
    """Compiles a bound method of a module at its first call. Nothing is kept on disk: each process compiles once, and the
    arguments that say where and for which rank (cache_dir, global_rank, tp_rank, pp_rank, ge_cache) have no effect."""
    if not isinstance(func, types.MethodType):
        raise ValueError(f"Only method can be cached now, but got {func!r}")
    if not isinstance(func.__self__, torch.nn.Module):
        raise ValueError(f"Only torch.nn.Module method can be cached now, but got a method of {type(func.__self__).__name__}")
    if config is not None and backend is not None and backend.config != config:
        raise ValueError("config and the config of backend differ; give one of the two")
    warn("cache_compile keeps nothing on disk: each process compiles once", ScopeWarning)
    made = backend or get_npu_backend(compiler_config=config, custom_decompositions=custom_decompositions)
    return torch.compile(func, backend=made, fullgraph=True, dynamic=dynamic)


def _define_air() -> None:
    """torch.ops.air.*, for passes of users; the back-end reads them as its own markers."""
    nothing = _markers._nothing
    for schema, ours in (
            ("scope_enter(str[] keys, str[] values, bool need_execute=False) -> ()", _markers.ENTER),
            ("scope_exit(bool need_execute=False) -> ()", _markers.EXIT),
            ("record(*, Device? device=None) -> Tensor", _markers.RECORD),
            ("wait(Tensor[] x) -> ()", _markers.WAIT),
            ("tagged_event_record(str tag, bool created_inside=False) -> ()", _markers.EVENT_RECORD),
            ("tagged_event_wait(str tag, bool created_inside=False) -> ()", _markers.EVENT_WAIT),
            ("wait_tensor(Tensor self, Tensor dependency) -> Tensor", _markers.WAIT_TENSOR)):
        name = schema.split("(")[0]
        if name == "wait_tensor":
            kernel, fake = (lambda s, d: s.clone()), (lambda s, d: torch.empty_like(s))
        elif name == "record":
            kernel = fake = lambda device=None: torch.empty(0)
        else:
            kernel = fake = nothing
        compat.define(schema, kernel, fake, side_effect=name != "wait_tensor", space="air")
        _markers.ALIASES[getattr(torch.ops.air, name).default] = ours


def _module(name: str, **contents: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    _installed[name] = module
    return module


def _wait_and_scope() -> dict[str, Any]:
    """The names of older releases, where scopes stood among the operators."""
    return {"npu_wait_tensor": our_scope.npu_wait_tensor, "NpuStreamSwitch": our_scope.npu_stream_switch}


def install(*, force: bool = False) -> None:
    """Makes `import torchair` (and `import torch_npu`, an empty module) give the names of this back-end.

    Raises RuntimeError if the real package is installed, unless `force`. A second call changes nothing.
    """
    if _installed:
        return
    if not force and "torchair" not in sys.modules and importlib.util.find_spec("torchair") is not None:
        raise RuntimeError("a package torchair is installed; install(force=True) hides it in this process")
    _define_air()
    public = {name: getattr(our_scope, name) for name in our_scope.__all__}
    scope = _module("torchair.scope", _Scope=our_scope.Scope, **public)
    ops = _module("torchair.ops", **{name: getattr(our_ops, name) for name in our_ops.__all__}, **_wait_and_scope())
    compiler_config = _module("torchair.configs.compiler_config", CompilerConfig=CompilerConfig)
    configs = _module("torchair.configs", compiler_config=compiler_config, CompilerConfig=CompilerConfig)
    backend = _module("torchair.core._backend", _GLOBAL_COMPILE_OPTION=None)
    utils = _module("torchair.core.utils", logger=logger)
    core = _module("torchair.core", _backend=backend, utils=utils)
    converter = _module("torchair._ge_concrete_graph.fx2ge_converter", GeConcreteGraph=GeConcreteGraph)
    concrete = _module("torchair._ge_concrete_graph", fx2ge_converter=converter)
    inference = _module("torchair.inference", cache_compile=cache_compile)
    _module("torchair", scope=scope, ops=ops, core=core, configs=configs, inference=inference, logger=logger,
            _ge_concrete_graph=concrete, CompilerConfig=CompilerConfig, get_npu_backend=get_npu_backend,
            get_compiler=get_compiler, use_internal_format_weight=use_internal_format_weight)
    for name in ("torchair", "torchair.configs", "torchair.core", "torchair._ge_concrete_graph"):
        _installed[name].__path__ = []  # type: ignore[attr-defined]
    if "torch_npu" not in sys.modules and importlib.util.find_spec("torch_npu") is None:
        _module("torch_npu")
    sys.modules.update(_installed)


def uninstall() -> None:
    """Takes the modules of install() out of sys.modules again."""
    for name, module in _installed.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _installed.clear()
