# SPDX-License-Identifier: Apache-2.0
"""CompilerConfig: a tree of options with frozen names.

An unknown name and a value outside an option's list are a ValueError at the assignment. The names of the
ecosystem's configuration are all there; `without_effect()` lists those that are set and count for nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["CompilerConfig", "Options"]

_BOOL = (True, False)


@dataclass(frozen=True)
class _Kind:
    """Values that no list holds: in words, and as a question."""

    words: str
    takes: Callable[[Any], bool]


def _whole(least: int, most: int) -> _Kind:
    return _Kind(f"int, {least} to {most}", lambda v: isinstance(v, int) and not isinstance(v, bool) and least <= v <= most)


_TEXT = _Kind("str", lambda v: isinstance(v, str))
_CALLABLE = _Kind("callable", callable)
_MOST = 65535


class _Option:
    """A default, the values allowed (None: any that `check` takes), and the ecosystem's key for it."""

    def __init__(self, default: Any, allowed: tuple[Any, ...] | None = None, *, check: _Kind | None = None,
                 key: str = "", wide: bool = False, words: dict[Any, str] | None = None, ours: bool = False) -> None:
        self.default, self.allowed, self.check = default, allowed, check
        self.key, self.wide, self.words, self.ours = key, wide, words, ours

    def takes(self, value: Any) -> bool:
        if value is self.default:
            return True
        if self.allowed is not None:
            return any(value == a and type(value) is type(a) for a in self.allowed)
        return self.check is None or self.check.takes(value)

    def text(self, value: Any) -> str:
        if self.words is not None:
            return self.words[value]
        return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)


class Options:
    """A node of the tree. `declared` maps names to options or to the classes of sub-trees."""

    declared: dict[str, Any] = {}

    def __init__(self) -> None:
        for name, what in self.declared.items():
            object.__setattr__(self, name, what.default if isinstance(what, _Option) else what())

    def __setattr__(self, name: str, value: Any) -> None:
        what = self.declared.get(name)
        if what is None:
            raise ValueError(f"{type(self).__name__} has no option {name}, all options {sorted(self.declared)}")
        if not isinstance(what, _Option):
            if type(value) is not what:
                raise ValueError(f"option {name} of {type(self).__name__} is a group; set one of its options "
                                 f"{sorted(what.declared)}")
        elif not what.takes(value):
            allowed = list(what.allowed) if what.allowed is not None else f"[{what.check.words}]"
            raise ValueError(f"Value {value} (type: {type(value).__name__}) of option {name} is not in optional list "
                             f"{allowed}")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and dict(self.leaves()) == dict(other.leaves())

    __hash__ = None  # type: ignore[assignment]

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """(dotted name, value) of every option below this one, in declared order."""
        for name, what in self.declared.items():
            value = getattr(self, name)
            if isinstance(what, _Option):
                yield prefix + name, value
            else:
                yield from value.leaves(f"{prefix}{name}.")

    def option(self, dotted: str) -> _Option:
        """The declaration behind a dotted name."""
        head, _, rest = dotted.partition(".")
        return getattr(self, head).option(rest) if rest else self.declared[head]

    def set(self, dotted: str, value: Any) -> None:
        """Sets the option of a dotted name, as torch.compile(options={"ge_config.oo_level": "O1"}) does."""
        if not isinstance(dotted, str):
            raise TypeError(f"the name of an option must be str, but got {type(dotted).__name__}: {dotted!r}")
        head, _, rest = dotted.partition(".")
        if not rest:
            setattr(self, head, value)
        elif isinstance(self.declared.get(head), type):
            getattr(self, head).set(rest, value)
        else:
            raise ValueError(f"{type(self).__name__} has no group {head}, all options {sorted(self.declared)}")


class GeConfig(Options):
    """Options of the graph engine."""

    declared = {
        "enable_single_stream": _Option(False, _BOOL, key="ge.enableSingleStream", wide=True,
                                        words={True: "true", False: "false"}, ours=True),
        "optimization_switch": _Option(None, check=_TEXT, key="ge.optimizationSwitch"),
        "oo_level": _Option("O3", ("O1", "O3"), key="ge.oo.level"),
        "aicore_num": _Option(None, check=_TEXT, key="ge.aicoreNum"),
    }


