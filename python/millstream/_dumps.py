# SPDX-License-Identifier: Apache-2.0
"""Files that a compilation writes on request: graphs before and after planning, and the data-dump configuration."""

from __future__ import annotations

import datetime
import json
import os
import threading
from typing import Any

from torch import fx

from ._convert import Lowered
from ._graph_text import pbtxt, txt
from .config import CompilerConfig

_DATA_SCOPE = "torchair_enable_data_dump"
_lock = threading.Lock()
_dump_list: list[dict[str, Any]] = []


def _rank() -> tuple[str, str]:
    return os.environ.get("WORLD_SIZE", "1"), os.environ.get("RANK", "0")


def graph_file(config: CompilerConfig, stage: str, number: str) -> str:
    """The path of a graph dump. Raises OSError if its folder cannot be made."""
    os.makedirs(config.debug.graph_dump.path, exist_ok=True)
    time = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d%H%M%S%f")
    name = f"dynamo_{stage}_graph_{number}_rank_{_rank()[1]}_pid_{os.getpid()}_ts_{time}.{config.debug.graph_dump.type}"
    return os.path.join(config.debug.graph_dump.path, name)


def write_graphs(config: CompilerConfig, gm: fx.GraphModule, lowered: Lowered, plan: Any) -> None:
    """Writes the graph before planning (`original`) as nodes, operators or FX code; behind planning (`optimized`) the
    same graph with streams, records and waits, as nodes or text."""
    kind = config.debug.graph_dump.type
    if kind is None:
        return
    if kind == "py":
        texts = {"original": gm.print_readable(print_output=False)}
    else:
        texts = {"original": pbtxt(lowered) if kind == "pbtxt" else txt(lowered), "optimized": plan.dump(kind)}
    for stage, text in texts.items():
        with open(graph_file(config, stage, lowered.name.removeprefix("graph_")), "w", encoding="utf-8") as out:
            out.write(text)


def write_data_dump(config: CompilerConfig, lowered: Lowered) -> str | None:
    """Writes which operators' data a device shall dump, if data dumps are on; returns the path.

    The layers are those of `dump_layer` and the types of the operators inside data_dump() scopes. All graphs
    of the process share one file.
    """
    dump = config.dump_config
    if not dump.enable_dump:
        return None
    scoped = dict.fromkeys(o.type for o in lowered.operators if _DATA_SCOPE in o.attributes)
    layers = list(dict.fromkeys([*(dump.dump_layer or "").split(), *scoped]))
    world, rank = _rank()
    os.makedirs("ge_dump_data_json", exist_ok=True)
    path = os.path.join("ge_dump_data_json", f"dump_options_worldsize{world}_rank{rank}_pid{os.getpid()}.json")
    with _lock:
        _dump_list.append({"model_name": lowered.name, "layer": layers})
        options = {"dump_path": dump.dump_path, "dump_mode": dump.dump_mode, "dump_data": dump.dump_data,
                   "dump_list": _dump_list}
        if dump.dump_step is not None:
            options["dump_step"] = dump.dump_step
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"dump": options}, out, indent=2)
    return path
