# SPDX-License-Identifier: Apache-2.0
"""The back-end of torch.compile: `torch.compile(model, backend="millstream")`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from . import _torch_compat as compat
from ._after_aot import prepare_joint
from ._before_aot import annotate
from ._plan import CompiledGraph, compile_graph
from ._register import ALL, Register
from .config import CompilerConfig
from .errors import ScopeWarning, warn

__all__ = ["Backend", "backend", "get_backend"]

_numbers = itertools.count()


class Backend:
    """A back-end with its configuration."""

    def __init__(self, config: CompilerConfig, decompositions: dict[Any, Any]) -> None:
        self.config = config
        self.decompositions = decompositions
        self._graphs = Register()
        self._said: set[str] = set()

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any], *, options: dict[str, Any] | None = None,
                 mode: str | None = None, **ignored: Any) -> Callable[..., Any]:
        """Compiles one graph of Dynamo. `options` sets options of the configuration by dotted name."""
        config = self.config
        if options:
            config = config.copy()
            for name, value in options.items():
                config.set(name, value)
        self._say_what_is_ignored(config, mode, ignored)
        entered = annotate(gm)
        if config.debug.run_eagerly:
            return gm.forward

        def compiler(kind: str) -> Callable[..., Any]:
            def compile_one(aot_gm: fx.GraphModule, aot_inputs: Sequence[Any]) -> Callable[..., Any]:
                graph = compile_graph(aot_gm, aot_inputs, kind, f"graph_{next(_numbers)}", entered, config)
                self._graphs.add(graph)
                ALL.add(graph)
                return compat.boxed(self.runnable(graph))
            return compile_one

        return compat.aot(gm, inputs, forward=compiler("forward"), backward=compiler("backward"),
                          inference=compiler("inference"), before_partition=prepare_joint,
                          decompositions=self.decompositions)

    def __getstate__(self) -> tuple[CompilerConfig, dict[Any, Any]]:
        """A copy, as copying or saving a compiled module makes one, has the options and compiles anew."""
        return self.config, self.decompositions

    def __setstate__(self, state: tuple[CompilerConfig, dict[Any, Any]]) -> None:
        Backend.__init__(self, *state)

    @property
    def graphs(self) -> list[CompiledGraph]:
        """The graphs that it compiled and that are still in use, oldest first."""
        return self._graphs.alive()

    def runnable(self, graph: CompiledGraph) -> Callable[[list[Any]], Any]:
        """What PyTorch calls for each run of a graph, with the list of its inputs."""
        return lambda arguments: graph(arguments)

    def _say_what_is_ignored(self, config: CompilerConfig, mode: str | None, ignored: dict[str, Any]) -> None:
        texts = [f"option {name} has no effect here" for name in config.without_effect()]
        texts += [f"argument {name} of torch.compile has no effect here" for name in ignored]
        if mode is not None:
            texts.append(f"mode {mode!r} of torch.compile has no effect here")
        if config.mode != "max-autotune":
            texts.append(f"mode {config.mode!r} runs as graph mode: scopes, waits and data are all ordered by the plan")
        for text in texts:
            if text not in self._said:
                self._said.add(text)
                warn(text, ScopeWarning)


_default: Backend | None = None


def backend(gm: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """The entry point behind the name "millstream": a Backend with the default configuration."""
    global _default
    if _default is None:
        _default = Backend(CompilerConfig(), {})
    return _default(gm, inputs, **options)


def get_backend(*, compiler_config: CompilerConfig | None = None,
                custom_decompositions: dict[Any, Any] | None = None) -> Backend:
    """A back-end for torch.compile(model, backend=...) with a configuration of its own (copied).

    Raises TypeError if `compiler_config` is not a CompilerConfig.
    """
    if not isinstance(compiler_config, CompilerConfig | None):
        raise TypeError(f"compiler_config must be a millstream.CompilerConfig, but got {type(compiler_config).__name__}; options by "
                        "dotted name go into torch.compile(..., options={...})")
    config = CompilerConfig() if compiler_config is None else compiler_config.copy()
    return Backend(config, dict(custom_decompositions or {}))