class ExperimentalConfig(Options):
    """Options that may change."""

    declared = {
        "topology_sorting_strategy": _Option("DFS", ("BFS", "DFS", "RDFS", "StableRDFS"), key="ge.topoSortingMode",
                                             words={"BFS": "0", "DFS": "1", "RDFS": "2", "StableRDFS": "3"}),
        "cc_parallel_enable": _Option(False, _BOOL, key="ge.exec.enableEngineParallel", wide=True),
        "memory_efficiency": _Option(False, _BOOL, key="ge.featureBaseRefreshable"),
        "enable_view_optimize": _Option(True, _BOOL),
        "remove_noop_ops": _Option(True, _BOOL),
        "pattern_fusion_pass": _Option(True, _BOOL),
        "npu_fx_pass": _Option(False, _BOOL),
        "keep_inference_input_mutations": _Option(True, _BOOL),
    }


class GraphDump(Options):
    """Where graphs are written, and in which form: text of the graph, nodes as `pbtxt`, FX code as `py`."""

    declared = {
        "type": _Option(None, (None, "txt", "pbtxt", "py"), ours=True),
        "path": _Option("./", check=_TEXT, ours=True),
    }


class DataDump(Options):
    """Values of operators to files; not here."""

    declared = {"type": _Option(None, (None, "npy"))}


class FxSummary(Options):
    """A table of the FX graph; not here."""

    declared = {"type": _Option(None, (None, "csv")), "skip_compile": _Option(True, _BOOL)}


class AclGraphDebug(Options):
    """Options of captured graphs; not here."""

    declared = {
        "clone_input": _Option(True, _BOOL),
        "disable_reinplace_inplaceable_ops_pass": _Option(False, _BOOL),
        "disable_reinplace_input_mutated_ops_pass": _Option(False, _BOOL),
        "static_capture_size_limit": _Option(64, check=_whole(0, _MOST)),
    }


class Debug(Options):
    """Options for looking inside."""

    declared = {
        "graph_dump": GraphDump, "data_dump": DataDump, "fx_summary": FxSummary, "aclgraph": AclGraphDebug,
        "run_eagerly": _Option(False, _BOOL, ours=True),
        "deadlock_check": _Option(False, _BOOL),
    }


class DumpConfig(Options):
    """The data-dump configuration that `data_dump()` scopes and layer names are written to."""

    declared = {
        "enable_dump": _Option(False, _BOOL, ours=True),
        "dump_path": _Option("./", check=_TEXT, ours=True),
        "dump_mode": _Option("all", ("input", "output", "all"), ours=True),
        "dump_step": _Option(None, check=_TEXT, ours=True),
        "dump_data": _Option("tensor", ("tensor", "stats"), ours=True),
        "dump_layer": _Option(None, check=_TEXT, ours=True),
    }


class CompilerConfig(Options):
    """All options. Those that are ours alone: `strict_scopes`, `strategy`, `streams`, `target`, `workers`."""

    declared = {
        "mode": _Option("max-autotune", ("max-autotune", "reduce-overhead", "npugraph_ex"), ours=True),
        "ge_config": GeConfig, "experimental_config": ExperimentalConfig, "debug": Debug, "dump_config": DumpConfig,
        "post_grad_custom_pre_pass": _Option(None, check=_CALLABLE, ours=True),
        "post_grad_custom_post_pass": _Option(None, check=_CALLABLE, ours=True),
        "strict_scopes": _Option(False, _BOOL, ours=True),
        "strategy": _Option(None, (None, "ge", "auto", "single"), ours=True),
        "streams": _Option(None, check=_whole(1, _MOST), ours=True),
        "target": _Option("npu", check=_TEXT, ours=True),
        "workers": _Option(0, check=_whole(0, _MOST), ours=True),
    }

    def as_dict(self) -> tuple[dict[str, str], dict[str, str]]:
        """(options of one graph, options of the process) under the ecosystem's keys, as texts; unset ones left out."""
        local: dict[str, str] = {}
        wide: dict[str, str] = {}
        for name, value in self.leaves():
            option = self.option(name)
            if option.key and value is not None:
                (wide if option.wide else local)[option.key] = option.text(value)
        return local, wide

    def without_effect(self) -> list[str]:
        """The options that differ from their default and that nothing here reads."""
        return [name for name, value in self.leaves() if not self.option(name).ours and value != self.option(name).default]

    def copy(self) -> CompilerConfig:
        """An equal configuration that can be changed alone."""
        other = CompilerConfig()
        for name, value in self.leaves():
            other.set(name, value)
        return other
