# SPDX-License-Identifier: Apache-2.0
"""Gives a model new, seeded random weights of a sane scale.

A model whose weights are all one constant hides a swapped channel, a wrong permutation and a race between two
equal tensors. With different numbers everywhere each of these changes the output.

Which tensors are weights is read from what consumes them: filters and matrices are drawn with the variance
2 / fan-in (the activations then keep their scale through ReLU layers), batch normalisation gets positive scales and
variances, everything added or multiplied per channel stays near its neutral element. Tensors that steer an
operator (shapes, bounds, exponents, axes, single numbers) stay as they are.
"""
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

# Operators that only pass a weight on to its real consumer.
CARRIERS = {"Unsqueeze", "Squeeze", "Reshape", "Identity", "Transpose", "Cast"}
# Operators whose output scales with their input, up to a small bias; looked through on the way to the last matrix.
HOMOGENEOUS = {"Add", "Reshape", "Flatten", "Relu", "Dropout", "AveragePool", "GlobalAveragePool"}


def generator_for(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _weights(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Every float32 constant by value name: initialisers, Constant and ConstantOfShape nodes."""
    found = {}
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            found[tensor.name] = numpy_helper.to_array(tensor)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT64}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            value = numpy_helper.to_array(node.attribute[0].t)
            if value.dtype == np.float32:
                found[node.output[0]] = value
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            value = numpy_helper.to_array(node.attribute[0].t) if node.attribute else np.zeros(1, np.float32)
            if value.dtype == np.float32:
                found[node.output[0]] = np.full(shapes[node.input[0]], value[0])
    return found


def _consumers(model: onnx.ModelProto) -> dict[str, list[tuple[onnx.NodeProto, int]]]:
    uses: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            uses.setdefault(name, []).append((node, index))
    return uses


def _readers(name: str, uses) -> list[tuple[onnx.NodeProto, int]]:
    """(node, input index) of everything that reads the value, seen through carriers."""
    readers = []
    for node, index in uses.get(name, []):
        if node.op_type in CARRIERS and index == 0:
            readers += _readers(node.output[0], uses)
        else:
            readers.append((node, index))
    return readers


def _attribute(node: onnx.NodeProto, name: str, default):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _draw(value: np.ndarray, readers, rng) -> np.ndarray | None:
    """New numbers for one weight, or None where the tensor is no weight."""
    shape = value.shape
    if len({(node.op_type, index) for node, index in readers}) != 1:
        return None
    node, index = readers[0]
    op = node.op_type
    if op == "Conv" and index == 1:
        return rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
    if op == "ConvTranspose" and index == 1:
        # (in, out / group, kernel): an output sees in / group channels and about one stride-th of the kernel.
        reach = max(1, int(np.prod(shape[2:])) // int(np.prod(_attribute(node, "strides", [1]))))
        return rng.normal(0, np.sqrt(2 / (shape[0] // _attribute(node, "group", 1) * reach)), shape)
    if op in ("Conv", "ConvTranspose", "Gemm") and index == 2:
        return rng.normal(0, 0.05, shape)
    if op == "Gemm" and index == 1:
        return rng.normal(0, np.sqrt(2 / shape[-1 if _attribute(node, "transB", 0) else -2]), shape)
    if op == "MatMul" and index == 1 and len(shape) >= 2:
        return rng.normal(0, np.sqrt(1 / shape[-2]), shape)
    if op == "BatchNormalization":
        return rng.normal(0, 0.1, shape) if index in (2, 3) else rng.uniform(0.5, 1.5, shape)
    if value.size < 8:  # a number that steers, such as the 3 and 6 of a hard swish
        return None
    if op == "Mul":
        return rng.uniform(0.5, 1.5, shape)
    if op == "Add":
        return rng.normal(0, 0.1, shape)
    return None


def _scale_logits(model: onnx.ModelProto, fresh: dict[str, np.ndarray], inputs: dict[str, np.ndarray]) -> None:
    """Scales the last matrix or filter before each final Softmax so that its inputs have a standard deviation near 1.

    Residual networks grow their activations; a softmax over logits of 50 is one at one place and zero elsewhere,
    and would agree with almost anything.
    """
    import onnxruntime

    makers = {output: node for node in model.graph.node for output in node.output}
    outputs = {output.name for output in model.graph.output}
    outputs |= {node.input[0] for node in model.graph.node if node.op_type == "Identity" and node.output[0] in outputs}
    for node in model.graph.node:
        if node.op_type != "Softmax" or node.output[0] not in outputs:
            continue
        maker = makers.get(node.input[0])
        while maker is not None and maker.op_type in HOMOGENEOUS:
            maker = next((makers[i] for i in maker.input if i in makers and i not in fresh), None)
        if maker is None or maker.op_type not in ("Gemm", "MatMul", "Conv"):
            continue
        weight = maker.input[1]
        while weight not in fresh and weight in makers and makers[weight].op_type in CARRIERS:
            weight = makers[weight].input[0]
        if weight not in fresh:
            continue
        probe = onnx.ModelProto()
        probe.CopyFrom(model)
        probe.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.input[0]))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
        (logits,) = session.run([node.input[0]], inputs)
        fresh[weight] = fresh[weight] / max(float(np.std(logits)), 1e-6)


def _with_initialisers(model: onnx.ModelProto, fresh: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The model with `fresh` as initialisers in place of what defined those values before."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    nodes = [n for n in out.graph.node if not (n.output[0] in fresh and n.op_type in ("Constant", "ConstantOfShape"))]
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input} | {o.name for o in out.graph.output}
    kept = [t for t in out.graph.initializer if t.name not in fresh and t.name in used]
    dropped = {t.name for t in out.graph.initializer} - {t.name for t in kept}
    del out.graph.initializer[:]
    out.graph.initializer.extend(kept)
    inputs = [i for i in out.graph.input if i.name not in dropped]
    del out.graph.input[:]
    out.graph.input.extend(inputs)
    for name, value in fresh.items():
        out.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    if out.ir_version < 4:
        # Up to IR 3 an initialiser must also be listed as an input; keep such models in that form.
        for name, value in fresh.items():
            out.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape))
        for tensor in kept:
            if not any(i.name == tensor.name for i in out.graph.input):
                out.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return out


def reweight(model: onnx.ModelProto, name: str, inputs: dict[str, np.ndarray]) -> tuple[onnx.ModelProto, int]:
    """The re-weighted model and how many tensors were replaced. The same name gives the same numbers."""
    rng = generator_for(name)
    uses = _consumers(model)
    fresh = {}
    for value_name, value in _weights(model).items():
        drawn = _draw(value, _readers(value_name, uses), rng)
        if drawn is not None:
            fresh[value_name] = drawn.astype(np.float32)
    if not fresh:
        raise ValueError(f"{name}: no weight found to replace")
    _scale_logits(_with_initialisers(model, fresh), fresh, inputs)
    return _with_initialisers(model, fresh), len(fresh)
